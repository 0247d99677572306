//! Working on one partition: read, handle in order, checkpoint, wait.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use millpond_lanes::Lane as _;
use millpond_store::{Backoff, Monotonic};
use tokio::sync::watch;

use super::consumer::{Assignment, Consumer};
use super::dead_letters::{DeadLetter, DeadLetters, cut};
use super::handler::{Failure, Handler};
use crate::error::{LogError, Result};
use crate::limits::IDLE_WAIT_MAX;
use crate::read::Batch;
use crate::record::Record;

/// What the run wants of a partition's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Work,
    /// Finish the record at hand, checkpoint and end; drop the record when that takes too long.
    HandOff {
        since: Monotonic,
        within: Duration,
    },
}

/// How the work on a partition ended.
#[derive(Debug)]
pub(super) enum WorkEnd {
    /// There was nothing more to do.
    AtEnd,
    /// As ordered: everything done is checkpointed.
    HandedOff,
    /// Somebody else has the lease.
    Lost,
    /// Something that trying again does not help.
    Failed(LogError),
}

/// What all partitions' work counts together.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub handled: AtomicU64,
    pub failures: AtomicU64,
    pub buried: AtomicU64,
    pub missed: AtomicU64,
}

/// What the work on every partition has in common.
pub(super) struct Workshop {
    pub consumer: Consumer,
    pub handler: Arc<dyn Handler>,
    pub sink: Option<(u32, Arc<dyn DeadLetters>)>,
    pub batch: usize,
    pub drain: bool,
    pub retry: Backoff,
    pub counts: Counts,
}

pub(super) struct Work {
    pub shop: Arc<Workshop>,
    pub assignment: Assignment,
    pub orders: watch::Receiver<Order>,
}

/// What became of a record, or of a wait.
enum Step {
    Done,
    /// A hand-off was ordered, and there is no time left.
    Interrupted,
}

impl Work {
    pub async fn run(mut self) -> (Assignment, WorkEnd) {
        let end = match self.work().await {
            Ok(end) => end,
            Err(LogError::LeaseLost { .. }) => WorkEnd::Lost,
            Err(error) => WorkEnd::Failed(error),
        };
        (self.assignment, end)
    }

    fn shared(&self) -> &super::consumer::Shared {
        &self.shop.consumer.0
    }

    fn is_ordered_off(&self) -> bool {
        *self.orders.borrow() != Order::Work
    }

