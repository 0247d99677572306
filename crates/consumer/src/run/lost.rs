//! Messages that were lost to others while they were worked on.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::entry::Entry;

/// Whoever keeps messages on loan says here which are not any more: nothing more is run for them.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    items: Mutex<HashSet<String>>,
    changed: Notify,
}

impl Lost {
    /// Another has this one.
    pub fn add(&self, item: &str) {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).insert(item.to_owned());
        self.changed.notify_waiters();
    }

    pub fn has(&self, item: &str) -> bool {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).contains(item)
    }

    pub(super) fn has_entry(&self, entry: &Entry) -> bool {
        entry.item().is_some_and(|item| self.has(item))
    }

    /// Waits until all of these are lost.
    pub(super) async fn all_of(&self, entries: &[&Entry]) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if entries.iter().all(|entry| self.has_entry(entry)) {
                return;
            }
            changed.await;
        }
    }
}
