//! Aggregates of the Kinesis Producer Library: many user records in one record.
//!
//! ```text
//! magic     4 bytes, F3 89 9A C2
//! message   protobuf, AggregatedRecord
//! checksum  16 bytes, MD5 of the message
//! ```

use bytes::Bytes;
use md5::{Digest as _, Md5};
use prost::Message as _;

use crate::limits::MESSAGES_MAX;

const MAGIC: [u8; 4] = [0xF3, 0x89, 0x9A, 0xC2];
const CHECKSUM_BYTES: usize = 16;

/// The message inside, as the library's own description has it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Aggregate {
    /// The partition keys that the records name.
    #[prost(string, repeated, tag = "1")]
    pub partition_keys: Vec<String>,
    /// The explicit hash keys that the records name.
    #[prost(string, repeated, tag = "2")]
    pub explicit_hash_keys: Vec<String>,
    /// The records.
    #[prost(message, repeated, tag = "3")]
    pub records: Vec<AggregatedRecord>,
}

/// One user record inside.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AggregatedRecord {
    /// Which partition key.
    #[prost(uint64, tag = "1")]
    pub partition_key_index: u64,
    /// Which explicit hash key, if any.
    #[prost(uint64, optional, tag = "2")]
    pub explicit_hash_key_index: Option<u64>,
    /// What it carries.
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
}

/// Why an aggregate is broken. The record goes to the dead records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AggregateError {
    /// It begins as one, and ends before its checksum could.
    #[error("the aggregate has only {0} bytes")]
    Short(usize),
    /// Its checksum is not that of its bytes.
    #[error("the aggregate's checksum does not match its bytes")]
    Checksum,
    /// Its checksum is right, but it cannot be read.
    #[error("the aggregate cannot be read: {0}")]
    Unreadable(String),
    /// A user record names a key that the aggregate does not have.
    #[error("user record {record} of the aggregate names partition key {index}, of {keys}")]
    UnknownKey {
        /// Which user record, from 0.
        record: usize,
        /// The key that it names.
        index: u64,
        /// How many there are.
        keys: usize,
    },
    /// An explicit hash key is not a number of 128 bits.
    #[error("user record {0} of the aggregate has an explicit hash key that is not a number")]
    HashKey(usize),
    /// There are too many.
    #[error("the aggregate has {0} user records, at most {MESSAGES_MAX} are accepted")]
    TooMany(usize),
}

/// One record as its producer put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRecord {
    /// Its partition key.
    pub partition_key: String,
    /// Where it hashes to, which decides on its shard.
    pub hash: u128,
    /// What it carries.
    pub data: Bytes,
}

/// The hash keys that a shard takes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashRange {
    /// The first.
    pub first: u128,
    /// The last.
    pub last: u128,
}

impl HashRange {
    /// Whether a hash key is in it.
    #[must_use]
    pub const fn contains(&self, hash: u128) -> bool {
        self.first <= hash && hash <= self.last
    }
}

