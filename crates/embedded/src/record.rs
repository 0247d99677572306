//! What is stored under an item's row key.
//!
//! ```text
//! checksum (u32, CRC-32 of row key and what follows) · version (u64)
//! · flags (u8: 1 = has expiry, 2 = is a stub) · [expiry (u64, seconds)]
//! · count (u8) · count × ( name length (u8) · name · type (u8) · value )
//! value    0 = number (i64) · 1 = text (u32 length, UTF-8) · 2 = bytes (u32 length, bytes)
//! ```
//! A stub has the place of the whole row ([`Place`]) instead of attributes. Numbers are big-endian. The checksum covers the key, so that a row cannot pass for another.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use millpond_store::{Attributes, Expiry, Name, StoreError, Value, Version};

use crate::cargo::{Files, Place};
use crate::engine::Table;
use crate::limits::VALUE_SHARED_BYTES_MIN;
use crate::rowkey;

const CHECKSUM_BYTES: usize = 4;
const HAS_EXPIRY: u8 = 1;
const IS_STUB: u8 = 2;
const NUMBER: u8 = 0;
const TEXT: u8 = 1;
const BYTES: u8 = 2;

/// A stub's bytes: checksum, version, flags, expiry and place. A row that is no larger is never left a stub of.
pub(crate) const STUB_BYTES_MAX: usize = CHECKSUM_BYTES + 8 + 1 + 8 + 24;

/// The part of a record that conditions look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub version: Version,
    pub expiry: Option<Expiry>,
    /// Where the whole row is, when this is a stub.
    pub place: Option<Place>,
}

/// A sealed row. It may be in parts, so that large values are not copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    parts: Vec<Bytes>,
    len: usize,
}

impl Row {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The row's checksum.
    pub(crate) fn sum(&self) -> u32 {
        self.parts
            .first()
            .and_then(|part| part.first_chunk())
            .map_or(0, |sum| u32::from_be_bytes(*sum))
    }

    /// What is behind the checksum, with the head whole.
    fn front(&self) -> Bytes {
        match self.parts.as_slice() {
            [_sum, second, ..] => second.clone(),
            [whole] => whole.slice(CHECKSUM_BYTES.min(whole.len())..),
            [] => Bytes::new(),
        }
    }

    /// The row in one piece.
    pub(crate) fn whole(&self) -> Bytes {
        match self.parts.as_slice() {
            [whole] => whole.clone(),
            parts => {
                let mut whole = BytesMut::with_capacity(self.len);
                parts.iter().for_each(|part| whole.extend_from_slice(part));
                whole.freeze()
            }
        }
    }
}

impl From<Bytes> for Row {
    fn from(whole: Bytes) -> Self {
        Self { len: whole.len(), parts: vec![whole] }
    }
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
        Table::Expiry | Table::Commits | Table::Cargo => None,
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
) -> Row {
    let names: usize = attributes.iter().map(|(name, _)| 6 + name.len()).sum();
    let copied = |value: &Value| if is_shared(value) { 0 } else { value.size().max(8) };
    let values: usize = attributes.iter().map(|(_, value)| copied(value)).sum();
    let mut row = BytesMut::with_capacity(4 + 8 + 1 + 8 + 1 + names + values);
    let mut parts = Vec::new();
    row.put_u32(0);
    put_head(&mut row, version, expiry, 0);
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
            Value::Bytes(bytes) if is_shared(value) => {
                put_length(&mut row, BYTES, bytes.len());
                parts.extend([row.split().freeze(), bytes.clone()]);
            }
            Value::Bytes(bytes) => put_bytes(&mut row, BYTES, bytes),
        }
    }
    if parts.is_empty() { seal_in_place(key, row) } else { seal_parts(key, parts, row.freeze()) }
}

/// Seals what has room for the checksum in front.
fn seal_in_place(key: &[u8], mut row: BytesMut) -> Row {
    let sum = checksum(key, row.get(CHECKSUM_BYTES..).unwrap_or_default());
    if let Some(place) = row.first_chunk_mut::<CHECKSUM_BYTES>() {
        *place = sum.to_be_bytes();
    }
    Row::from(row.freeze())
}

