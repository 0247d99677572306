//! What happened to messages, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use millpond_store::{Attributes, Result};

use crate::origin::MoveReason;

/// What happened to messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Event {
    /// Sent.
    Sent,
    /// Not sent, since it had been sent before.
    Duplicate,
    /// Received.
    Received,
    /// Acknowledged.
    Acked,
    /// Finished as failed.
    Failed,
    /// Given back after a failure.
    Nacked,
    /// Given back early.
    Released,
    /// Ended by its time to live or the queue's retention.
    Expired,
    /// Removed by a purge.
    Purged,
    /// Moved to the dead letters.
    DeadLettered,
    /// Shed for its age.
    ShedAge,
    /// Shed since too many waited.
    ShedDepth,
    /// Shed since a backlog stood.
    ShedDelay,
    /// Moved back from the dead letters.
    Redriven,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Sent,
        Self::Duplicate,
        Self::Received,
        Self::Acked,
        Self::Failed,
        Self::Nacked,
        Self::Released,
        Self::Expired,
        Self::Purged,
        Self::DeadLettered,
        Self::ShedAge,
        Self::ShedDepth,
        Self::ShedDelay,
        Self::Redriven,
    ];

    /// Its name, as stored and as shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Duplicate => "duplicate",
            Self::Received => "received",
            Self::Acked => "acked",
            Self::Failed => "failed",
            Self::Nacked => "nacked",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Purged => "purged",
            Self::DeadLettered => "dead_lettered",
            Self::ShedAge => "shed_age",
            Self::ShedDepth => "shed_depth",
            Self::ShedDelay => "shed_delay",
            Self::Redriven => "redriven",
        }
    }

    pub(crate) const fn of_move(reason: MoveReason) -> Self {
        match reason {
            MoveReason::ReceiveLimit | MoveReason::Parked => Self::DeadLettered,
            MoveReason::ShedAge => Self::ShedAge,
            MoveReason::ShedDepth => Self::ShedDepth,
            MoveReason::ShedDelay => Self::ShedDelay,
        }
    }
}

/// How often each thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals([u64; Event::ALL.len()]);

impl Totals {
    /// How often this happened.
    #[must_use]
    pub fn of(&self, event: Event) -> u64 {
        self.0.get(event as usize).copied().unwrap_or_default()
    }

    /// Each with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Event, u64)> {
        Event::ALL.into_iter().zip(self.0)
    }

    pub(crate) fn minus(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_sub(theirs);
        }
        self
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub(crate) fn attributes(&self) -> Attributes {
        let counted = self.iter().filter(|(_, count)| *count > 0);
        counted.fold(Attributes::new(), |attributes, (event, count)| {
            attributes.with(event.name(), i64::try_from(count).unwrap_or(i64::MAX))
        })
    }

    pub(crate) fn read(attributes: &Attributes) -> Result<Self> {
        let mut totals = Self::default();
        for (event, total) in Event::ALL.into_iter().zip(&mut totals.0) {
            if attributes.get(event.name()).is_some() {
                *total = u64::try_from(attributes.number(event.name())?).unwrap_or_default();
            }
        }
        Ok(totals)
    }
}

/// What happened here, since the last time it was stored.
#[derive(Debug, Default)]
pub struct Counters([AtomicU64; Event::ALL.len()]);

impl Counters {
    pub fn add(&self, event: Event, count: usize) {
        if let Some(counter) = self.0.get(event as usize).filter(|_| count > 0) {
            counter.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (total, counter) in totals.0.iter_mut().zip(&self.0) {
            *total = counter.load(Ordering::Relaxed);
        }
        totals
    }
}
