//! The marker of a batch: the one small row that a batch of a stream writes. A marker that is still there when one of its
//! ends comes again tells that the process did not live to answer.
//!
//! Sort key: `m`, then the first record as in a message's row. A batch that succeeds leaves its marker to its expiry.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `at` | number | when the batch began, ms since 1970 |
//! | `first` | bytes | the sort key of the first record's row; missing when that has been answered for |
//! | `last` | bytes | that of the last record |

use bytes::Bytes;
use millpond_store::{Attributes, Item, SortKey, StoreError, Timestamp, Value, Version};

use crate::position::{Position, RecordKey};

/// The ends of a batch, and what lies between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// All records, by rising sequence number.
    pub records: Vec<RecordKey>,
}

impl Span {
    /// The records of a batch. Nothing when there are none.
    #[must_use]
    pub fn of(mut records: Vec<RecordKey>) -> Option<Self> {
        records.sort_unstable();
        records.dedup();
        (!records.is_empty()).then_some(Self { records })
    }

    pub(super) fn first(&self) -> Option<&RecordKey> {
        self.records.first()
    }

    pub(super) fn last(&self) -> Option<&RecordKey> {
        self.records.last()
    }

    pub(super) fn contains(&self, record: &RecordKey) -> bool {
        self.records.binary_search(record).is_ok()
    }
}

/// A batch that has begun.
#[derive(Debug, Clone)]
pub struct Marker {
    /// An earlier batch, with its first or last record among these, never ended.
    pub suspect: bool,
    /// The batch.
    pub span: Span,
    /// Its own row.
    pub(crate) own: Option<Version>,
    /// Rows of earlier batches that never ended.
    pub(crate) others: Vec<Open>,
}

/// The row of a batch that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    pub sort: SortKey,
    pub version: Version,
    pub first: Option<RecordKey>,
    pub last: Option<RecordKey>,
}

impl Open {
    /// Whether one of its ends is among these records.
    pub fn touches(&self, span: &Span) -> bool {
        self.first.iter().chain(&self.last).any(|record| span.contains(record))
    }

    /// What is left of it once these records have been answered for. Nothing when it is all answered for.
    pub fn without(&self, span: &Span) -> Option<Self> {
        let keep = |end: &Option<RecordKey>| end.clone().filter(|record| !span.contains(record));
        let (first, last) = (keep(&self.first), keep(&self.last));
        (first.is_some() || last.is_some()).then(|| Self { first, last, ..self.clone() })
    }

    pub fn encode(&self, now: Timestamp) -> Result<Attributes, StoreError> {
        let at = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let mut attributes = Attributes::new().with("at", at);
        for (name, end) in [("first", &self.first), ("last", &self.last)] {
            if let Some(record) = end {
                attributes.set(name, Position::of(record.clone()).sort_key()?.to_bytes());
            }
        }
        Ok(attributes)
    }

    pub fn decode(item: &Item) -> Self {
        let end = |name| match item.attributes.get(name) {
            Some(Value::Bytes(bytes)) => {
                Some(Position::from_sort_key(&SortKey::new(bytes.clone()).ok()?)?.record)
            }
            _ => None,
        };
        let (first, last) = (end("first"), end("last"));
        Self { sort: item.key.sort.clone(), version: item.version, first, last }
    }
}

/// The sort key of the marker of a batch that begins with this record.
pub(super) fn sort_key(record: &RecordKey) -> Result<SortKey, StoreError> {
    let position = Position::of(record.clone()).sort_key()?;
    let mut bytes = vec![b'm'];
    bytes.extend_from_slice(position.as_bytes());
    SortKey::new(Bytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Sequence;

    fn record(number: u64) -> RecordKey {
        RecordKey::Sequence(Sequence::from(number), None)
    }

    fn span(numbers: std::ops::RangeInclusive<u64>) -> Span {
        Span::of(numbers.map(record).collect()).unwrap()
    }

    #[test]
    fn halves_of_a_batch_touch_its_marker_and_take_their_end_away() {
        let open = Open {
            sort: sort_key(&record(1)).unwrap(),
            version: Version::from_u64(1),
            first: Some(record(1)),
            last: Some(record(9)),
        };
        assert!(open.touches(&span(1..=4)) && open.touches(&span(5..=9)));
        assert!(!open.touches(&span(2..=8)) && !open.touches(&span(10..=12)));
        let rest = open.without(&span(1..=4)).unwrap();
        assert_eq!((rest.first.as_ref(), rest.last.as_ref()), (None, Some(&record(9))));
        assert_eq!(rest.without(&span(5..=9)), None);
        let item = Item {
            key: millpond_store::Key::of(
                millpond_store::Partition::new("p").unwrap(),
                open.sort.clone(),
            ),
            attributes: open.encode(Timestamp::default()).unwrap(),
            version: open.version,
            expiry: None,
        };
        assert_eq!(Open::decode(&item), open);
    }
}
