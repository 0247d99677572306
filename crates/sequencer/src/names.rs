//! Names, and the keys made of them.

use std::fmt;
use std::sync::Arc;

use millpond_store::{Key, Partition, Query, SortKey, SortRange};

use crate::error::{Result, SequencerError};
use crate::limits::{NAME_BYTES_MAX, QUEUE_BYTES_MAX, SHARDS};

/// First byte of the sort key of each kind of row in a queue's partition.
pub(crate) mod kind {
    /// The cursor; nothing behind it.
    pub(crate) const CURSOR: u8 = b'c';
    /// A gap: its life and first number behind it.
    pub(crate) const GAP: u8 = b'g';
    /// A message: its number behind it.
    pub(crate) const ITEM: u8 = b'i';
    /// A late arrival: its life and number behind it.
    pub(crate) const LATE: u8 = b'l';
    /// The order of late arrivals: life and count behind it.
    pub(crate) const LATE_ORDER: u8 = b'm';
    /// A reader: its name behind it.
    pub(crate) const READER: u8 = b'r';
}

/// The name of a queue: text of 1 to [`QUEUE_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`SequencerError::Invalid`] when empty, [`SequencerError::TooLarge`] when too long.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() {
            return Err(SequencerError::invalid("queue", "is empty"));
        }
        SequencerError::check_size("queue name", name.len(), QUEUE_BYTES_MAX)?;
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// In which part of the shared indexes the queue is: FNV-1a, since it must stay the same for ever.
    pub(crate) fn shard(&self) -> u64 {
        let hash = self.0.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash % SHARDS
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a sequencer, which begins the partitions of all its queues.
#[derive(Clone, Debug)]
pub(crate) struct Names(Arc<str>);

impl Names {
    pub(crate) fn new(name: &str) -> Result<Self> {
        if name.is_empty() || name.contains('/') {
            let problem = format!("{name:?} is empty or has a slash in it");
            return Err(SequencerError::invalid("sequencer name", problem));
        }
        SequencerError::check_size("sequencer name", name.len(), NAME_BYTES_MAX)?;
        Ok(Self(name.into()))
    }

    /// How the partition of every queue begins.
    pub(crate) fn queue_prefix(name: &str) -> String {
        format!("{name}/q/")
    }

    pub(crate) fn partition(&self, queue: &QueueName) -> Result<Partition> {
        Ok(Partition::new(format!("{}{queue}", Self::queue_prefix(&self.0)))?)
    }

    pub(crate) fn unsettled(&self, shard: u64) -> Result<Partition> {
        Ok(Partition::new(format!("{}/unsettled/{shard}", self.0))?)
    }

    pub(crate) fn queues(&self, shard: u64) -> Result<Partition> {
        Ok(Partition::new(format!("{}/queues/{shard}", self.0))?)
    }
}

/// The row of this kind with this rest of the key.
pub(crate) fn key(partition: &Partition, kind: u8, rest: &[u8]) -> Result<Key> {
    Ok(Key::of(partition.clone(), sort(kind, rest)?))
}

/// The row of this kind with this number.
pub(crate) fn number_key(partition: &Partition, kind: u8, number: u64) -> Result<Key> {
    key(partition, kind, &number.to_be_bytes())
}

/// The row of this kind with this number in a life of the queue.
pub(crate) fn life_key(partition: &Partition, kind: u8, life: u64, number: u64) -> Result<Key> {
    key(partition, kind, &life_rest(life, number))
}

fn life_rest(life: u64, number: u64) -> [u8; 16] {
    ((u128::from(life) << 64) | u128::from(number)).to_be_bytes()
}

pub(crate) fn sort(kind: u8, rest: &[u8]) -> Result<SortKey> {
    let mut bytes = Vec::with_capacity(1 + rest.len());
    bytes.push(kind);
    bytes.extend_from_slice(rest);
    Ok(SortKey::new(bytes)?)
}

/// The rows of this kind with numbers from `first` up to and without `end`.
pub(crate) fn numbers(partition: &Partition, kind: u8, first: u64, end: u64) -> Result<Query> {
    let range =
        SortRange::between(sort(kind, &first.to_be_bytes())?, sort(kind, &end.to_be_bytes())?);
    Ok(Query::new(partition.clone()).range(range))
}

/// The same within one life of the queue.
pub(crate) fn life_numbers(
    partition: &Partition,
    kind: u8,
    life: u64,
    first: u64,
    end: u64,
) -> Result<Query> {
    let (first, end) = (sort(kind, &life_rest(life, first))?, sort(kind, &life_rest(life, end))?);
    Ok(Query::new(partition.clone()).range(SortRange::between(first, end)))
}

/// All rows of this kind.
pub(crate) fn all(partition: &Partition, kind: u8) -> Result<Query> {
    Ok(Query::new(partition.clone()).range(SortRange::prefix(sort(kind, &[])?)))
}

/// The number at the end of a sort key.
pub(crate) fn number_of(key: &Key) -> Result<u64> {
    let number = key.sort.as_bytes().last_chunk::<8>().copied().map(u64::from_be_bytes);
    number.ok_or_else(|| {
        millpond_store::StoreError::corrupt(format!("item {key}"), "its key has no number").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_bounds_are_inclusive() {
        assert!(QueueName::new("q".repeat(QUEUE_BYTES_MAX)).is_ok());
        let error = QueueName::new("q".repeat(QUEUE_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "queue name is too large: 257 bytes, the limit is 256");
        assert_eq!(QueueName::new("").unwrap_err().to_string(), "queue is empty");
        assert!(Names::new("a/b").is_err() && Names::new("").is_err());
        assert!(Names::new(&"n".repeat(NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn shards_never_change() {
        let shards: Vec<u64> =
            ["a", "b", "orders/7"].map(|name| QueueName::new(name).unwrap().shard()).into();
        assert_eq!(shards, [12, 5, shards[2]]);
        assert!(shards[2] < SHARDS);
    }

    #[test]
    fn numbers_come_back_from_keys() {
        let partition = Partition::new("p").unwrap();
        for number in [0, 1, 256, u64::MAX] {
            let found = number_of(&number_key(&partition, kind::ITEM, number).unwrap()).unwrap();
            assert_eq!(found, number);
            let found = number_of(&life_key(&partition, kind::GAP, 3, number).unwrap()).unwrap();
            assert_eq!(found, number);
        }
    }
}