    async fn work(&mut self) -> Result<WorkEnd> {
        let lane = self.shared().topic.lane(self.assignment.partition).await?;
        let mut hint = lane.changed();
        let mut failures = 0;
        loop {
            if self.is_ordered_off() {
                return Ok(WorkEnd::HandedOff);
            }
            match self.turn().await {
                Ok(true) => failures = 0,
                Ok(false) if self.shop.drain => return Ok(WorkEnd::AtEnd),
                Ok(false) => {
                    let clock = Arc::clone(&self.shared().environment().clock);
                    tokio::select! {
                        biased;
                        // The other end goes away with the run.
                        _ = self.orders.changed() => {}
                        () = hint.wait() => {}
                        () = clock.sleep(IDLE_WAIT_MAX) => {}
                    }
                }
                Err(error) if error.is_transient() => {
                    failures += 1;
                    tracing::warn!(partition = self.assignment.partition, %error, "trying again");
                    self.shared().rewind(self.assignment)?;
                    self.pause(failures).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One batch; says whether there was anything.
    async fn turn(&mut self) -> Result<bool> {
        let batch = self.shop.consumer.poll(self.assignment, self.shop.batch).await?;
        if batch.is_empty() {
            return Ok(false);
        }
        if let Some(gap) = batch.gap {
            self.shop.counts.missed.fetch_add(gap.to - gap.from, Ordering::Relaxed);
            self.shop.handler.missed(self.assignment.partition, gap).await;
        }
        let done = self.handle_all(&batch).await?;
        self.shop.consumer.checkpoint(self.assignment, done).await?;
        if done < batch.next {
            self.shared().rewind(self.assignment)?;
        }
        Ok(true)
    }

    /// Handles a batch in order; returns the first offset that is not done.
    async fn handle_all(&mut self, batch: &Batch) -> Result<u64> {
        let mut done = batch.next - batch.records.len() as u64;
        for record in &batch.records {
            if self.is_ordered_off() {
                break;
            }
            match self.handle(record).await? {
                Step::Done => done = record.offset + 1,
                Step::Interrupted => break,
            }
        }
        Ok(done)
    }

    /// Handles one record, as often as it takes.
    async fn handle(&mut self, record: &Record) -> Result<Step> {
        loop {
            let shop = Arc::clone(&self.shop);
            let attempt = AssertUnwindSafe(shop.handler.handle(record)).catch_unwind();
            let failure = tokio::select! {
                biased;
                () = self.lapse() => return Err(self.lost()),
                outcome = attempt => match outcome {
                    Ok(Ok(())) => {
                        shop.counts.handled.fetch_add(1, Ordering::Relaxed);
                        return Ok(Step::Done);
                    }
                    Ok(Err(failure)) => failure,
                    Err(_) => Failure::new("the handler panicked"),
                },
                () = self.out_of_time() => return Ok(Step::Interrupted),
            };
            shop.counts.failures.fetch_add(1, Ordering::Relaxed);
            let attempts = self.count_failure(record.offset).await?;
            tracing::warn!(
                partition = record.partition,
                offset = record.offset,
                attempts,
                "failed"
            );
            if let Some((most, sink)) = &shop.sink
                && attempts >= *most
            {
                return self.bury(sink.as_ref(), record, &failure, attempts).await;
            }
            if matches!(self.pause(attempts).await?, Step::Interrupted) {
                return Ok(Step::Interrupted);
            }
        }
    }

    /// Everything before the record is done, and it failed once more.
    async fn count_failure(&self, offset: u64) -> Result<u32> {
        let lease = self
            .shared()
            .change(self.assignment, |lease| {
                lease.fails = if lease.checkpoint == offset { lease.fails + 1 } else { 1 };
                lease.checkpoint = lease.checkpoint.max(offset);
            })
            .await?;
        Ok(lease.fails)
    }

    async fn bury(
        &mut self,
        sink: &dyn DeadLetters,
        record: &Record,
        failure: &Failure,
        attempts: u32,
    ) -> Result<Step> {
        let letter = DeadLetter {
            topic: self.shared().topic.name(),
            group: self.shared().name.to_string(),
            record: record.clone(),
            reason: cut(&failure.0),
            attempts,
        };
        let mut tries = 0;
        loop {
            let outcome = tokio::select! {
                biased;
                () = self.lapse() => return Err(self.lost()),
                outcome = sink.bury(&letter) => outcome,
                () = self.out_of_time() => return Ok(Step::Interrupted),
            };
            match outcome {
                Ok(()) => {
                    self.shop.counts.buried.fetch_add(1, Ordering::Relaxed);
                    return Ok(Step::Done);
                }
                Err(Failure(reason)) => {
                    tries += 1;
                    let error = LogError::Sink { reason };
                    tracing::warn!(partition = record.partition, offset = record.offset, %error, "kept");
                    if matches!(self.pause(tries).await?, Step::Interrupted) {
                        return Ok(Step::Interrupted);
                    }
                }
            }
        }
    }

    /// Waits before the next attempt, longer each time; a hand-off does not wait.
    async fn pause(&mut self, attempts: u32) -> Result<Step> {
        let environment = self.shared().environment().clone();
        let backoff = Backoff { attempts_max: u32::MAX, ..self.shop.retry };
        let wait = backoff.wait(attempts, environment.rng.as_ref()).unwrap_or(backoff.longest);
        if self.is_ordered_off() {
            return Ok(Step::Interrupted);
        }
        let mut orders = self.orders.clone();
        tokio::select! {
            biased;
            () = self.lapse() => Err(self.lost()),
            _ = orders.changed() => Ok(Step::Interrupted),
            () = environment.clock.sleep(wait) => Ok(Step::Done),
        }
    }

    fn lost(&self) -> LogError {
        let Assignment { partition, epoch } = self.assignment;
        self.shared().forget(self.assignment);
        LogError::LeaseLost { partition, epoch }
    }

    /// Waits until the lease can no longer be trusted.
    async fn lapse(&self) {
        while let Some(left) = self.shared().trusted() {
            self.shared().environment().clock.sleep(left).await;
        }
    }

    /// Waits until a hand-off is ordered and its time is up.
    async fn out_of_time(&self) {
        let mut orders = self.orders.clone();
        loop {
            let order = *orders.borrow_and_update();
            if let Order::HandOff { since, within } = order {
                let left = within.saturating_sub(self.shared().now().since(since));
                self.shared().environment().clock.sleep(left).await;
                return;
            }
            if orders.changed().await.is_err() {
                return;
            }
        }
    }
}
