//! A worker that is driven by requests: whoever handles the records is elsewhere, and may be gone at any time.
//!
//! It differs from [`Consumer::run`] in that it does nothing of its own accord: its heart beats when it is asked for
//! records, and when nobody asks, its leases end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select_all;
use millpond_lanes::Lane as _;
use millpond_store::{ChangeHint, Monotonic};
use tokio::sync::{MutexGuard, watch};

use super::consumer::{Assignment, Consumer};
use crate::error::{LogError, Result};
use crate::limits::{IDLE_WAIT_MAX, PULL_BEATS_PER_LEASE, READ_BYTES_MAX, READ_RECORDS_MAX};
use crate::name::WorkerId;
use crate::read::Batch;

/// What to pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pull {
    /// Most records; none is a sign of life, and nothing else.
    pub max: usize,
    /// The [`answer`](Pulled::answer) that the puller got last. With it, records behind those come; without it, or when
    /// it is another one, everything behind the checkpoints comes again, since an answer may have been lost on its way.
    pub after: Option<u64>,
    /// How long to wait when there is nothing.
    pub wait: Duration,
}

/// What was pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The number of this answer, for the next [`Pull`].
    pub answer: u64,
    /// Records, of one partition each.
    pub batches: Vec<(Assignment, Batch)>,
    /// What the worker holds.
    pub held: Vec<Assignment>,
    /// Of that, what it should finish: nothing new comes from there, and once all of it is checkpointed, or a lease
    /// later, another worker gets it.
    pub leaving: Vec<u32>,
    /// Partitions that other workers hold.
    pub others: Vec<u32>,
}

/// A worker of a group for somebody who asks for records, handles them elsewhere, and says so later. Each
/// [`pull`](Self::pull) and [`checkpoint`](Self::checkpoint) is a sign of life; without one for a lease, others take its
/// partitions. Nothing is lost when an answer is: see [`Pull::after`].
///
/// ```
/// # use std::sync::Arc;
/// # use millpond_lanes::Ground;
/// # use millpond_log::{ConsumerOptions, Log, LogError, NewRecord, Pull, Puller, TopicConfig};
/// # use millpond_store::{Environment, MemoryStore};
/// # #[tokio::main]
/// # async fn main() -> Result<(), LogError> {
/// # let environment = Environment::system();
/// # let log = Log::new(&Ground::new(Arc::new(MemoryStore::new(&environment)), &environment));
/// # let orders = log.create("orders", TopicConfig::with_partitions(1)).await?;
/// orders.append(NewRecord::new("a book")).await?;
/// let worker = Puller::new(orders.consumer("billing", ConsumerOptions::default()).await?);
/// let mut after = None;
/// loop {
///     let pulled = worker.pull(Pull { max: 100, after, ..Pull::default() }).await?;
///     if pulled.batches.is_empty() {
///         break;
///     }
///     for (assignment, batch) in pulled.batches {
///         // Handle them, and say so; another worker's checkpoint is refused by the assignment's epoch.
///         worker.checkpoint(assignment, batch.next).await?;
///     }
///     after = Some(pulled.answer);
/// }
/// worker.leave().await?;
/// assert_eq!(orders.describe_group("billing").await?.partitions[0].lag, 0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Puller {
    consumer: Consumer,
    state: tokio::sync::Mutex<State>,
    /// So that a pull that waits for records ends when another one comes.
    wanted: watch::Sender<Wanted>,
    asked: Mutex<Monotonic>,
}

/// Who wants a pull that waits for records to end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    /// How often it was said.
    interrupts: u64,
    /// Calls that wait for the state.
    turns: u64,
}

impl Wanted {
    /// Whether a pull that began when there were so many interrupts should end.
    const fn by_another(self, interrupts: u64) -> bool {
        self.turns > 0 || self.interrupts != interrupts
    }
}

/// A call that waits for the state, for as long as this lives.
struct Turn<'a>(&'a watch::Sender<Wanted>);

impl<'a> Turn<'a> {
    fn new(wanted: &'a watch::Sender<Wanted>) -> Self {
        wanted.send_modify(|wanted| wanted.turns += 1);
        Self(wanted)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|wanted| wanted.turns -= 1);
    }
}

