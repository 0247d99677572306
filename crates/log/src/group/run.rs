//! Running a handler over a group's partitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millpond_store::{Backoff, Monotonic};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::consumer::{Assignment, Consumer};
use super::dead_letters::{DeadLetters, TopicSink};
use super::handler::Handler;
use super::item::Poison;
use super::stop::Stop;
use super::work::{Counts, Order, Work, WorkEnd, Workshop};
use crate::error::{LogError, Result};
use crate::limits::READ_RECORDS_MAX;

/// When a run ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// When it is stopped: for a server.
    #[default]
    Stopped,
    /// When everything is done, or others are at it: for Lambda and scripts.
    Drained,
}

/// How to run.
#[derive(Clone)]
pub struct RunOptions {
    /// When it ends by itself.
    pub until: Until,
    /// Returns by this time after its start, with work left if need be. Default: none.
    pub deadline: Option<Duration>,
    /// How long a record that is being handled may take to finish at a hand-off, at a stop and before the deadline.
    /// Default: 5 s.
    pub handoff: Duration,
    /// With [`Until::Drained`]: how long to wait for partitions that others hold before saying
    /// [`RunEnd::Busy`]. A lease or more lets it take over what a crashed worker held. Default: not at all.
    pub patience: Duration,
    /// Ends the run.
    pub stop: Stop,
    /// Most records between two checkpoints. Default: 100.
    pub batch: usize,
    /// How long to wait before a failed record is tried again. Default: from 100 ms, doubling, to 30 s.
    pub retry: Backoff,
    /// Where dead letters go, instead of the topic that the group names.
    pub sink: Option<Arc<dyn DeadLetters>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            until: Until::Stopped,
            deadline: None,
            handoff: Duration::from_secs(5),
            patience: Duration::ZERO,
            stop: Stop::new(),
            batch: 100,
            retry: Backoff {
                base: Duration::from_millis(100),
                longest: Duration::from_secs(30),
                attempts_max: u32::MAX,
            },
            sink: None,
        }
    }
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { until, deadline, handoff, patience, batch, .. } = self;
        write!(f, "RunOptions {{ {until:?}, {deadline:?}, {handoff:?}, {patience:?}, {batch} }}")
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// Everything that was there is done: all partitions were looked at after the last record was handled.
    Done,
    /// Nothing is left for this worker, but others hold these partitions, or the group may not read them yet:
    /// whether everything is done, only they know.
    Busy {
        /// The partitions.
        partitions: Vec<u32>,
    },
    /// The deadline came; work may be left. Run again.
    Deadline,
    /// It was stopped; work may be left.
    Stopped,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// Why it ended.
    pub end: RunEnd,
    /// Records that were handled.
    pub handled: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Records that went to the dead letters.
    pub buried: u64,
    /// Records that retention removed before they were read.
    pub missed: u64,
}

impl Consumer {
    /// Handles records until it is told to stop, the deadline comes, or everything is done. It keeps its leases alive
    /// while handlers run, shares partitions with other workers, and at the end checkpoints what is done and gives
    /// everything up. Each record is handled at least once; records of a partition in order.
    ///
    /// # Errors
    /// What trying again does not help: damage, a wrong set-up, a topic that is gone.
    pub async fn run(&self, handler: impl Handler, options: RunOptions) -> Result<RunReport> {
        if !(1..=READ_RECORDS_MAX).contains(&options.batch) {
            let problem = format!("is {}: from 1 to {READ_RECORDS_MAX}", options.batch);
            return Err(LogError::invalid("batch", problem));
        }
        let shop = Arc::new(Workshop {
            consumer: self.clone(),
            handler: Arc::new(handler),
            sink: self.sink(&options).await?,
            batch: options.batch,
            drain: options.until == Until::Drained,
            retry: options.retry,
            counts: Counts::default(),
        });
        self.beat().await?;
        // Both go away with this future, should it be dropped.
        let mut heart = JoinSet::new();
        let heart_stop = Stop::new();
        heart.spawn(keep_beating(self.clone(), heart_stop.clone()));
        let started = self.0.now();
        let mut run = Run {
            consumer: self,
            shop,
            options,
            started,
            tasks: JoinSet::new(),
            orders: BTreeMap::new(),
            busy_since: None,
            balance_due: true,
            balanced: started,
        };
        let outcome = run.main().await;
        run.wind_up().await;
        heart_stop.stop();
        while heart.join_next().await.is_some() {}
        if let Err(error) = self.clone().leave().await {
            tracing::warn!(group = %self.0.name, %error, "others take over after a lease");
        }
        let counts = &run.shop.counts;
        Ok(RunReport {
            end: outcome?,
            handled: counts.handled.load(Ordering::Relaxed),
            failures: counts.failures.load(Ordering::Relaxed),
            buried: counts.buried.load(Ordering::Relaxed),
            missed: counts.missed.load(Ordering::Relaxed),
        })
    }

