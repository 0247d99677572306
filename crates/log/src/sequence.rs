//! Idempotent producers: a batch is in the log once, however often it is sent.
//!
//! In the partition's lane, sort key `p` and the producer's id; written together with the batch:
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `first` | number | the sequence of the first record of the last batch |
//! | `next` | number | the sequence that comes next |
//! | `o` | number | the offset of the first record of the last batch |
//!
//! It expires a week after the last batch.

use millpond_lanes::{Message, Terms};
use millpond_store::{Attributes, Expect, Expiry, Item, Key, StoreError, Write};

use crate::append::{Appended, Sequence};
use crate::config::required;
use crate::error::{LogError, Result, number};
use crate::limits::{PRODUCER_KEPT, PRODUCER_LOOKS_MAX};
use crate::log::contended;
use crate::topic::Topic;

/// The first byte of a producer's sort key.
const PREFIX: u8 = b'p';

/// Where a producer stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stopped {
    first: u64,
    next: u64,
    offset: u64,
}

impl Stopped {
    fn decode(item: &Item) -> Result<Self> {
        let number = |name| {
            required(&item.attributes, name).ok_or_else(|| {
                LogError::corrupt(format!("producer {}", item.key), format!("it has no {name}"))
            })
        };
        Ok(Self { first: number("first")?, next: number("next")?, offset: number("o")? })
    }

    /// What to do with a batch of `count` records that begins with `sequence`: nothing when it is the next one.
    fn judge(self, sequence: u64, count: u64) -> Result<Option<u64>> {
        if sequence == self.next {
            return Ok(None);
        }
        let end = sequence.saturating_add(count);
        if end > self.next {
            return Err(LogError::OutOfSequence { expected: self.next, got: sequence });
        }
        if sequence < self.first {
            return Err(LogError::AlreadyAppended { sequence, next: self.next });
        }
        Ok(Some(self.offset + (sequence - self.first)))
    }
}

impl Topic {
    pub(crate) async fn append_once(
        &self,
        partition: u32,
        messages: Vec<Message>,
        fence: Option<u64>,
        sequence: &Sequence,
    ) -> Result<Appended> {
        let mut sort = vec![PREFIX];
        sort.extend_from_slice(sequence.producer.as_str().as_bytes());
        let key = Key::new(self.0.lanes.name(partition), sort)?;
        let count = messages.len();
        let next = sequence.first.checked_add(count as u64);
        let next = next.ok_or_else(|| LogError::invalid("sequence", "is too great to go on"))?;
        let attributes =
            Attributes::new().with("first", number(sequence.first)).with("next", number(next));
        for _ in 0..PRODUCER_LOOKS_MAX {
            let expect = match self.0.log.0.store.get(&key).await? {
                None => Expect::Absent,
                Some(item) => {
                    let stopped = Stopped::decode(&item)?;
                    if let Some(first) = stopped.judge(sequence.first, count as u64)? {
                        return Ok(Appended { partition, first, count, duplicate: true });
                    }
                    Expect::Version(item.version)
                }
            };
            let environment = self.environment();
            let version = environment.version();
            let expiry = Expiry::at(environment.now().plus(PRODUCER_KEPT));
            let beside = Write::put(key.clone(), attributes.clone(), expect, version);
            let terms = Terms { fence, beside: Some(beside.expires(expiry)) };
            match self.append_segment(partition, messages.clone(), terms).await {
                Ok(first) => return Ok(Appended { partition, first, count, duplicate: false }),
                // Another instance of the same producer was faster, or an attempt of ours: look again.
                Err(LogError::Store(StoreError::Conflict(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(contended("producer's sequence").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_new_known_or_out_of_sequence() {
        let stopped = Stopped { first: 10, next: 15, offset: 100 };
        assert_eq!(stopped.judge(15, 3).unwrap(), None);
        assert_eq!(stopped.judge(10, 5).unwrap(), Some(100));
        assert_eq!(stopped.judge(12, 3).unwrap(), Some(102));
        assert!(matches!(stopped.judge(9, 1), Err(LogError::AlreadyAppended { next: 15, .. })));
        assert!(matches!(stopped.judge(16, 1), Err(LogError::OutOfSequence { expected: 15, .. })));
        assert!(matches!(stopped.judge(12, 4), Err(LogError::OutOfSequence { expected: 15, .. })));
    }
}
