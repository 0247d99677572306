//! Starting runs when there is something to do, and only then.

use std::sync::Arc;
use std::time::Duration;

use millpond_store::{Clock, Item, Key, Monotonic, Result as StoreResult, Timestamp};
use tokio::task::JoinHandle;

use super::tally::{Ended, Report};
use super::trigger_row::{RunState, TriggerRow};
use super::{RunUntil, Worker};
use crate::client::Client;
use crate::error::{QueueError, Result};
use crate::limits::{RELEASE_MAX, RUN_LEASE, START_LEASE, WORKER_BACKOFF};
use crate::rows::{Rows, Step};

/// Starts runs over a client's messages. Senders [wake](Self::wake) it after they have sent; one
/// [run](Self::run) at a time works the queue down.
///
/// No wake-up is lost: a run says that it is idle only if no wake-up came since it began its last look at the queue, by
/// compare-and-swap. A run that crashed is taken for dead after 30 seconds, and the next wake-up starts another.
#[derive(Debug, Clone)]
pub struct Trigger {
    client: Client,
    rows: Arc<Rows>,
    key: Key,
}

/// What a wake-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Nobody runs: start a [run](Trigger::run). Until that begins, others are told [`Starting`](Self::Starting).
    Start,
    /// Another was told to start a run a moment ago.
    Starting,
    /// A run is under way, and will look at the queue again.
    Running,
}

/// How a run came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// Nothing is left to do, and the next wake-up starts a run.
    Idle(Report),
    /// Work remains: the continuation was called, and another run is to be started (when nothing is due before, at
    /// [`due`](Report::due)).
    Continue(Report),
    /// Another run is under way. It goes on until nothing is left; this one did nothing.
    Busy,
}

impl Trigger {
    /// The trigger of a client's queue.
    ///
    /// # Errors
    /// None in practice.
    pub fn new(client: &Client) -> Result<Self> {
        let ground = &client.core.queue.root.ground;
        Ok(Self {
            client: client.clone(),
            rows: Arc::new(Rows::new(&ground.store, &ground.environment)),
            key: trigger_key(client.core.prefix())?,
        })
    }

    fn now(&self) -> Timestamp {
        self.client.core.now()
    }

    /// Says that there is something to do; call it after sending. It costs a read, and a write only when nobody runs
    /// or when the run under way must be told.
    ///
    /// # Errors
    /// As the store's: call again.
    pub async fn wake(&self) -> Result<Wake> {
        let now = self.now();
        let plan = |item: Option<&Item>| {
            let row = TriggerRow::of(item)?;
            Ok(match row.state {
                RunState::Wanted if row.until > now => Step::Keep(Wake::Starting),
                // It has not noticed the last wake-up yet: when it does, it will find what this one is about.
                RunState::Running if row.until > now && row.generation > row.seen => {
                    Step::Keep(Wake::Running)
                }
                RunState::Running if row.until > now => {
                    TriggerRow { generation: row.generation + 1, ..row }.put(Wake::Running)
                }
                RunState::Idle | RunState::Wanted | RunState::Running => {
                    let (state, until) = (RunState::Wanted, now.plus(START_LEASE));
                    TriggerRow { state, until, generation: row.generation + 1, ..row }
                        .put(Wake::Start)
                }
            })
        };
        Ok(self.rows.change(&self.key, None, plan).await?.0)
    }