/// The same for a row in parts, of which the first has the room.
fn seal_parts(key: &[u8], mut parts: Vec<Bytes>, last: Bytes) -> Row {
    parts.push(last);
    parts.retain(|part| !part.is_empty());
    if let Some(first) = parts.first_mut() {
        first.advance(CHECKSUM_BYTES.min(first.len()));
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    parts.iter().for_each(|part| hasher.update(part));
    parts.insert(0, Bytes::copy_from_slice(&hasher.finalize().to_be_bytes()));
    Row { len: parts.iter().map(Bytes::len).sum(), parts }
}

/// Whether a row holds this value as a part of its own.
fn is_shared(value: &Value) -> bool {
    matches!(value, Value::Bytes(bytes) if bytes.len() >= VALUE_SHARED_BYTES_MIN)
}

fn put_head(row: &mut BytesMut, version: Version, expiry: Option<Expiry>, flags: u8) {
    row.put_u64(version.to_u64());
    match expiry {
        None => row.put_u8(flags),
        Some(expiry) => {
            row.put_u8(flags | HAS_EXPIRY);
            row.put_u64(expiry.as_secs());
        }
    }
}

fn put_bytes(row: &mut BytesMut, kind: u8, bytes: &[u8]) {
    put_length(row, kind, bytes.len());
    row.put_slice(bytes);
}

fn put_length(row: &mut BytesMut, kind: u8, length: usize) {
    row.put_u8(kind);
    row.put_u32(u32::try_from(length).expect("a checked item is below 400 KiB"));
}

/// The row that points at `row`, which is at `place`; nothing when that is no row of an item.
pub(crate) fn stub_of(key: &[u8], row: &Row, place: Place) -> Option<Bytes> {
    let mut front = row.front();
    let head = head(&mut front)?;
    Some(stub(key, head.version, head.expiry, place))
}

fn stub(key: &[u8], version: Version, expiry: Option<Expiry>, place: Place) -> Bytes {
    let mut content = BytesMut::with_capacity(STUB_BYTES_MAX - CHECKSUM_BYTES);
    put_head(&mut content, version, expiry, IS_STUB);
    place.encode(&mut content);
    seal(key, &content)
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
pub(crate) fn decode(
    key: &[u8],
    row: &Bytes,
    files: &Files,
) -> Result<(Head, Attributes), StoreError> {
    let mut content = unseal(Table::Items, key, row.clone())?;
    let stub = head(&mut content.clone()).ok_or_else(|| malformed(key))?;
    let Some(place) = stub.place else {
        return parse(&mut content).ok_or_else(|| malformed(key));
    };
    let mut content = files.read(key, place)?.split_off(CHECKSUM_BYTES);
    let (head, attributes) = parse(&mut content).ok_or_else(|| malformed(key))?;
    let same = (head.version, head.expiry, head.place) == (stub.version, stub.expiry, None);
    if same { Ok((stub, attributes)) } else { Err(malformed(key)) }
}

fn malformed(key: &[u8]) -> StoreError {
    damaged(Table::Items, key, "its checksum matches, but its content makes no sense")
}

fn head(content: &mut Bytes) -> Option<Head> {
    let version = Version::from_u64(content.try_get_u64().ok()?);
    let flags = content.try_get_u8().ok()?;
    if flags & !(HAS_EXPIRY | IS_STUB) != 0 {
        return None;
    }
    let expiry = match flags & HAS_EXPIRY {
        0 => None,
        _ => Some(Expiry::from_secs(content.try_get_u64().ok()?)),
    };
    let place = match flags & IS_STUB {
        0 => None,
        _ => Some(Place::decode(content)?).filter(|_| content.is_empty()),
    };
    Some(Head { version, expiry, place })
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
                place: None,
            };
            let none = Files::default();
            let row = encode(&key, head.version, head.expiry, &attributes).whole();
            prop_assert_eq!(decode_head(&key, &row).unwrap(), head);
            prop_assert_eq!(decode(&key, &row, &none).unwrap(), (head, attributes));
            let mut broken = row.to_vec();
            broken[flip.index(row.len())] ^= 1 << bit;
            prop_assert!(decode(&key, &broken.into(), &none).is_err());
            prop_assert!(decode(&key, &row.slice(..flip.index(row.len())), &none).is_err());
            let mut other = key.clone();
            other.push(0);
            prop_assert!(decode(&other, &row, &none).is_err(), "a row passed for another");
        }

        #[test]
        fn rows_in_parts_are_as_if_whole(
            key in prop::collection::vec(any::<u8>(), 1..40),
            large in prop::collection::vec(VALUE_SHARED_BYTES_MIN - 1..VALUE_SHARED_BYTES_MIN + 2, 1..4),
            expiry in prop::option::of(any::<u64>()),
        ) {
            let version = Version::from_u64(7);
            let expiry = expiry.map(Expiry::from_secs);
            let mut attributes = Attributes::new().with("small", 5);
            for (number, length) in large.into_iter().enumerate() {
                attributes.set(Name::from(format!("v{number}")), vec![7_u8; length]);
            }
            let row = encode(&key, version, expiry, &attributes);
            let whole = row.whole();
            prop_assert_eq!(row.len(), whole.len());
            prop_assert_eq!(row.sum(), Row::from(whole.clone()).sum());
            let (head, found) = decode(&key, &whole, &Files::default()).unwrap();
            prop_assert_eq!(head, Head { version, expiry, place: None });
            prop_assert_eq!(found, attributes);
        }

        #[test]
        fn stubs_round_trip(file: u64, at: u64, length: u32, sum: u32, expiry: Option<u64>) {
            let place = Place { file, at, length, sum };
            let (version, expiry) = (Version::from_u64(9), expiry.map(Expiry::from_secs));
            let row = stub(b"key", version, expiry, place);
            let head = Head { version, expiry, place: Some(place) };
            prop_assert_eq!(decode_head(b"key", &row).unwrap(), head);
        }

        #[test]
        fn hostile_content_is_refused_or_makes_sense(
            key in prop::collection::vec(any::<u8>(), 1..8),
            content in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let none = Files::default();
            if let Ok((head, attributes)) = decode(&key, &seal(&key, &content), &none) {
                let again = encode(&key, head.version, head.expiry, &attributes).whole();
                prop_assert_eq!(decode(&key, &again, &none).unwrap(), (head, attributes));
            }
        }
    }
}
