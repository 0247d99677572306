//! Wake-up hints: "something in this partition may have changed".

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::key::Partition;

/// Who waits for which partition, within one process. A partition costs memory only while somebody waits.
#[derive(Clone, Default)]
pub struct Hints {
    channels: Arc<Mutex<HashMap<Partition, Weak<Channel>>>>,
}

struct Channel {
    partition: Partition,
    changes: AtomicU64,
    notify: Notify,
    registry: Weak<Mutex<HashMap<Partition, Weak<Channel>>>>,
}

impl Hints {
    /// Nobody waits yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A hint for changes from now on.
    #[must_use]
    pub fn subscribe(&self, partition: &Partition) -> ChangeHint {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = channels.get(partition).and_then(Weak::upgrade).unwrap_or_else(|| {
            let channel = Arc::new(Channel {
                partition: partition.clone(),
                changes: AtomicU64::new(0),
                notify: Notify::new(),
                registry: Arc::downgrade(&self.channels),
            });
            channels.insert(partition.clone(), Arc::downgrade(&channel));
            channel
        });
        let seen = channel.changes.load(Ordering::Acquire);
        ChangeHint { channel, seen, poll: None }
    }

    /// Tells who waits for `partition` that it changed.
    pub fn touch(&self, partition: &Partition) {
        let channel = {
            let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
            channels.get(partition).and_then(Weak::upgrade)
        };
        if let Some(channel) = channel {
            channel.changes.fetch_add(1, Ordering::AcqRel);
            channel.notify.notify_waiters();
        }
    }

    /// How many partitions are waited for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints").field("partitions", &self.len()).finish()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let Some(registry) = self.registry.upgrade() else {
            return;
        };
        let mut channels = registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have subscribed anew meanwhile: only a dead entry is ours to remove.
        if channels.get(&self.partition).is_some_and(|channel| channel.strong_count() == 0) {
            channels.remove(&self.partition);
        }
    }
}

/// One waiter's view of a partition's changes. A hint may be spurious, and one from another process may be lost:
/// look at the store again, and look now and then without a hint.
pub struct ChangeHint {
    channel: Arc<Channel>,
    seen: u64,
    poll: Option<Poll>,
}

struct Poll {
    clock: Arc<dyn Clock>,
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl ChangeHint {
    /// The same hint, which also comes by itself: after `shortest`, then after twice as long each time, up to
    /// `longest`. For stores that other processes write to without telling.
    #[must_use]
    pub fn with_poll(
        mut self,
        clock: Arc<dyn Clock>,
        shortest: Duration,
        longest: Duration,
    ) -> Self {
        self.poll = Some(Poll { clock, shortest, longest, next: shortest });
        self
    }

    /// Waits until something may have changed since the hint was made or last waited for.
    pub async fn wait(&mut self) {
        let channel = Arc::clone(&self.channel);
        let changed = async {
            loop {
                let notified = channel.notify.notified();
                tokio::pin!(notified);
                // Listen before looking, so that a change in between is not missed.
                notified.as_mut().enable();
                if channel.changes.load(Ordering::Acquire) != self.seen {
                    return;
                }
                notified.await;
            }
        };
        match &mut self.poll {
            None => changed.await,
            Some(poll) => {
                tokio::select! {
                    biased;
                    () = changed => poll.next = poll.shortest,
                    () = poll.clock.sleep(poll.next) => poll.next = (poll.next * 2).min(poll.longest),
                }
            }
        }
        self.seen = self.channel.changes.load(Ordering::Acquire);
    }

    /// Tells the hint that there was something to find, so that polling starts over at its shortest.
    pub fn found(&mut self) {
        if let Some(poll) = &mut self.poll {
            poll.next = poll.shortest;
        }
    }
}

impl fmt::Debug for ChangeHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let polls_in = self.poll.as_ref().map(|poll| poll.next);
        f.debug_struct("ChangeHint")
            .field("partition", &self.channel.partition)
            .field("polls_in", &polls_in)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;
    use crate::time::Timestamp;

    #[tokio::test]
    async fn a_change_before_the_wait_is_seen_and_only_once() {
        let (hints, partition) = (Hints::new(), Partition::new("p").unwrap());
        let mut hint = hints.subscribe(&partition);
        hints.touch(&partition);
        hint.wait().await;
        let again = tokio::spawn(async move { hint.wait().await });
        tokio::task::yield_now().await;
        assert!(!again.is_finished());
        hints.touch(&partition);
        again.await.unwrap();
    }

    #[tokio::test]
    async fn nothing_is_kept_for_partitions_nobody_waits_for() {
        let (hints, partition) = (Hints::new(), Partition::new("p").unwrap());
        let (one, two) = (hints.subscribe(&partition), hints.subscribe(&partition));
        drop(one);
        assert_eq!(hints.len(), 1);
        drop(two);
        assert!(hints.is_empty());
    }

    #[tokio::test]
    async fn polling_backs_off_to_its_bound_and_starts_over() {
        let clock = VirtualClock::automatic(Timestamp::from_millis(0));
        let partition = Partition::new("p").unwrap();
        let (short, long) = (Duration::from_millis(100), Duration::from_millis(350));
        let mut hint =
            Hints::new().subscribe(&partition).with_poll(Arc::new(clock.clone()), short, long);
        let mut wakes = Vec::new();
        for _ in 0..4 {
            hint.wait().await;
            wakes.push(clock.now().as_millis());
        }
        assert_eq!(wakes, [100, 300, 650, 1_000]);
        hint.found();
        hint.wait().await;
        assert_eq!(clock.now().as_millis(), 1_100);
    }
}