    /// Works the queue down for up to `deadline`, unless another run is under way. Messages that come due before the
    /// deadline are waited for. When work remains, it calls the worker's continuation.
    ///
    /// # Errors
    /// As [`Worker::run_until`]; and when the store could not be told how the run ended, after which the next wake-up
    /// starts a run once this one counts as dead.
    pub async fn run(&self, worker: &Worker, deadline: Duration) -> Result<Ran> {
        let environment = self.client.core.queue.root.environment();
        let clock = Arc::clone(&environment.clock);
        let (began, runner) = (clock.monotonic(), environment.rng.next_u64());
        if !self.lasting(began, deadline, || self.begin(runner)).await? {
            return Ok(Ran::Busy);
        }
        let alive = Alive::keep(self.clone(), runner, &clock);
        let mut before = None;
        loop {
            let left = deadline.saturating_sub(clock.monotonic().since(began));
            let left = left.max(Duration::from_millis(1));
            let until = RunUntil::empty().or_deadline(left).linger(left);
            let report = worker.run(until).await?.after(before);
            before = Some(report);
            let rests = !report.work_remains && report.ended != Ended::Shutdown;
            let over = report.ended != Ended::Empty;
            let end = || self.end(runner, rests, over);
            match self.lasting(began, deadline, end).await? {
                End::Idle => {
                    alive.end().await;
                    return Ok(Ran::Idle(report));
                }
                End::Again => {}
                End::HandedOver => {
                    alive.end().await;
                    let report = Report { work_remains: true, ..report };
                    worker.call_continuation(report).await;
                    return Ok(Ran::Continue(report));
                }
            }
        }
    }

    /// Marks a run as begun. Says whether it may run.
    async fn begin(&self, runner: u64) -> StoreResult<bool> {
        let now = self.now();
        let plan = |item: Option<&Item>| {
            let row = TriggerRow::of(item)?;
            if row.state == RunState::Running && row.until > now && row.runner != runner {
                return Ok(Step::Keep(false));
            }
            let until = now.plus(RUN_LEASE);
            let (state, seen) = (RunState::Running, row.generation);
            Ok(TriggerRow { state, seen, runner, until, ..row }.put(true))
        };
        Ok(self.rows.change(&self.key, None, plan).await?.0)
    }

    /// Marks the end of a run's look at the queue. `rests`: nothing was left. `over`: it has no time for another.
    async fn end(&self, runner: u64, rests: bool, over: bool) -> StoreResult<End> {
        let now = self.now();
        let plan = |item: Option<&Item>| {
            let row = TriggerRow::of(item)?;
            if row.runner != runner || row.state != RunState::Running {
                // This run was taken for dead. Whoever has taken its place sees to the rest, and saying that work
                // remains does no harm.
                return Ok(Step::Keep(End::HandedOver));
            }
            let is_woken = row.generation != row.seen;
            Ok(if rests && !is_woken {
                TriggerRow { state: RunState::Idle, ..row }.put(End::Idle)
            } else if is_woken && !over {
                let until = now.plus(RUN_LEASE);
                TriggerRow { seen: row.generation, until, ..row }.put(End::Again)
            } else {
                let until = now.plus(START_LEASE);
                TriggerRow { state: RunState::Wanted, until, ..row }.put(End::HandedOver)
            })
        };
        Ok(self.rows.change(&self.key, None, plan).await?.0)
    }

    /// Says that a run is alive. Says whether it still counts as the one.
    async fn renew(&self, runner: u64) -> StoreResult<bool> {
        let now = self.now();
        let plan = |item: Option<&Item>| {
            let row = TriggerRow::of(item)?;
            if row.runner != runner || row.state != RunState::Running {
                return Ok(Step::Keep(false));
            }
            Ok(TriggerRow { until: now.plus(RUN_LEASE), ..row }.put(true))
        };
        Ok(self.rows.change(&self.key, None, plan).await?.0)
    }

    /// Tries again while the store fails for the moment, until the deadline and a moment longer.
    async fn lasting<T, F: Future<Output = StoreResult<T>>>(
        &self,
        began: Monotonic,
        deadline: Duration,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T> {
        let environment = self.client.core.queue.root.environment();
        let mut failures = 0;
        loop {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => QueueError::from(error),
            };
            let over = environment.clock.monotonic().since(began) > deadline + RELEASE_MAX;
            if !error.is_transient() || over {
                return Err(error);
            }
            failures += 1;
            let wait = WORKER_BACKOFF.wait(failures, environment.rng.as_ref()).unwrap_or_default();
            environment.clock.sleep(wait.max(Duration::from_millis(1))).await;
        }
    }
}

/// Where the row of a client's trigger is.
pub(crate) fn trigger_key(prefix: &str) -> StoreResult<Key> {
    Key::new(format!("{prefix}#trigger"), b"run".to_vec())
}

