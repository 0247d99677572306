//! What a worker is told.

use std::time::Duration;

use super::retry::RetryPolicy;
use crate::config::within;
use crate::error::{QueueError, Result};
use crate::limits::{DRAIN_MAX, MAINTAIN_EVERY, VISIBILITY_MAX};

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub concurrency: usize,
    pub visibility: Option<Duration>,
    pub heartbeat: bool,
    pub timeout: Option<Duration>,
    pub retry: RetryPolicy,
    pub name: String,
    pub drain: Option<Duration>,
    pub maintain_every: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 16,
            visibility: None,
            heartbeat: true,
            timeout: None,
            retry: RetryPolicy::default(),
            name: String::new(),
            drain: None,
            maintain_every: MAINTAIN_EVERY,
        }
    }
}

/// When a run ends: at whichever of these comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunUntil {
    pub(super) deadline: Option<Duration>,
    pub(super) empty: bool,
    pub(super) linger: Duration,
    pub(super) count: Option<u64>,
}

impl RunUntil {
    /// When it is told to shut down.
    #[must_use]
    pub fn shutdown() -> Self {
        Self::default()
    }

    /// This long after it began. It stops receiving some time before ([`drain`](super::Worker::drain)), and what
    /// still runs at the deadline is released.
    #[must_use]
    pub fn deadline(after: Duration) -> Self {
        Self { deadline: Some(after), ..Self::default() }
    }

    /// When nothing can be received and nothing that was is still in work.
    #[must_use]
    pub fn empty() -> Self {
        Self { empty: true, ..Self::default() }
    }

    /// When this many messages were received, and dealt with.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self { count: Some(count), ..Self::default() }
    }

    /// Also this long after it began.
    #[must_use]
    pub fn or_deadline(self, after: Duration) -> Self {
        Self { deadline: Some(after), ..self }
    }

    /// Also when the queue is empty.
    #[must_use]
    pub fn or_empty(self) -> Self {
        Self { empty: true, ..self }
    }

    /// Also when this many messages were received, and dealt with.
    #[must_use]
    pub fn or_count(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }

    /// With [`empty`](Self::empty): a message that can be received within this time (one that is delayed, or that
    /// another has) is waited for. Default: none is.
    #[must_use]
    pub fn linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Some(deadline) = self.deadline {
            within("deadline", deadline, Duration::from_millis(1), VISIBILITY_MAX)?;
        }
        if self.count == Some(0) {
            return Err(QueueError::invalid("count", "is 0: there is nothing to do"));
        }
        Ok(())
    }

    /// How long after its beginning a run stops receiving, and when it ends.
    pub(super) fn ends(&self, drain: Option<Duration>) -> Option<(Duration, Duration)> {
        let deadline = self.deadline?;
        let drain = drain.unwrap_or_else(|| (deadline / 10).min(DRAIN_MAX));
        Some((deadline.saturating_sub(drain), deadline))
    }
}
