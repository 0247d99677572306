//! Row keys.
//!
//! ```text
//! items    partition length (u16) · partition (UTF-8) · sort key
//! expiry   expiry (u64, seconds) · row key of the item
//! fences   0 0 and 0xff 0xff in items, eight times 0 and eight times 0xff in expiry
//! ```
//! Numbers are big-endian. The length comes first, so that no partition's keys lie among another's.

use bytes::{BufMut, Bytes, BytesMut};
use millpond_store::{Expiry, Key, Partition, SortKey, SortRange};

const EXPIRY_BYTES: usize = 8;

fn begin(partition: &Partition, more: usize) -> BytesMut {
    let name = partition.as_str().as_bytes();
    let mut key = BytesMut::with_capacity(2 + name.len() + more);
    let length = u16::try_from(name.len()).expect("a partition has at most 2,048 bytes");
    key.put_u16(length);
    key.put_slice(name);
    key
}

/// The row key of an item.
pub(crate) fn encode(key: &Key) -> Bytes {
    let sort = key.sort.as_bytes();
    let mut row = begin(&key.partition, sort.len());
    row.put_slice(sort);
    row.freeze()
}

/// The item's key; nothing when the bytes are not a row key.
pub(crate) fn decode(row: &Bytes) -> Option<Key> {
    let (length, rest) = row.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let partition = std::str::from_utf8(rest.get(..length)?).ok()?;
    let sort = SortKey::new(row.slice(2 + length..)).ok()?;
    Some(Key::of(Partition::new(partition).ok()?, sort))
}

/// The sort key of a row that is known to lie in `partition`.
pub(crate) fn sort_key(row: &Bytes, partition: &Partition) -> Option<SortKey> {
    let start = 2 + partition.as_str().len();
    (start < row.len()).then(|| SortKey::new(row.slice(start..)).ok()).flatten()
}

/// The half-open range of row keys for a range of sort keys.
pub(crate) fn range(partition: &Partition, range: &SortRange) -> (Bytes, Bytes) {
    let bound = |sort: &SortKey| {
        let mut key = begin(partition, sort.as_bytes().len());
        key.put_slice(sort.as_bytes());
        key.freeze()
    };
    let start = range.start.as_ref().map_or_else(|| begin(partition, 0).freeze(), bound);
    let end = range.end.as_ref().map_or_else(|| behind(partition), bound);
    (start, end)
}

/// The first possible row key behind all of a partition.
fn behind(partition: &Partition) -> Bytes {
    let mut key = begin(partition, 0).to_vec();
    // The length in front is below 0xffff, so there is always a byte that can be raised.
    while let Some(last) = key.pop() {
        if let Some(raised) = last.checked_add(1) {
            key.push(raised);
            break;
        }
    }
    key.into()
}

/// The smallest key behind `key`.
pub(crate) fn successor(key: &[u8]) -> Bytes {
    let mut next = BytesMut::with_capacity(key.len() + 1);
    next.put_slice(key);
    next.put_u8(0);
    next.freeze()
}

/// The key in the expiry table.
pub(crate) fn expiry(expiry: Expiry, row: &[u8]) -> Bytes {
    let mut key = BytesMut::with_capacity(EXPIRY_BYTES + row.len());
    key.put_u64(expiry.as_secs());
    key.put_slice(row);
    key.freeze()
}

/// Keys before and behind those of all items: no partition's name is empty or that long.
pub(crate) fn items_fences() -> [Bytes; 2] {
    [Bytes::from_static(&[0, 0]), Bytes::from_static(&[0xff, 0xff])]
}

/// Keys before and behind those of all that ever ends: an item's key is never empty.
pub(crate) fn expiry_fences() -> [Bytes; 2] {
    [Bytes::from_static(&[0; EXPIRY_BYTES]), Bytes::from_static(&[0xff; EXPIRY_BYTES])]
}

/// The parts of a key in the expiry table.
pub(crate) fn split_expiry(key: &Bytes) -> Option<(Expiry, Bytes)> {
    let (seconds, _) = key.split_first_chunk::<EXPIRY_BYTES>()?;
    Some((Expiry::from_secs(u64::from_be_bytes(*seconds)), key.slice(EXPIRY_BYTES..)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_round_trip_and_keep_their_order(
            names in prop::collection::vec(".{1,20}", 2),
            sorts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 2),
        ) {
            let keys: Vec<Key> = names.iter().zip(&sorts)
                .map(|(name, sort)| Key::new(name.as_str(), sort.clone()).unwrap())
                .collect();
            for key in &keys {
                let row = encode(key);
                prop_assert_eq!(decode(&row), Some(key.clone()));
                prop_assert_eq!(sort_key(&row, &key.partition), Some(key.sort.clone()));
                let (start, end) = range(&key.partition, &SortRange::all());
                prop_assert!(start < row && row < end);
            }
            let second = Key::of(keys[0].partition.clone(), keys[1].sort.clone());
            prop_assert_eq!(keys[0].cmp(&second), encode(&keys[0]).cmp(&encode(&second)));
            if keys[0].partition != keys[1].partition {
                let (start, end) = range(&keys[0].partition, &SortRange::all());
                let row = encode(&keys[1]);
                prop_assert!(row < start || row >= end);
            }
        }

        #[test]
        fn hostile_bytes_are_no_key_or_a_valid_one(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let row = Bytes::from(bytes);
            if let Some(key) = decode(&row) {
                prop_assert_eq!(encode(&key), row);
            }
        }
    }
}
