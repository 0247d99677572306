//! Where a message stands in its source: what its state is kept under.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use millpond_store::{SortKey, StoreError};
use serde::Serialize;

use crate::limits::{ID_BYTES_MAX, SEQUENCE_DIGITS_MAX};

/// A sequence number as a source gives it: a whole number of any length, compared as a number.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct Sequence(Arc<str>);

impl Sequence {
    /// Checks a text: digits only, and not too many.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (digits && text.len() <= SEQUENCE_DIGITS_MAX).then(|| Self(text.into()))
    }

    /// As the source wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits that count.
    fn digits(&self) -> &str {
        let trimmed = self.0.trim_start_matches('0');
        if trimmed.is_empty() { "0" } else { trimmed }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let digits = self.digits();
        bytes.push(u8::try_from(digits.len()).expect("at most 128 digits"));
        bytes.extend_from_slice(digits.as_bytes());
    }
}

impl From<u64> for Sequence {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl PartialEq for Sequence {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sequence {}

impl PartialOrd for Sequence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sequence {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.digits(), other.digits());
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

impl std::hash::Hash for Sequence {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.digits().hash(state);
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What names a record within its shard or queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordKey {
    /// A stream's sequence number, and what keeps apart records of several shards where the source does not say which
    /// shard a record is from (DynamoDB Streams: 8 bytes of the event id's digest).
    Sequence(Sequence, Option<[u8; 8]>),
    /// A queue's message id.
    Id(Arc<str>),
}

/// Where a message stands: its record, its place in an aggregate, its place in what the extractor made of that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The record.
    pub record: RecordKey,
    /// The place in a KPL aggregate, from 0.
    pub sub: u32,
    /// The place among the messages that the extractor found, from 0.
    pub part: u32,
}

impl Position {
    /// The first message of a record.
    #[must_use]
    pub const fn of(record: RecordKey) -> Self {
        Self { record, sub: 0, part: 0 }
    }

    /// The sort key of the message's row: `s`, then the record, then the two places. Rows of a stream sort by sequence
    /// number.
    ///
    /// ```text
    /// 's' 'n'  digits 1 byte, the digits  sub 4 bytes  part 4 bytes  (tie 8 bytes)
    /// 's' 'i'  the id's bytes, 0          sub 4 bytes  part 4 bytes
    /// ```
    pub(crate) fn sort_key(&self) -> Result<SortKey, StoreError> {
        let mut bytes = self.prefix();
        bytes.extend_from_slice(&self.sub.to_be_bytes());
        bytes.extend_from_slice(&self.part.to_be_bytes());
        if let RecordKey::Sequence(_, Some(tie)) = &self.record {
            bytes.extend_from_slice(tie);
        }
        SortKey::new(bytes)
    }

    /// What all messages with this sequence number begin with.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        let mut bytes = vec![b's'];
        match &self.record {
            RecordKey::Sequence(sequence, _) => {
                bytes.push(b'n');
                sequence.encode(&mut bytes);
            }
            RecordKey::Id(id) => {
                bytes.push(b'i');
                bytes.extend_from_slice(id.as_bytes());
                bytes.push(0);
            }
        }
        bytes
    }

    /// Reads a sort key back.
    pub(crate) fn from_sort_key(sort: &SortKey) -> Option<Self> {
        let bytes = sort.as_bytes().strip_prefix(b"s")?;
        let (kind, rest) = bytes.split_first()?;
        let (record, rest) = match kind {
            b'n' => {
                let (len, rest) = rest.split_first()?;
                let (digits, rest) = rest.split_at_checked(usize::from(*len))?;
                let sequence = Sequence::new(std::str::from_utf8(digits).ok()?)?;
                let tie = rest.get(8..).filter(|tie| !tie.is_empty());
                let tie = tie.map(<[u8; 8]>::try_from).transpose().ok()?;
                (RecordKey::Sequence(sequence, tie), rest.get(..8)?)
            }
            b'i' => {
                let end = rest.len().checked_sub(9)?;
                let (id, rest) = rest.split_at_checked(end)?;
                let id = std::str::from_utf8(id).ok()?;
                (RecordKey::Id(id.into()), rest.strip_prefix(&[0])?)
            }
            _ => return None,
        };
        let (sub, part) = rest.split_at_checked(4)?;
        let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
        Some(Self { record, sub: number(sub)?, part: number(part)? })
    }

    /// The sequence number, in a stream.
    #[must_use]
    pub const fn sequence(&self) -> Option<&Sequence> {
        match &self.record {
            RecordKey::Sequence(sequence, _) => Some(sequence),
            RecordKey::Id(_) => None,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.record {
            RecordKey::Sequence(sequence, _) => write!(f, "{sequence}")?,
            RecordKey::Id(id) => write!(f, "{id}")?,
        }
        match (self.sub, self.part) {
            (0, 0) => Ok(()),
            (sub, 0) => write!(f, "/{sub}"),
            (sub, part) => write!(f, "/{sub}/{part}"),
        }
    }
}

/// Whether a text can be a message's id: printable, not empty, not too long.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= ID_BYTES_MAX && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    use super::*;

    fn sequence(text: &str) -> Sequence {
        Sequence::new(text).unwrap()
    }

    fn positions() -> impl Strategy<Value = Position> {
        let stream = ("[0-9]{1,56}", proptest::option::of(any::<[u8; 8]>()))
            .prop_map(|(text, tie)| RecordKey::Sequence(sequence(&text), tie));
        let record = prop_oneof![stream, "[a-zé/-]{1,40}".prop_map(|id| RecordKey::Id(id.into()))];
        (record, any::<u32>(), any::<u32>()).prop_map(|(record, sub, part)| Position {
            record,
            sub,
            part,
        })
    }

    #[test]
    fn sequence_numbers_compare_as_big_integers() {
        assert!(sequence("9") < sequence("10"));
        let (a, b) = ("4".repeat(56), format!("{}5", "4".repeat(55)));
        assert!(sequence(&a) < sequence(&b) && sequence(&"9".repeat(55)) < sequence(&a));
        assert_eq!(sequence("007"), sequence("7"));
        assert_eq!(sequence("007").as_str(), "007");
        for bad in ["", "-1", "1e3", "x", &"1".repeat(SEQUENCE_DIGITS_MAX + 1)] {
            assert!(Sequence::new(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn sort_keys_come_back(position in positions()) {
            let sort = position.sort_key().unwrap();
            assert_eq!(Position::from_sort_key(&sort), Some(position));
        }

        #[test]
        fn sort_keys_of_a_stream_sort_by_number(a in "[0-9]{1,40}", b in "[0-9]{1,40}", sub in 0..9_u32) {
            let key = |text: &str, sub| {
                let record = RecordKey::Sequence(sequence(text), None);
                Position { record, sub, part: 0 }
            };
            let (first, second) = (key(&a, sub), key(&b, 4));
            let sorts = first.sort_key().unwrap().cmp(&second.sort_key().unwrap());
            assert_eq!(first.cmp(&second), sorts);
        }

        #[test]
        fn foreign_sort_keys_are_no_positions(bytes in proptest::collection::vec(any::<u8>(), 1..64)) {
            if let Some(position) = Position::from_sort_key(&SortKey::new(bytes).unwrap()) {
                position.sort_key().unwrap();
            }
        }
    }
}
