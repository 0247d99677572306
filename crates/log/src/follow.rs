//! Following a partition: a read that waits.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::{Lane as _, SequencedLane};
use millpond_store::ChangeHint;

use crate::error::Result;
use crate::read::{Batch, Cursor, Gap};
use crate::seek::Seek;
use crate::topic::Topic;

/// Reads a partition from a place on, and waits for what comes. It needs no group and changes nothing.
pub struct Follower {
    topic: Topic,
    lane: Arc<SequencedLane>,
    partition: u32,
    cursor: Cursor,
    max: usize,
    hint: ChangeHint,
    wakes: u64,
}

impl Topic {
    /// Follows a partition from a place on, up to `max` records at a time.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub async fn follow(&self, partition: u32, place: Seek, max: usize) -> Result<Follower> {
        let lane = self.lane(partition).await?;
        let hint = lane.changed();
        let next = self.seek(partition, place).await?;
        let cursor = Cursor { next, aligned: false };
        Ok(Follower { topic: self.clone(), lane, partition, cursor, max, hint, wakes: 0 })
    }
}

impl Follower {
    /// The next records, as soon as there are any. Cancelling it loses nothing.
    ///
    /// # Errors
    /// As [`Topic::read`].
    pub async fn next(&mut self) -> Result<Batch> {
        loop {
            if let Some(batch) = self.ready().await? {
                return Ok(batch);
            }
            self.hint.wait().await;
            self.wakes += 1;
        }
    }

    /// The same, but nothing when none come within `wait`.
    ///
    /// # Errors
    /// As [`Topic::read`].
    pub async fn next_within(&mut self, wait: Duration) -> Result<Option<Batch>> {
        let clock = Arc::clone(&self.topic.environment().clock);
        tokio::select! {
            biased;
            batch = self.next() => batch.map(Some),
            () = clock.sleep(wait) => Ok(None),
        }
    }

    /// Where it reads on.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.cursor.next
    }

    /// How often it was woken up.
    #[must_use]
    pub const fn wakes(&self) -> u64 {
        self.wakes
    }

    /// What is there already.
    async fn ready(&mut self) -> Result<Option<Batch>> {
        let (from, mut cursor) = (self.cursor.next, self.cursor);
        let batch = self.topic.read_at(&self.lane, self.partition, &mut cursor, self.max).await?;
        if !batch.is_empty() {
            self.cursor = cursor;
            return Ok(Some(batch));
        }
        if self.wakes == 0 {
            return Ok(None);
        }
        // It was woken and finds nothing: everything may have been removed.
        let latest = self.lane.tail().await?;
        let again = self.topic.read_at(&self.lane, self.partition, &mut cursor, self.max).await?;
        if !again.is_empty() {
            self.cursor = cursor;
            return Ok(Some(again));
        }
        if latest <= from {
            return Ok(None);
        }
        self.cursor = Cursor { next: latest, aligned: true };
        let gap = Some(Gap { from, to: latest });
        Ok(Some(Batch { gap, next: latest, ..again }))
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { partition, cursor, wakes, .. } = self;
        write!(f, "Follower {{ partition: {partition}, cursor: {cursor:?}, wakes: {wakes} }}")
    }
}
