//! Where a large row is, and what stands before it there.
//!
//! ```text
//! record   key length (u16) · row length (u32) · checksum (u32, CRC-32 of both lengths and the key) · key · row
//! place    file (u64) · place of the row (u64) · row length (u32) · the row's own checksum (u32)
//! ```
//! Numbers are big-endian. The row begins with a checksum of key and row ([`record`](crate::record)); the place
//! repeats it, so that an older row of the same key cannot pass for the one that is meant.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes in front of a record's key.
pub(super) const HEAD_BYTES: usize = 2 + 4 + 4;

/// Where a row is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub file: u64,
    /// Where the row begins, behind the record's head and key.
    pub at: u64,
    pub length: u32,
    pub sum: u32,
}

impl Place {
    /// Appends the place to `row`.
    pub(crate) fn encode(&self, row: &mut BytesMut) {
        row.put_u64(self.file);
        row.put_u64(self.at);
        row.put_u32(self.length);
        row.put_u32(self.sum);
    }

    /// Takes a place from the front of `content`.
    pub(crate) fn decode(content: &mut Bytes) -> Option<Self> {
        let file = content.try_get_u64().ok()?;
        let at = content.try_get_u64().ok()?;
        let length = content.try_get_u32().ok()?;
        Some(Self { file, at, length, sum: content.try_get_u32().ok()? })
    }

    /// Bytes that the record takes in its file.
    pub(crate) fn record_bytes(&self, key: &[u8]) -> u64 {
        (HEAD_BYTES + key.len()) as u64 + u64::from(self.length)
    }
}

/// What stands before a row.
pub(super) fn encode_head(key: &[u8], row_length: u32) -> Bytes {
    let mut head = BytesMut::with_capacity(HEAD_BYTES + key.len());
    head.put_u16(u16::try_from(key.len()).expect("a row key has less than 4 KiB"));
    head.put_u32(row_length);
    head.put_u32(head_sum(&head, key));
    head.put_slice(key);
    head.freeze()
}

fn head_sum(lengths: &[u8], key: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(lengths);
    hasher.update(key);
    hasher.finalize()
}

/// The key and the row's length of the record with which `bytes` begin.
pub(super) fn decode_head(bytes: &Bytes) -> Option<(Bytes, u32)> {
    let mut at = bytes.clone();
    let key_length = usize::from(at.try_get_u16().ok()?);
    let row_length = at.try_get_u32().ok()?;
    let sum = at.try_get_u32().ok()?;
    let key = (key_length <= at.len()).then(|| at.split_to(key_length))?;
    (head_sum(bytes.get(..6)?, &key) == sum).then_some((key, row_length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn heads_round_trip_and_notice_every_flip(
            key in prop::collection::vec(any::<u8>(), 1..40),
            length: u32,
            flip: prop::sample::Index,
            bit in 0u8..8,
        ) {
            let head = encode_head(&key, length);
            prop_assert_eq!(decode_head(&head).unwrap(), (Bytes::from(key), length));
            let mut broken = head.to_vec();
            broken[flip.index(head.len())] ^= 1 << bit;
            prop_assert_eq!(decode_head(&broken.into()), None);
            prop_assert_eq!(decode_head(&head.slice(..flip.index(head.len()))), None);
        }

        #[test]
        fn places_round_trip(file: u64, at: u64, length: u32, sum: u32) {
            let place = Place { file, at, length, sum };
            let mut bytes = BytesMut::new();
            place.encode(&mut bytes);
            prop_assert_eq!(Place::decode(&mut bytes.freeze()), Some(place));
        }
    }
}