/// How a run's look at the queue ended.
#[derive(Debug, Clone, Copy)]
enum End {
    Idle,
    Again,
    HandedOver,
}

/// Says again and again that a run is alive, until it is dropped.
struct Alive(JoinHandle<()>);

impl Alive {
    fn keep(trigger: Trigger, runner: u64, clock: &Arc<dyn Clock>) -> Self {
        let clock = Arc::clone(clock);
        Self(tokio::spawn(async move {
            loop {
                clock.sleep(RUN_LEASE / 3).await;
                match trigger.renew(runner).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => tracing::debug!(%error, "a run could not say that it is alive"),
                }
            }
        }))
    }

    async fn end(mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::QueueConfig;
    use crate::queues::Queues;
    use millpond_lanes::Ground;
    use millpond_store::{Environment, MemoryStore, VirtualClock};

    async fn trigger() -> (Trigger, VirtualClock) {
        let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let environment = Environment::simulated(clock.clone(), 1);
        let store = Arc::new(MemoryStore::new(&environment));
        let queues = Queues::new(&Ground::new(store, &environment));
        let queue = queues.create("q", QueueConfig::default()).await.unwrap();
        (Trigger::new(&queue.main().unwrap()).unwrap(), clock)
    }

    #[tokio::test]
    async fn a_wake_up_during_the_last_check_leads_to_another() {
        let (trigger, _) = trigger().await;
        assert_eq!(trigger.wake().await.unwrap(), Wake::Start);
        assert!(trigger.begin(1).await.unwrap());
        // The run has found nothing, and is about to say so.
        assert_eq!(trigger.wake().await.unwrap(), Wake::Running);
        assert_eq!(trigger.wake().await.unwrap(), Wake::Running);
        assert!(matches!(trigger.end(1, true, false).await.unwrap(), End::Again));
        assert_eq!(trigger.wake().await.unwrap(), Wake::Running);
        assert!(matches!(trigger.end(1, true, true).await.unwrap(), End::HandedOver));
        assert_eq!(trigger.wake().await.unwrap(), Wake::Starting);
        assert!(trigger.begin(2).await.unwrap());
        assert!(matches!(trigger.end(2, true, false).await.unwrap(), End::Idle));
        assert_eq!(trigger.wake().await.unwrap(), Wake::Start);
    }

    #[tokio::test]
    async fn one_runs_at_a_time_and_a_dead_one_is_replaced_after_its_lease() {
        let (trigger, clock) = trigger().await;
        assert!(trigger.begin(1).await.unwrap());
        assert!(!trigger.begin(2).await.unwrap());
        for _ in 0..3 {
            clock.advance(RUN_LEASE - Duration::from_millis(1));
            assert_eq!(trigger.wake().await.unwrap(), Wake::Running);
            assert!(trigger.renew(1).await.unwrap());
        }
        clock.advance(RUN_LEASE);
        assert_eq!(trigger.wake().await.unwrap(), Wake::Start);
        assert_eq!(trigger.wake().await.unwrap(), Wake::Starting);
        clock.advance(START_LEASE);
        assert_eq!(trigger.wake().await.unwrap(), Wake::Start, "nobody came");
        assert!(trigger.begin(2).await.unwrap());
        assert!(!trigger.renew(1).await.unwrap());
        assert!(matches!(trigger.end(1, true, false).await.unwrap(), End::HandedOver));
        assert!(!trigger.begin(3).await.unwrap(), "a late end does not end another's run");
        clock.advance(RUN_LEASE);
        assert!(trigger.begin(3).await.unwrap(), "one that nobody woke up, too");
    }

    #[tokio::test]
    async fn work_that_remains_is_handed_over() {
        let (trigger, _) = trigger().await;
        assert!(trigger.begin(1).await.unwrap());
        assert!(matches!(trigger.end(1, false, true).await.unwrap(), End::HandedOver));
        assert_eq!(trigger.wake().await.unwrap(), Wake::Starting);
        assert!(trigger.begin(2).await.unwrap());
    }
}
