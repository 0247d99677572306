//! Who in this process wants to know of every queue's changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::advance::Advance;
use crate::error::{Result, SequencerError};
use crate::limits::{SUBSCRIBED_QUEUES_MAX, SUBSCRIPTIONS_MAX};
use crate::names::QueueName;

/// What waits to be told to one subscription: for each queue and epoch what was passed, joined.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    changes: Mutex<Changes>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Changes {
    waiting: BTreeMap<(QueueName, u64), Advance>,
    lagged: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, queue: &QueueName, epoch: u64, passed: Advance) {
        let mut changes = self.lock();
        if changes.waiting.len() >= SUBSCRIBED_QUEUES_MAX {
            changes.lagged = true;
        } else {
            let waiting = changes.waiting.entry((queue.clone(), epoch)).or_insert(passed);
            // Handles of one process may tell of two steps in either order.
            waiting.first = waiting.first.min(passed.first);
            waiting.next = waiting.next.max(passed.next);
        }
        drop(changes);
        self.arrived.notify_one();
    }

    /// The next change, when there is one.
    pub(crate) async fn next(&self) -> Result<(QueueName, u64, Advance)> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut changes = self.lock();
                if changes.lagged {
                    return Err(SequencerError::Lagged { limit: SUBSCRIBED_QUEUES_MAX });
                }
                if let Some(((queue, epoch), passed)) = changes.waiting.pop_first() {
                    return Ok((queue, epoch, passed));
                }
            }
            arrived.await;
        }
    }
}

/// Tells subscriptions to all queues what was passed through one handle and its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hub(Arc<Mutex<Vec<Weak<Inbox>>>>);

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Inbox>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self) -> Result<Arc<Inbox>> {
        let mut inboxes = self.lock();
        inboxes.retain(|inbox| inbox.strong_count() > 0);
        if inboxes.len() >= SUBSCRIPTIONS_MAX {
            let (what, unit) = ("number of subscriptions", "subscriptions");
            let (size, limit) = (inboxes.len() as u64 + 1, SUBSCRIPTIONS_MAX as u64);
            return Err(SequencerError::TooLarge { what, size, unit, limit });
        }
        let inbox = Arc::new(Inbox::default());
        inboxes.push(Arc::downgrade(&inbox));
        Ok(inbox)
    }

    pub(crate) fn announce(&self, queue: &QueueName, epoch: u64, passed: Advance) {
        for inbox in self.lock().iter().filter_map(Weak::upgrade) {
            inbox.add(queue, epoch, passed);
        }
    }
}
