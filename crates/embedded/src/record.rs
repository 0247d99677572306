//! What is stored under an item's row key.
//!
//! ```text
//! checksum (u32, CRC-32 of row key and what follows) · version (u64)
//! · flags (u8: 1 = has expiry) · [expiry (u64, seconds)]
//! · count (u8) · count × ( name length (u8) · name · type (u8) · value )
//! value    0 = number (i64) · 1 = text (u32 length, UTF-8) · 2 = bytes (u32 length, bytes)
//! ```
//! Numbers are big-endian. The checksum covers the key, so that a row cannot pass for another.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use millpond_store::{Attributes, Expiry, Name, StoreError, Value, Version};

use crate::engine::Table;
use crate::rowkey;

const HAS_EXPIRY: u8 = 1;
const NUMBER: u8 = 0;
const TEXT: u8 = 1;
const BYTES: u8 = 2;

/// The part of a record that conditions look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub version: Version,
    pub expiry: Option<Expiry>,
}

fn checksum(key: &[u8], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(content);
    hasher.finalize()
}

/// Puts a checksum over `key` and `content` in front of the content.
pub(crate) fn seal(key: &[u8], content: &[u8]) -> Bytes {
    let mut row = BytesMut::with_capacity(4 + content.len());
    row.put_u32(checksum(key, content));
    row.put_slice(content);
    row.freeze()
}

/// Checks and removes the checksum.
///
/// # Errors
/// [`StoreError::Corrupt`], which names table and key.
pub(crate) fn unseal(table: Table, key: &[u8], mut row: Bytes) -> Result<Bytes, StoreError> {
    let stored = row.try_get_u32().map_err(|_| damaged(table, key, "the row is too short"))?;
    if stored != checksum(key, &row) {
        return Err(damaged(table, key, "its checksum does not match"));
    }
    Ok(row)
}

/// The error for a damaged row.
pub(crate) fn damaged(table: Table, key: &[u8], detail: &str) -> StoreError {
    let named = match table {
        Table::Items => rowkey::decode(&Bytes::copy_from_slice(key)).map(|key| key.to_string()),
        Table::Expiry | Table::Commits => None,
    };
    let key = named.unwrap_or_else(|| format!("b\"{}\"", key.escape_ascii()));
    StoreError::corrupt(format!("the row {key} in table {table}"), detail)
}

/// The row for an item.
pub(crate) fn encode(
    key: &[u8],
    version: Version,
    expiry: Option<Expiry>,
    attributes: &Attributes,
) -> Bytes {
    let names: usize = attributes.iter().map(|(name, _)| 6 + name.len()).sum();
    let values: usize = attributes.iter().map(|(_, value)| value.size().max(8)).sum();
    let mut row = BytesMut::with_capacity(4 + 8 + 1 + 8 + 1 + names + values);
    row.put_u32(0);
    row.put_u64(version.to_u64());
    match expiry {
        None => row.put_u8(0),
        Some(expiry) => {
            row.put_u8(HAS_EXPIRY);
            row.put_u64(expiry.as_secs());
        }
    }
    row.put_u8(u8::try_from(attributes.len()).expect("a checked write has at most 64 attributes"));
    for (name, value) in attributes.iter() {
        row.put_u8(u8::try_from(name.len()).expect("a checked name has at most 64 bytes"));
        row.put_slice(name.as_bytes());
        match value {
            Value::Number(number) => {
                row.put_u8(NUMBER);
                row.put_i64(*number);
            }
            Value::Text(text) => put_bytes(&mut row, TEXT, text.as_bytes()),
            Value::Bytes(bytes) => put_bytes(&mut row, BYTES, bytes),
        }
    }
    let sum = checksum(key, row.get(4..).unwrap_or_default());
    if let Some(place) = row.first_chunk_mut::<4>() {
        *place = sum.to_be_bytes();
    }
    row.freeze()
}

fn put_bytes(row: &mut BytesMut, kind: u8, bytes: &[u8]) {
    row.put_u8(kind);
    row.put_u32(u32::try_from(bytes.len()).expect("a checked item is below 400 KiB"));
    row.put_slice(bytes);
}

