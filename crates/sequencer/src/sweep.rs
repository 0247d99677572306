//! Healing queues that nobody writes to, and gap timers.

use std::ops::Range;
use std::time::Duration;

use millpond_store::{Query, Store as _};

use crate::advance::Advance;
use crate::config::{GapPolicy, Start};
use crate::cursor::{Cursor, Stored};
use crate::error::{Result, SequencerError};
use crate::gap::GapReason;
use crate::heal::Sure;
use crate::limits::{SHARDS, SWEEP_QUEUES_MAX};
use crate::names::QueueName;
use crate::sequencer::{Place, Sequencer, Swap, queue_of};
use crate::unsettled::Unsettled;

/// What one pass of the sweeper did.
#[derive(Debug, Default)]
pub struct Swept {
    /// Queues that were looked at.
    pub visited: usize,
    /// What their cursors passed.
    pub advanced: Vec<(QueueName, Advance)>,
    /// Numbers that were skipped because they did not come in time.
    pub skipped: Vec<(QueueName, Range<u64>)>,
    /// Queues that were parked, and the number that did not come: look into it.
    pub parked: Vec<(QueueName, u64)>,
    /// Queues that left the index, since nothing waits in them.
    pub settled: usize,
    /// Queues that could not be looked at; the next pass will.
    pub failed: Vec<(QueueName, SequencerError)>,
}

impl Sequencer {
    /// One pass over the queues in which messages wait, and over those in which a call of this handle failed
    /// halfway. Queues in which nothing waits cost nothing.
    ///
    /// # Errors
    /// As the store's, when the index cannot be read.
    pub async fn sweep(&self) -> Result<Swept> {
        let mut swept = Swept::default();
        for queue in self.known.take_suspects() {
            self.visit(&queue, None, &mut swept).await;
        }
        // A pass that ends at its bound should not always leave out the same part.
        let begin = self.environment.rng.below(SHARDS);
        for shard in (0..SHARDS).map(|shard| (begin + shard) % SHARDS) {
            let mut next = Some(Query::new(self.names.unsettled(shard)?));
            while let Some(query) = next.filter(|_| swept.visited < SWEEP_QUEUES_MAX) {
                let page = self.store.query(query).await?;
                for item in &page.items {
                    let row = Unsettled::decode(item)?;
                    self.visit(&queue_of(&item.key)?, Some(row), &mut swept).await;
                }
                next = page.next;
            }
        }
        Ok(swept)
    }

    /// One pass over every queue there is: also heals what a process left that died between storing a message and
    /// moving the cursor, before it acknowledged anything. It reads one or two rows of each queue.
    ///
    /// # Errors
    /// As the store's, when the list of queues cannot be read.
    pub async fn sweep_all(&self) -> Result<Swept> {
        let mut swept = self.sweep().await?;
        for queue in self.queues().await? {
            self.visit(&queue, None, &mut swept).await;
        }
        Ok(swept)
    }

    /// Sweeps every `interval` until `stop` is ready. Failures are logged, and the next pass tries again.
    pub async fn sweep_every(&self, interval: Duration, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.environment.clock.sleep(interval) => {}
            }
            match self.sweep().await {
                Ok(swept) => {
                    for (queue, error) in &swept.failed {
                        tracing::warn!(%queue, %error, "a queue could not be swept");
                    }
                }
                Err(error) => tracing::warn!(%error, "a sweep failed"),
            }
        }
    }

    async fn visit(&self, queue: &QueueName, row: Option<Unsettled>, swept: &mut Swept) {
        swept.visited += 1;
        if let Err(error) = self.try_visit(queue, row, swept).await {
            self.known.suspect(queue);
            swept.failed.push((queue.clone(), error));
        }
    }

    async fn try_visit(
        &self,
        queue: &QueueName,
        row: Option<Unsettled>,
        swept: &mut Swept,
    ) -> Result<()> {
        let place = self.place_of(queue)?;
        let (first, _) = match self.config.start {
            Start::FirstSeen => self.stored_numbers(&place, 0, 1).await?,
            _ => Default::default(),
        };
        let stored = match self.look(&place, first.first().copied()).await {
            // Nothing was ever put, or nothing that counts.
            Err(SequencerError::NotStarted { .. }) => return Ok(()),
            looked => looked?,
        };
        let healed = self.heal(&place, stored, &Sure::default()).await?;
        swept.advanced.extend(healed.advance.map(|passed| (queue.clone(), passed)));
        let next = healed.stored.cursor.next;
        let (waiting, _) = self.stored_numbers(&place, next, 1).await?;
        match (waiting.first().copied(), row) {
            (None, Some(row)) => {
                swept.settled += usize::from(self.remove_unsettled(&place, &row).await?);
                Ok(())
            }
            (None, None) => Ok(()),
            (Some(waiting), row) => {
                let row = match row.filter(|row| row.gap == next) {
                    Some(row) => row,
                    None => self.write_unsettled(&place, next, row).await?,
                };
                self.apply_timer(&place, healed.stored, &row, waiting, swept).await
            }
        }
    }

    async fn apply_timer(
        &self,
        place: &Place,
        stored: Stored,
        row: &Unsettled,
        waiting: u64,
        swept: &mut Swept,
    ) -> Result<()> {
        let (queue, next) = (&place.queue, stored.cursor.next);
        let waited = self.environment.now().since(row.since);
        match self.config.gaps {
            GapPolicy::SkipAfter(after) if waited >= after => {
                let passed = self.skip_range(place, next..waiting, GapReason::Timeout).await?;
                tracing::info!(%queue, first = next, end = waiting, "numbers did not come and are skipped");
                swept.skipped.push((queue.clone(), next..waiting));
                swept.advanced.extend(passed.map(|passed| (queue.clone(), passed)));
                // The gap behind this one, if there is one, is seen now.
                let awaited = passed.map_or(next, |passed| passed.next);
                let (left, _) = self.stored_numbers(place, awaited, 1).await?;
                if !left.is_empty() {
                    self.write_unsettled(place, awaited, Some(*row)).await?;
                }
                Ok(())
            }
            GapPolicy::ParkAfter(after) if waited >= after && stored.cursor.parked.is_none() => {
                let becomes = Cursor { parked: Some(next), ..stored.cursor.clone() };
                if let Swap::Done(_) = self.swap(place, &stored, becomes, Vec::new()).await? {
                    tracing::warn!(%queue, next, "a number did not come and the queue is parked");
                    swept.parked.push((queue.clone(), next));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
