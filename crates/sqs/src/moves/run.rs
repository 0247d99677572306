//! The work of one move task: step by step, each followed by a word about how far it is.

use std::sync::Arc;
use std::time::Duration;

use millpond_queue::{Client, QueueError, Redrive};
use millpond_store::{Expect, Monotonic, StoreError, Version, Write};

use super::row::{Status, Task, index_key};
use crate::limits::{MOVE_STEP_MAX, MOVE_STEP_TIME};
use crate::place::Place;
use crate::registry::Registry;
use crate::sqs::Closing;

/// Works on a task until it ends, is cancelled, or taken over by another node.
pub struct Runner {
    pub registry: Arc<Registry>,
    pub closing: Closing,
    pub source: Place,
    pub task: Task,
    pub version: Version,
}

/// How a step ended.
enum Step {
    /// This many were moved, and there may be more.
    Moved(usize),
    /// There is no more to move.
    Empty,
    /// It cannot go on.
    Failed(String),
}

impl Runner {
    pub async fn run(mut self) {
        let clock = Arc::clone(&self.registry.ground.environment.clock);
        while self.task.status == Status::Running {
            let began = clock.monotonic();
            let step = match self.step().await {
                Ok(step) => step,
                Err(error) if error.is_transient() => {
                    tracing::warn!(source = ?self.source, %error, "a move task waits for the store");
                    Step::Moved(0)
                }
                Err(error) => Step::Failed(error.to_string()),
            };
            let moved = match step {
                Step::Moved(moved) => moved,
                Step::Empty => {
                    self.task.status = Status::Completed;
                    0
                }
                Step::Failed(reason) => {
                    self.task.status = Status::Failed;
                    self.task.failure = Some(reason);
                    0
                }
            };
            self.task.moved += u64::try_from(moved).unwrap_or_default();
            if !self.say().await {
                return;
            }
            if self.task.status != Status::Running {
                break;
            }
            let pause = self.pause(moved, clock.monotonic(), began);
            tokio::select! {
                biased;
                // Another node, or this one when it is started again, carries on.
                () = self.closing.until() => return,
                () = clock.sleep(pause) => {}
            }
        }
        if self.task.status == Status::Cancelling {
            self.task.status = Status::Cancelled;
            self.say().await;
        }
    }

    /// How long to wait before the next step, so that the rate is kept.
    fn pause(&self, moved: usize, now: Monotonic, began: Monotonic) -> Duration {
        let spent = now.since(began);
        match self.task.rate {
            Some(rate) => {
                let moved = u32::try_from(moved).unwrap_or(u32::MAX);
                let due = Duration::from_secs(1) * moved / u32::try_from(rate.max(1)).unwrap_or(1);
                due.max(Duration::from_millis(1)).saturating_sub(spent)
            }
            None if moved == 0 => MOVE_STEP_TIME,
            None => Duration::ZERO,
        }
    }

    /// How many messages one step may move: at a low rate so few that cancelling takes effect soon.
    fn step_max(&self) -> usize {
        let Some(rate) = self.task.rate else { return MOVE_STEP_MAX };
        let millis = u64::try_from(MOVE_STEP_TIME.as_millis()).unwrap_or_default();
        let each = usize::try_from(rate * millis / 1_000).unwrap_or(1);
        each.clamp(1, MOVE_STEP_MAX)
    }

    async fn step(&self) -> Result<Step, QueueError> {
        let gone = |what: &str| Ok(Step::Failed(what.to_owned()));
        let clients = match self.clients().await {
            Ok(clients) => clients,
            Err(QueueError::NotFound { .. }) => return gone(NO_QUEUE),
            Err(error) => return Err(error),
        };
        let to = match &self.task.destination {
            Some(arn) => match Place::of_arn(arn) {
                Some(place) => Some(place.stored_name()),
                None => return gone(NO_QUEUE),
            },
            None => None,
        };
        let mut moved = 0;
        for client in clients {
            let left = self.step_max() - moved;
            if left == 0 {
                break;
            }
            let how = Redrive { to: to.clone(), max: Some(left), ..Redrive::default() };
            match client.redrive(&how).await {
                Ok(redriven) if redriven.homeless > 0 => {
                    return gone("CouldNotDetermineMessageSource");
                }
                Ok(redriven) => moved += redriven.moved,
                Err(QueueError::NotFound { .. }) => return gone(NO_QUEUE),
                // What was moved so far is told; the error comes again with the next step.
                Err(error) if moved == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(if moved == 0 { Step::Empty } else { Step::Moved(moved) })
    }

    /// All clients of the source: each has dead letters of its own.
    async fn clients(&self) -> Result<Vec<Client>, QueueError> {
        let queue = self.registry.queues.open(&self.source.stored_name()).await?;
        let ids = queue.clients().await?;
        ids.iter().map(|id| queue.client(id.as_str())).collect()
    }

    /// Says how far it is; with its end, that the source has no running task any more. Learns at the same time whether
    /// it was cancelled; says whether the task is still this node's.
    async fn say(&mut self) -> bool {
        let environment = self.registry.ground.environment.clone();
        loop {
            self.task.heard_ms = environment.now().as_millis();
            let next = environment.version();
            match self.write(next).await {
                Ok(()) => {
                    self.version = next;
                    return true;
                }
                Err(StoreError::Conflict(conflicts)) => {
                    let current = conflicts.first().current.as_ref();
                    let current =
                        current.and_then(|item| Some((Task::read(item).ok()?, item.version)));
                    match current {
                        Some((theirs, version)) if theirs.node == self.task.node => {
                            if theirs.status == Status::Cancelling
                                && self.task.status == Status::Running
                            {
                                self.task.status = Status::Cancelling;
                            }
                            self.version = version;
                        }
                        _ => return false,
                    }
                }
                Err(error) => {
                    tracing::warn!(source = ?self.source, %error, "a move task cannot say how far it is");
                    tokio::select! {
                        biased;
                        () = self.closing.until() => return false,
                        () = environment.clock.sleep(MOVE_STEP_TIME) => {}
                    }
                }
            }
        }
    }

    async fn write(&self, version: Version) -> Result<(), StoreError> {
        let put = self.task.put(&self.source, Expect::Version(self.version), version)?;
        let store = &self.registry.ground.store;
        if self.task.status.is_active() {
            return store.write(put).await;
        }
        // In one step: from then on another task may be started, which is listed at the same place.
        let unlist = Write::delete(index_key(&self.source)?, Expect::Any);
        store.write_all(vec![put, unlist]).await
    }
}

const NO_QUEUE: &str = "AWS.SimpleQueueService.NonExistentQueue";