/// Version and expiry of a row.
///
/// # Errors
/// [`StoreError::Corrupt`], which names table and key.
pub(crate) fn decode_head(key: &[u8], row: &Bytes) -> Result<Head, StoreError> {
    let mut content = unseal(Table::Items, key, row.clone())?;
    head(&mut content).ok_or_else(|| malformed(key))
}

/// All of a row.
///
/// # Errors
/// [`StoreError::Corrupt`], which names table and key.
pub(crate) fn decode(key: &[u8], row: &Bytes) -> Result<(Head, Attributes), StoreError> {
    let mut content = unseal(Table::Items, key, row.clone())?;
    parse(&mut content).ok_or_else(|| malformed(key))
}

fn malformed(key: &[u8]) -> StoreError {
    damaged(Table::Items, key, "its checksum matches, but its content makes no sense")
}

fn head(content: &mut Bytes) -> Option<Head> {
    let version = Version::from_u64(content.try_get_u64().ok()?);
    let expiry = match content.try_get_u8().ok()? {
        0 => None,
        HAS_EXPIRY => Some(Expiry::from_secs(content.try_get_u64().ok()?)),
        _ => return None,
    };
    Some(Head { version, expiry })
}

fn parse(content: &mut Bytes) -> Option<(Head, Attributes)> {
    let head = head(content)?;
    let count = content.try_get_u8().ok()?;
    let mut attributes = Attributes::new();
    for _ in 0..count {
        let length = usize::from(content.try_get_u8().ok()?);
        let name = String::from_utf8(take(content, length)?.to_vec()).ok()?;
        let value = match content.try_get_u8().ok()? {
            NUMBER => Value::Number(content.try_get_i64().ok()?),
            TEXT => Value::Text(String::from_utf8(take_long(content)?.to_vec()).ok()?),
            BYTES => Value::Bytes(take_long(content)?),
            _ => return None,
        };
        attributes.set(Name::from(name), value);
    }
    (content.is_empty() && attributes.len() == usize::from(count)).then_some((head, attributes))
}

fn take(content: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= content.len()).then(|| content.split_to(length))
}

fn take_long(content: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(content.try_get_u32().ok()?).ok()?;
    take(content, length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Number),
            ".{0,30}".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..60).prop_map(Value::from),
        ]
    }

    proptest! {
        #[test]
        fn records_round_trip_and_notice_every_flip(
            key in prop::collection::vec(any::<u8>(), 1..40),
            version: u64,
            expiry in prop::option::of(any::<u64>()),
            attributes in prop::collection::btree_map("[a-z][a-z0-9_]{0,10}", value(), 0..8),
            flip: prop::sample::Index,
            bit in 0u8..8,
        ) {
            let attributes: Attributes =
                attributes.into_iter().map(|(name, value)| (Name::from(name), value)).collect();
            let head = Head {
                version: Version::from_u64(version),
                expiry: expiry.map(Expiry::from_secs),
            };
            let row = encode(&key, head.version, head.expiry, &attributes);
            prop_assert_eq!(decode_head(&key, &row).unwrap(), head);
            prop_assert_eq!(decode(&key, &row).unwrap(), (head, attributes));
            let mut broken = row.to_vec();
            broken[flip.index(row.len())] ^= 1 << bit;
            prop_assert!(decode(&key, &broken.into()).is_err());
            prop_assert!(decode(&key, &row.slice(..flip.index(row.len()))).is_err());
            let mut other = key.clone();
            other.push(0);
            prop_assert!(decode(&other, &row).is_err(), "a row passed for another");
        }

        #[test]
        fn hostile_content_is_refused_or_makes_sense(
            key in prop::collection::vec(any::<u8>(), 1..8),
            content in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Ok((head, attributes)) = decode(&key, &seal(&key, &content)) {
                let again = encode(&key, head.version, head.expiry, &attributes);
                prop_assert_eq!(decode(&key, &again).unwrap(), (head, attributes));
            }
        }
    }
}