    async fn sink(&self, options: &RunOptions) -> Result<Option<(u32, Arc<dyn DeadLetters>)>> {
        let Poison::DeadLetter { attempts, topic } = self.0.group().config.poison else {
            return Ok(None);
        };
        let sink: Arc<dyn DeadLetters> = match (&options.sink, topic) {
            (Some(sink), _) => Arc::clone(sink),
            (None, Some(name)) => {
                Arc::new(TopicSink::new(self.0.topic.0.log.topic(name.as_str()).await?))
            }
            (None, None) => {
                let problem =
                    "is missing: the group sends dead letters and names no topic for them";
                return Err(LogError::invalid("sink", problem));
            }
        };
        Ok(Some((attempts, sink)))
    }
}

/// Orders a hand-off, unless one was ordered before: its time runs already.
fn give_order(orders: &watch::Sender<Order>, order: Order) {
    orders.send_if_modified(|current| {
        let is_first = *current == Order::Work;
        if is_first {
            *current = order;
        }
        is_first
    });
}

async fn keep_beating(consumer: Consumer, stop: Stop) {
    let interval = consumer.beat_interval();
    let clock = Arc::clone(&consumer.0.environment().clock);
    let mut wait = interval;
    loop {
        tokio::select! {
            biased;
            () = stop.stopped() => return,
            () = clock.sleep(wait) => {}
        }
        wait = match consumer.beat().await {
            Ok(()) => interval,
            Err(error) => {
                tracing::warn!(group = %consumer.0.name, %error, "a heartbeat failed");
                interval / 4
            }
        };
    }
}

struct Run<'a> {
    consumer: &'a Consumer,
    shop: Arc<Workshop>,
    options: RunOptions,
    started: Monotonic,
    tasks: JoinSet<(Assignment, WorkEnd)>,
    orders: BTreeMap<u32, watch::Sender<Order>>,
    busy_since: Option<Monotonic>,
    balance_due: bool,
    balanced: Monotonic,
}