impl Aggregate {
    /// The user records of a record, in order: the first has sub-sequence 0. Nothing when the record is no aggregate.
    ///
    /// # Errors
    /// When it begins as an aggregate and is broken.
    pub fn user_records(data: &Bytes) -> Result<Option<Vec<UserRecord>>, AggregateError> {
        let Some(rest) = data.strip_prefix(&MAGIC) else {
            return Ok(None);
        };
        let Some(end) = rest.len().checked_sub(CHECKSUM_BYTES) else {
            return Err(AggregateError::Short(data.len()));
        };
        let (message, checksum) = rest.split_at(end);
        if Md5::digest(message).as_slice() != checksum {
            return Err(AggregateError::Checksum);
        }
        // Sliced, not copied: user records share the bytes of their record.
        let mut message = data.slice_ref(message);
        let aggregate = Self::decode(&mut message)
            .map_err(|error| AggregateError::Unreadable(error.to_string()))?;
        if aggregate.records.len() > MESSAGES_MAX {
            return Err(AggregateError::TooMany(aggregate.records.len()));
        }
        let records = aggregate.records.iter().enumerate();
        records
            .map(|(at, record)| aggregate.user_record(at, record))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn user_record(
        &self,
        at: usize,
        record: &AggregatedRecord,
    ) -> Result<UserRecord, AggregateError> {
        let index = record.partition_key_index;
        let keys = self.partition_keys.len();
        let unknown = AggregateError::UnknownKey { record: at, index, keys };
        let found = usize::try_from(index).ok().and_then(|index| self.partition_keys.get(index));
        let partition_key = found.ok_or(unknown)?.clone();
        let explicit = record.explicit_hash_key_index.and_then(|index| usize::try_from(index).ok());
        let hash = match explicit.map(|index| self.explicit_hash_keys.get(index)) {
            Some(Some(key)) => key.parse().map_err(|_| AggregateError::HashKey(at))?,
            Some(None) => return Err(AggregateError::HashKey(at)),
            None => hash_of(&partition_key),
        };
        Ok(UserRecord { partition_key, hash, data: record.data.clone() })
    }

    /// The bytes of a record that carries this.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        Self::framed(&self.encode_to_vec())
    }

    /// The bytes of a record that carries this message of Protocol Buffers: with the mark before it and its checksum behind.
    #[must_use]
    pub fn framed(message: &[u8]) -> Bytes {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(message);
        bytes.extend_from_slice(Md5::digest(message).as_slice());
        bytes.into()
    }
}

/// Where a partition key hashes to.
fn hash_of(partition_key: &str) -> u128 {
    u128::from_be_bytes(Md5::digest(partition_key.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aggregate() -> Aggregate {
        let record = |key, explicit, data: &'static str| AggregatedRecord {
            partition_key_index: key,
            explicit_hash_key_index: explicit,
            data: data.into(),
        };
        Aggregate {
            partition_keys: vec!["a".into(), "b".into()],
            explicit_hash_keys: vec!["7".into()],
            records: vec![record(0, None, "zero"), record(1, Some(0), "one"), record(0, None, "")],
        }
    }

    #[test]
    fn user_records_come_back_in_order() {
        let records = Aggregate::user_records(&aggregate().to_bytes()).unwrap().unwrap();
        let seen: Vec<_> =
            records.iter().map(|r| (r.partition_key.as_str(), r.data.clone())).collect();
        assert_eq!(seen, [("a", "zero".into()), ("b", "one".into()), ("a", Bytes::new())]);
        assert_eq!(records[1].hash, 7);
        // The MD5 of "a".
        assert_eq!(records[0].hash, 0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661);
    }

    #[test]
    fn what_is_not_an_aggregate_is_left_alone() {
        for plain in [&b"{}"[..], b"", &MAGIC[..3]] {
            assert_eq!(Aggregate::user_records(&Bytes::copy_from_slice(plain)), Ok(None));
        }
    }

    #[test]
    fn broken_aggregates_say_how() {
        let good = aggregate().to_bytes();
        let mut flipped = good.to_vec();
        flipped[10] ^= 1;
        assert_eq!(Aggregate::user_records(&flipped.into()), Err(AggregateError::Checksum));
        let short = Aggregate::user_records(&good.slice(..12));
        assert_eq!(short, Err(AggregateError::Short(12)));
        let mut strange = aggregate();
        strange.records[0].partition_key_index = 9;
        let error = Aggregate::user_records(&strange.to_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "user record 0 of the aggregate names partition key 9, of 2");
        strange.records[0] =
            AggregatedRecord { explicit_hash_key_index: Some(3), ..Default::default() };
        assert_eq!(Aggregate::user_records(&strange.to_bytes()), Err(AggregateError::HashKey(0)));
        let mut garbage = MAGIC.to_vec();
        garbage.extend([0xFF; 3]);
        garbage.extend(Md5::digest([0xFF; 3]));
        let error = Aggregate::user_records(&garbage.into()).unwrap_err();
        assert!(matches!(error, AggregateError::Unreadable(_)), "{error}");
    }
}
