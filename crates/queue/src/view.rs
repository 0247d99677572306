//! A segment with what is known of each of its messages.

use std::sync::Arc;

use millpond_lanes::{Entry, Index, Place, Segment};
use millpond_store::{Result, StoreError, Timestamp};

use crate::config::QueueConfig;
use crate::state::{self, Slot};

/// A segment's messages, without their bodies. Cheap to clone: what is the same in clones is shared.
#[derive(Debug, Clone)]
pub struct SegmentView {
    pub segment: Segment,
    index: Arc<Index>,
    slots: Arc<Vec<Slot>>,
    /// When its messages end, by the row and by the queue's retention.
    ends: Option<Timestamp>,
}

impl SegmentView {
    pub fn of(segment: Segment, config: &QueueConfig) -> Result<Self> {
        let corrupt = |what| StoreError::corrupt(format!("segment {:?}", segment.place), what);
        let index = segment.index()?.ok_or_else(|| corrupt("its index is not in its row"))?;
        let slots = state::decode(&segment.state, segment.count, segment.appended)
            .ok_or_else(|| corrupt("its delivery state cannot be read"))?;
        let ends = Some(ends_of(&segment, config));
        Ok(Self { index: Arc::new(index), slots: Arc::new(slots), ends, segment })
    }

    /// The same segment in a queue that may have been changed since.
    pub fn under(mut self, config: &QueueConfig) -> Self {
        self.ends = Some(ends_of(&self.segment, config));
        self
    }

    /// The same segment with the row as it was written just now.
    pub fn written(&mut self, segment: Segment) {
        self.segment = segment;
    }

    pub const fn place(&self) -> Place {
        self.segment.place
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub fn slot(&self, at: usize) -> Option<&Slot> {
        self.slots.get(at)
    }

    pub fn slot_mut(&mut self, at: usize) -> Option<&mut Slot> {
        Arc::make_mut(&mut self.slots).get_mut(at)
    }

    pub fn entry(&self, at: usize) -> Option<&Entry> {
        self.index.entries().get(at)
    }

    /// The group's hash; all messages without a group have the same.
    pub fn group(&self, at: usize) -> u32 {
        self.entry(at).and_then(|entry| entry.group).unwrap_or_default()
    }

    /// Moves the end of a message's lease.
    pub fn renew(&mut self, at: usize, token: u64, until: Timestamp) {
        if let Some(Slot::Leased { lease, .. }) = self.slot_mut(at)
            && lease.token == token
        {
            lease.until = until;
        }
    }

    /// Messages that are not finished, in order.
    pub fn undone(&self) -> impl DoubleEndedIterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_done())
    }

    pub fn is_done(&self) -> bool {
        self.slots.iter().all(Slot::is_done)
    }

    /// The state as stored.
    pub fn encode(&self) -> bytes::Bytes {
        state::encode(&self.slots, self.segment.appended)
    }

    /// When a message can be received, if ever.
    pub fn free_at(&self, at: usize) -> Option<Timestamp> {
        let free = self.slots.get(at)?.free_at()?;
        match self.entry(at)?.due {
            Some(due) => Some(free.max(due)),
            None => Some(free),
        }
    }

    /// Whether a message waits: not finished, not held, not on loan, and due.
    pub fn is_free(&self, at: usize, now: Timestamp) -> bool {
        self.free_at(at).is_some_and(|free| free <= now)
    }

    /// Whether a message is past its end. One on loan is left to its holder.
    pub fn is_expired(&self, at: usize, now: Timestamp) -> bool {
        self.ends_at(at).is_some_and(|end| end <= now)
    }

    /// When a message ends.
    pub fn ends_at(&self, at: usize) -> Option<Timestamp> {
        let own = self.entry(at).and_then(|entry| entry.expires);
        match (own, self.ends) {
            (Some(own), Some(ends)) => Some(own.min(ends)),
            (own, ends) => own.or(ends),
        }
    }

    /// How many can be received now, and when the next of the others can.
    pub fn availability(&self, now: Timestamp) -> (usize, Option<Timestamp>) {
        let (mut free, mut next) = (0, None::<Timestamp>);
        for (at, _) in self.undone() {
            match self.free_at(at) {
                Some(time) if time <= now => free += 1,
                Some(time) => next = Some(next.map_or(time, |next| next.min(time))),
                None => {}
            }
        }
        (free, next)
    }
}

/// When a segment's messages end, by the row and by the queue's retention.
fn ends_of(segment: &Segment, config: &QueueConfig) -> Timestamp {
    let kept = segment.appended.plus(config.retention);
    segment.ends.map_or(kept, |ends| ends.min(kept))
}