impl Run<'_> {
    fn now(&self) -> Monotonic {
        self.consumer.0.now()
    }

    /// How long until handing off must begin.
    fn remaining(&self) -> Option<Duration> {
        let deadline = self.options.deadline?.saturating_sub(self.options.handoff);
        Some(deadline.saturating_sub(self.now().since(self.started)))
    }

    async fn main(&mut self) -> Result<RunEnd> {
        loop {
            if self.options.stop.is_stopped() {
                return Ok(RunEnd::Stopped);
            }
            if self.remaining().is_some_and(|left| left.is_zero()) {
                return Ok(RunEnd::Deadline);
            }
            if self.balance_due {
                self.balance().await?;
            }
            if self.shop.drain && self.tasks.is_empty() {
                match self.verify().await {
                    Ok(Some(end)) => return Ok(end),
                    Ok(None) => {}
                    // A store that fails for the moment does not end the run.
                    Err(error) if error.is_transient() => {
                        tracing::warn!(%error, "the end could not be verified");
                    }
                    Err(error) => return Err(error),
                }
            }
            self.wait().await?;
        }
    }

    async fn wait(&mut self) -> Result<()> {
        let clock = Arc::clone(&self.consumer.0.environment().clock);
        let interval = self.consumer.beat_interval();
        let balance = interval.saturating_sub(self.now().since(self.balanced));
        let wait = self.remaining().map_or(balance, |left| left.min(balance));
        let stop = self.options.stop.clone();
        tokio::select! {
            biased;
            () = stop.stopped() => {}
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => match ended {
                Ok((assignment, end)) => self.ended(assignment, end).await?,
                // Handlers' panics are caught: this is one of ours. The lease is left to itself.
                Err(error) => tracing::error!(%error, "the work on a partition ended badly"),
            },
            () = clock.sleep(wait) => self.balance_due = true,
        }
        Ok(())
    }

    async fn ended(&mut self, assignment: Assignment, end: WorkEnd) -> Result<()> {
        self.orders.remove(&assignment.partition);
        match end {
            WorkEnd::AtEnd => {}
            WorkEnd::HandedOff => {
                if let Err(error) = self.consumer.release(assignment).await {
                    tracing::warn!(partition = assignment.partition, %error, "not released");
                }
            }
            WorkEnd::Lost => self.balance_due = true,
            WorkEnd::Failed(error) => return Err(error),
        }
        Ok(())
    }

    async fn balance(&mut self) -> Result<()> {
        (self.balance_due, self.balanced) = (false, self.now());
        match self.try_balance().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the balance is put off");
                Ok(())
            }
            outcome => outcome,
        }
    }

    async fn try_balance(&mut self) -> Result<()> {
        let shared = &self.consumer.0;
        let (plan, survey, _) = shared.plan().await?;
        shared.remove_dead(&survey).await;
        for partition in plan.give {
            let assignment = self.assignment_of(partition);
            match (self.orders.get(&partition), assignment) {
                (Some(order), _) => give_order(order, self.hand_off()),
                (None, Some(assignment)) => self.consumer.release(assignment).await?,
                (None, None) => {}
            }
        }
        for partition in plan.take {
            // Work that has lost its lease may not have noticed yet.
            if self.orders.contains_key(&partition) {
                continue;
            }
            if let Some(taken) = shared.take(partition, survey.leases.get(&partition)).await? {
                self.start(taken);
            }
        }
        Ok(())
    }

    fn assignment_of(&self, partition: u32) -> Option<Assignment> {
        self.consumer.held().into_iter().find(|held| held.partition == partition)
    }

    fn hand_off(&self) -> Order {
        Order::HandOff { since: self.now(), within: self.options.handoff }
    }

    fn start(&mut self, assignment: Assignment) {
        let (order, orders) = watch::channel(Order::Work);
        self.orders.insert(assignment.partition, order);
        let work = Work { shop: Arc::clone(&self.shop), assignment, orders };
        self.tasks.spawn(work.run());
    }

    /// Whether it is over: looks at every partition once more, after everything that was known is done.
    async fn verify(&mut self) -> Result<Option<RunEnd>> {
        self.try_balance().await?;
        if !self.tasks.is_empty() {
            return Ok(None);
        }
        let shared = &self.consumer.0;
        let held = self.consumer.held();
        let mut again = Vec::new();
        for assignment in &held {
            let lane = shared.topic.lane(assignment.partition).await?;
            let latest = lane.tail().await?;
            let Ok(lease) = shared.lease_of(*assignment) else { return Ok(None) };
            if latest > lease.checkpoint {
                again.push(*assignment);
            }
        }
        if !again.is_empty() {
            again.into_iter().for_each(|assignment| self.start(assignment));
            return Ok(None);
        }
        let partitions = shared.topic.refresh().await?.config.partitions;
        let is_held = |partition: &u32| held.iter().any(|held| held.partition == *partition);
        let busy: Vec<u32> = (0..partitions).filter(|partition| !is_held(partition)).collect();
        if busy.is_empty() {
            return Ok(Some(RunEnd::Done));
        }
        let now = self.now();
        let since = *self.busy_since.get_or_insert(now);
        let is_over = now.since(since) >= self.options.patience;
        Ok(is_over.then_some(RunEnd::Busy { partitions: busy }))
    }

    /// Lets what runs finish, for as long as a hand-off may take.
    async fn wind_up(&mut self) {
        let order = self.hand_off();
        self.orders.values().for_each(|sender| give_order(sender, order));
        let clock = Arc::clone(&self.consumer.0.environment().clock);
        let bound = self.options.handoff.saturating_mul(2) + Duration::from_secs(1);
        let finish = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            biased;
            () = finish => {}
            () = clock.sleep(bound) => tracing::warn!("work that did not end is cut off"),
        }
        self.tasks.shutdown().await;
    }
}
