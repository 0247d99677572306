//! Segments that were read from afar, kept for who reads them next, up to a bound.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use millpond_lanes::Message;
use millpond_store::UniqueId;

/// The messages of a segment, shared.
pub(crate) type Messages = Arc<Vec<Message>>;

/// What was used least recently goes first.
#[derive(Debug)]
pub(crate) struct ReadCache {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    segments: HashMap<UniqueId, Entry>,
    /// Segments by when they were last used.
    by_use: BTreeMap<u64, UniqueId>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    messages: Messages,
    bytes: usize,
    used: u64,
}

impl ReadCache {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, kept: Mutex::default() }
    }

    /// The messages of the segment that this append made.
    pub fn get(&self, segment: UniqueId) -> Option<Messages> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let entry = kept.segments.get_mut(&segment)?;
        let before = std::mem::replace(&mut entry.used, now);
        let messages = Arc::clone(&entry.messages);
        kept.by_use.remove(&before);
        kept.by_use.insert(now, segment);
        Some(messages)
    }

    /// Keeps a segment, and lets others go for it. One that is larger than half of the bound is not kept.
    pub fn keep(&self, segment: UniqueId, messages: &Messages) {
        let bytes = messages.iter().map(Message::size).sum::<usize>();
        if bytes > self.bytes_max / 2 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let used = kept.uses;
        let entry = Entry { messages: Arc::clone(messages), bytes, used };
        if let Some(before) = kept.segments.insert(segment, entry) {
            kept.by_use.remove(&before.used);
            kept.bytes -= before.bytes;
        }
        kept.by_use.insert(used, segment);
        kept.bytes += bytes;
        while kept.bytes > self.bytes_max {
            let Some((_, oldest)) = kept.by_use.pop_first() else { break };
            if let Some(gone) = kept.segments.remove(&oldest) {
                kept.bytes -= gone.bytes;
            }
        }
    }

    /// Bytes in it.
    pub fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_kept_and_the_least_recently_used_goes() {
        let cache = ReadCache::new(1_000);
        let id = |n: u8| UniqueId::from_bytes([n; 16]);
        let messages = |bytes: usize| Arc::new(vec![Message::new(vec![0; bytes])]);
        for n in 0..3 {
            cache.keep(id(n), &messages(300));
        }
        assert!(cache.get(id(0)).is_some());
        cache.keep(id(3), &messages(300));
        assert!(cache.get(id(1)).is_none(), "the one that was not used should have gone");
        assert!(cache.get(id(0)).is_some() && cache.get(id(3)).is_some());
        assert_eq!(cache.bytes(), 900);
        cache.keep(id(9), &messages(501));
        assert!(cache.get(id(9)).is_none());
        cache.keep(id(3), &messages(100));
        assert_eq!(cache.bytes(), 700);
    }
}