#[derive(Debug, Default)]
struct State {
    answers: u64,
    /// The last answer, unless something was read since that may not have arrived.
    last: Option<u64>,
    beaten: Option<Monotonic>,
    balanced: Option<Monotonic>,
    /// Partitions that others should get, and since when.
    leaving: BTreeMap<u32, Monotonic>,
    others: Vec<u32>,
    turn: usize,
}

impl Puller {
    /// Drives this worker. It holds nothing before the first pull.
    #[must_use]
    pub fn new(consumer: Consumer) -> Self {
        let asked = Mutex::new(consumer.0.now());
        Self { consumer, state: Default::default(), wanted: watch::Sender::default(), asked }
    }

    /// The worker's id.
    #[must_use]
    pub fn worker(&self) -> &WorkerId {
        self.consumer.worker()
    }

    /// How long the worker may be silent.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.consumer.0.lease
    }

    /// Whether nobody has asked for a whole lease: then others may have its partitions.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.consumer.0.now().since(asked) >= self.lease()
    }

    /// The next records of the partitions that the worker holds. An earlier pull of the same worker that still waits
    /// ends with nothing.
    ///
    /// # Errors
    /// [`LogError::Invalid`] for too large a `max`, [`LogError::UnknownGroup`] or [`LogError::UnknownTopic`] when it is
    /// gone, and as the store's: then pull again, without `after`.
    pub async fn pull(&self, pull: Pull) -> Result<Pulled> {
        if pull.max > READ_RECORDS_MAX {
            let problem = format!("is {}: up to {READ_RECORDS_MAX}", pull.max);
            return Err(LogError::invalid("max", problem));
        }
        let interrupts = self.wanted.borrow().interrupts;
        let mut state = self.turn().await;
        let began = self.consumer.0.now();
        self.keep(&mut state).await?;
        if pull.max == 0 {
            return Ok(self.answer(&state, Vec::new()));
        }
        if pull.after.is_none() || pull.after != state.last {
            for assignment in self.consumer.held() {
                // What is lost meanwhile is not read.
                let _ = self.consumer.rewind(assignment);
            }
        }
        // From here on something may be read that never arrives, should this future be dropped.
        state.last = None;
        let batches = loop {
            let hints = self.hints(&state).await?;
            let batches = self.read(&mut state, pull.max).await?;
            let left = pull.wait.saturating_sub(self.consumer.0.now().since(began));
            if !batches.is_empty() || left.is_zero() || self.wanted.borrow().by_another(interrupts)
            {
                break batches;
            }
            self.idle(hints, left, interrupts).await;
            self.keep(&mut state).await?;
        };
        state.answers += 1;
        state.last = Some(state.answers);
        Ok(self.answer(&state, batches))
    }

    /// Says that everything before `next` in a partition is done.
    ///
    /// # Errors
    /// As [`Consumer::checkpoint`].
    pub async fn checkpoint(&self, assignment: Assignment, next: u64) -> Result<()> {
        self.consumer.checkpoint(assignment, next).await?;
        self.note_life();
        // A pull that waits keeps the worker alive by itself.
        if let Ok(mut state) = self.state.try_lock()
            && let Err(error) = self.beat(&mut state).await
        {
            tracing::debug!(worker = %self.worker(), %error, "the next call beats");
        }
        Ok(())
    }

    /// Ends a pull that waits, with nothing.
    pub fn interrupt(&self) {
        self.wanted.send_modify(|wanted| wanted.interrupts += 1);
    }

    /// Gives everything up and leaves the group. A pull that waits ends with nothing.
    ///
    /// # Errors
    /// As [`Consumer::leave`].
    pub async fn leave(&self) -> Result<()> {
        let _state = self.turn().await;
        self.consumer.clone().leave().await
    }

    /// The state. Whoever waits for records with it ends, and lets this call have it.
    async fn turn(&self) -> MutexGuard<'_, State> {
        let _waiting = Turn::new(&self.wanted);
        self.state.lock().await
    }

    fn note_life(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = self.consumer.0.now();
    }

    /// What keeps the worker in the group: its heartbeat, its share, and what it owes to others.
    async fn keep(&self, state: &mut State) -> Result<()> {
        self.note_life();
        self.beat(state).await?;
        let now = self.consumer.0.now();
        let interval = self.consumer.beat_interval();
        if state.balanced.is_none_or(|at| now.since(at) >= interval) {
            self.balance(state, now).await?;
            state.balanced = Some(now);
        }
        self.hand_over(state, now).await
    }

    async fn beat(&self, state: &mut State) -> Result<()> {
        let now = self.consumer.0.now();
        if state.beaten.is_none_or(|at| now.since(at) >= self.lease() / PULL_BEATS_PER_LEASE) {
            self.consumer.beat().await?;
            state.beaten = Some(now);
        }
        Ok(())
    }

    async fn balance(&self, state: &mut State, now: Monotonic) -> Result<()> {
        let shared = &self.consumer.0;
        let (plan, survey, others) = shared.plan().await?;
        shared.remove_dead(&survey).await;
        for partition in plan.take {
            shared.take(partition, survey.leases.get(&partition)).await?;
        }
        state.leaving.retain(|partition, _| plan.give.contains(partition));
        for partition in plan.give {
            state.leaving.entry(partition).or_insert(now);
        }
        state.others = others;
        Ok(())
    }

    /// Gives up what others should have, once what was read of it is done, or took too long.
    async fn hand_over(&self, state: &mut State, now: Monotonic) -> Result<()> {
        for assignment in self.consumer.held() {
            let Some(since) = state.leaving.get(&assignment.partition) else { continue };
            let is_late = now.since(*since) >= self.lease();
            if is_late || self.consumer.0.is_done_with(assignment) {
                self.consumer.release(assignment).await?;
                state.leaving.remove(&assignment.partition);
            }
        }
        Ok(())
    }

    /// What may be read from.
    fn open(&self, state: &State) -> Vec<Assignment> {
        let mut held = self.consumer.held();
        held.retain(|assignment| !state.leaving.contains_key(&assignment.partition));
        held
    }

    async fn hints(&self, state: &State) -> Result<Vec<ChangeHint>> {
        let mut hints = Vec::new();
        for assignment in self.open(state) {
            hints.push(self.consumer.0.topic.lane(assignment.partition).await?.changed());
        }
        Ok(hints)
    }

    /// What is there now, each time beginning with another partition.
    async fn read(&self, state: &mut State, max: usize) -> Result<Vec<(Assignment, Batch)>> {
        let open = self.open(state);
        state.turn = state.turn.wrapping_add(1);
        let first = state.turn.checked_rem(open.len()).unwrap_or_default();
        let (mut batches, mut left, mut bytes) = (Vec::new(), max, 0);
        for assignment in open.iter().cycle().skip(first).take(open.len()) {
            if left == 0 || bytes >= READ_BYTES_MAX {
                break;
            }
            match self.consumer.poll(*assignment, left).await {
                Ok(batch) if batch.is_empty() => {}
                Ok(batch) => {
                    left -= batch.records.len().min(left);
                    bytes += batch.records.iter().map(|record| record.payload.len()).sum::<usize>();
                    batches.push((*assignment, batch));
                }
                // What it lost, it may take again.
                Err(LogError::LeaseLost { .. }) => state.balanced = None,
                Err(error) => return Err(error),
            }
        }
        Ok(batches)
    }

    /// Waits until something may have changed.
    async fn idle(&self, mut hints: Vec<ChangeHint>, left: Duration, interrupts: u64) {
        let wait = left.min(IDLE_WAIT_MAX).min(self.consumer.beat_interval());
        let changed = async {
            if hints.is_empty() {
                std::future::pending::<()>().await;
            }
            select_all(hints.iter_mut().map(|hint| hint.wait().boxed())).await;
        };
        let mut wanted = self.wanted.subscribe();
        tokio::select! {
            biased;
            // The sender is here, so that the wait cannot fail.
            _ = wanted.wait_for(|wanted| wanted.by_another(interrupts)) => {}
            () = changed => {}
            () = self.consumer.0.environment().clock.sleep(wait) => {}
        }
    }

    fn answer(&self, state: &State, batches: Vec<(Assignment, Batch)>) -> Pulled {
        Pulled {
            answer: state.answers,
            batches,
            held: self.consumer.held(),
            leaving: state.leaving.keys().copied().collect(),
            others: state.others.clone(),
        }
    }
}
