//! The tasks of all sources: starting, listing, cancelling, carrying on.

use std::sync::{Arc, Weak};

use millpond_store::{
    Attributes, Expect, Item, Partition, Query, SortKey, StoreError, Version, Write, collect,
};

use super::row::{INDEX, Status, Task, index_key, partition};
use super::run::Runner;
use crate::error::{Code, Failure, Result};
use crate::limits::{MOVE_SILENCE_MAX, MOVES_LISTED_MAX, QUEUES_LISTED_MAX, ROW_CONFLICTS_MAX};
use crate::place::Place;
use crate::registry::Registry;
use crate::sqs::Closing;

/// The move tasks.
#[derive(Debug)]
pub struct Moves {
    registry: Arc<Registry>,
    closing: Closing,
    /// Tells this node's tasks apart from others'.
    node: u64,
}

impl Moves {
    pub fn new(registry: &Arc<Registry>, closing: &Closing) -> Self {
        let node = registry.ground.environment.rng.next_u64() >> 1;
        Self { registry: Arc::clone(registry), closing: closing.clone(), node }
    }

    /// Starts a task, if none runs on this source.
    pub async fn start(
        &self,
        source: &Place,
        destination: Option<String>,
        rate: Option<u64>,
        to_move: u64,
    ) -> Result<Task> {
        if self.list(source, 1).await?.iter().any(|(task, _)| task.status.is_active()) {
            let text = "There is already a task running. Only one active task is allowed for a \
                        source queue arn at a given time.";
            return Err(Failure::parameter(text));
        }
        let environment = &self.registry.ground.environment;
        let now = environment.now().as_millis();
        let task = Task {
            status: Status::Running,
            started_ms: now,
            chance: environment.rng.next_u64(),
            destination,
            rate,
            moved: 0,
            to_move,
            failure: None,
            node: self.node,
            heard_ms: now,
        };
        let version = environment.version();
        // Both or none: two calls at once must not start two tasks. What a node left here that died after its task had
        // ended is written over.
        let index = index_key(source)?;
        let left = self.registry.ground.store.get(&index).await?;
        let expect = left.map_or(Expect::Absent, |left| Expect::Version(left.version));
        let listed = Write::put(index, Attributes::new(), expect, version);
        let put = task.put(source, Expect::Absent, version)?;
        match self.registry.ground.store.write_all(vec![put, listed]).await {
            Ok(()) => {}
            Err(error) if error.is_conflict() => {
                let text = "There is already a task running. Only one active task is allowed for \
                            a source queue arn at a given time.";
                return Err(Failure::parameter(text));
            }
            Err(error) => return Err(error.into()),
        }
        self.run(source.clone(), task.clone(), version);
        Ok(task)
    }

    /// The last tasks of a source, the newest first. One that nobody works on is carried on.
    pub async fn list(&self, source: &Place, most: u64) -> Result<Vec<(Task, Version)>> {
        let most = usize::try_from(most.min(MOVES_LISTED_MAX)).unwrap_or(1);
        let query = Query::new(Partition::new(partition(source))?).reverse().limit(most);
        let page = self.registry.ground.store.query(query).await?;
        let read = |item: &Item| Ok((Task::read(item)?, item.version));
        let tasks: Vec<(Task, Version)> =
            page.items.iter().map(read).collect::<Result<_, StoreError>>()?;
        for (task, version) in &tasks {
            self.carry_on(source, task, *version).await?;
        }
        Ok(tasks)
    }

    /// Cancels a task that runs. Returns how many messages it has moved.
    pub async fn cancel(&self, source: &Place, started_ms: u64, chance: u64) -> Result<u64> {
        let missing = || Failure::new(Code::ResourceNotFound, "Task does not exist.");
        for _ in 0..ROW_CONFLICTS_MAX {
            let mut sort = started_ms.to_be_bytes().to_vec();
            sort.extend(chance.to_be_bytes());
            let key =
                millpond_store::Key::of(Partition::new(partition(source))?, SortKey::new(sort)?);
            let item = self.registry.ground.store.get(&key).await?.ok_or_else(missing)?;
            let mut task = Task::read(&item)?;
            match task.status {
                Status::Running => task.status = Status::Cancelling,
                Status::Cancelling => return Ok(task.moved),
                Status::Completed | Status::Cancelled | Status::Failed => {
                    let text = "Only active tasks can be cancelled.";
                    return Err(Failure::new(Code::UnsupportedOperation, text));
                }
            }
            let version = self.registry.ground.environment.version();
            let put = task.put(source, Expect::Version(item.version), version)?;
            match self.registry.ground.store.write(put).await {
                Ok(()) => {
                    self.carry_on(source, &task, version).await?;
                    return Ok(task.moved);
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::too_many_changes())
    }

    /// Carries on with tasks whose nodes are gone.
    pub async fn resume(&self) -> Result<()> {
        let query = Query::new(Partition::new(INDEX)?);
        let store = self.registry.ground.store.as_ref();
        for item in collect(store, query, QUEUES_LISTED_MAX).await? {
            let arn = String::from_utf8_lossy(item.key.sort.as_bytes()).into_owned();
            if let Some(source) = Place::of_arn(&arn) {
                self.list(&source, 1).await?;
            }
        }
        Ok(())
    }

    /// Takes a task over when its node has not been heard of for a while.
    async fn carry_on(&self, source: &Place, task: &Task, version: Version) -> Result<()> {
        let environment = &self.registry.ground.environment;
        let heard = millpond_store::Timestamp::from_millis(task.heard_ms);
        if !task.status.is_active() || environment.now().since(heard) < MOVE_SILENCE_MAX {
            return Ok(());
        }
        let heard_ms = environment.now().as_millis();
        let taken = Task { node: self.node, heard_ms, ..task.clone() };
        let next = environment.version();
        let put = taken.put(source, Expect::Version(version), next)?;
        match self.registry.ground.store.write(put).await {
            Ok(()) => self.run(source.clone(), taken, next),
            // Another node was faster, or it was not silent after all.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Looks again and again for tasks whose nodes are gone: also for those that were heard of just before this node was
    /// started.
    pub async fn look_after(moves: Weak<Self>, closing: Closing) {
        loop {
            let Some(clock) =
                moves.upgrade().map(|moves| Arc::clone(&moves.registry.ground.environment.clock))
            else {
                return;
            };
            tokio::select! {
                biased;
                () = closing.until() => return,
                () = clock.sleep(MOVE_SILENCE_MAX) => {}
            }
            let Some(moves) = moves.upgrade() else { return };
            if let Err(failure) = moves.resume().await {
                tracing::warn!(error = failure.text, "move tasks are not looked for");
            }
        }
    }

    fn run(&self, source: Place, task: Task, version: Version) {
        let registry = Arc::clone(&self.registry);
        let closing = self.closing.clone();
        tokio::spawn(Runner { registry, closing, source, task, version }.run());
    }
}
