//! What was counted since the start, for those who export it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was counted since [`Sqs::open`](crate::Sqs::open), in this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SqsMetrics {
    /// Requests that were answered, by action and by code: `OK`, or an error's name in the JSON encoding. A request
    /// whose action is not known counts as `Unknown`.
    pub requests: BTreeMap<(&'static str, &'static str), u64>,
    /// Messages that were accepted; what was known to be sent before is not counted.
    pub messages_sent: u64,
    /// Messages that were handed out.
    pub messages_received: u64,
    /// Messages that were deleted.
    pub messages_deleted: u64,
    /// Messages that were claimed for a client that had gone, and were given back.
    pub messages_returned: u64,
    /// Requests that wait for messages right now.
    pub waiting: usize,
}

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    requests: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub deleted: AtomicU64,
    pub returned: AtomicU64,
    pub waiting: AtomicUsize,
}

impl Counted {
    pub fn answered(&self, action: &'static str, code: &'static str) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((action, code)).or_default() += 1;
    }

    pub fn read(&self) -> SqsMetrics {
        SqsMetrics {
            requests: self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            messages_sent: self.sent.load(Ordering::Relaxed),
            messages_received: self.received.load(Ordering::Relaxed),
            messages_deleted: self.deleted.load(Ordering::Relaxed),
            messages_returned: self.returned.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }
}
