//! How an item lies in the table.
//!
//! | attribute | DynamoDB type | holds |
//! |---|---|---|
//! | `pk` | S, the partition key | the partition, 1 to 2,048 bytes of UTF-8 |
//! | `sk` | B, the sort key | the sort key, 1 to 1,024 bytes, ordered byte by byte |
//! | `ver` | N | the version: a 64-bit number without sign, in decimal |
//! | `exp` | N | the expiry in whole seconds since 1970, the table's TTL attribute; missing when the item has none |
//! | any other name | N, S or B | an attribute of the item under its own name: a number is N (a 64-bit number with sign, in decimal), text is S, bytes are B |
//!
//! Nothing else is stored: no envelope, no encoding within a value, no indexes. Names of attributes have the
//! form `[a-z][a-z0-9_]*`, so that they never clash with the four above. An item whose `exp` is at or before
//! the current second is absent, whether or not the service has removed it.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use bytes::Bytes;
use millpond_store::{
    Attributes, Expiry, Item, Key, Name, Partition, Result, SortKey, StoreError, Value, Version,
};

/// The partition key.
pub(crate) const PK: &str = "pk";
/// The sort key.
pub(crate) const SK: &str = "sk";
/// The version.
pub(crate) const VER: &str = "ver";
/// The expiry.
pub(crate) const EXP: &str = "exp";

/// An item as the SDK has it.
pub(crate) type Row = HashMap<String, AttributeValue>;

/// A version as a stored number.
pub(crate) fn version_value(version: Version) -> AttributeValue {
    AttributeValue::N(version.to_u64().to_string())
}

/// A partition as a stored key.
pub(crate) fn partition_value(partition: &Partition) -> AttributeValue {
    AttributeValue::S(partition.as_str().to_owned())
}

/// A sort key as a stored key.
pub(crate) fn sort_value(sort: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(sort))
}

/// Only the keys.
pub(crate) fn encode_key(key: &Key) -> Row {
    HashMap::from([
        (PK.to_owned(), partition_value(&key.partition)),
        (SK.to_owned(), sort_value(key.sort.as_bytes())),
    ])
}

/// The whole item.
pub(crate) fn encode(item: &Item) -> Row {
    let mut row = encode_key(&item.key);
    row.insert(VER.to_owned(), version_value(item.version));
    if let Some(expiry) = item.expiry {
        row.insert(EXP.to_owned(), AttributeValue::N(expiry.as_secs().to_string()));
    }
    for (name, value) in item.attributes.iter() {
        let value = match value {
            Value::Number(number) => AttributeValue::N(number.to_string()),
            Value::Text(text) => AttributeValue::S(text.clone()),
            Value::Bytes(bytes) => AttributeValue::B(Blob::new(bytes.as_ref())),
        };
        row.insert(name.to_owned(), value);
    }
    row
}

/// The keys of a stored item.
pub(crate) fn decode_key(row: &Row) -> Result<Key> {
    match (row.get(PK), row.get(SK)) {
        (Some(AttributeValue::S(partition)), Some(AttributeValue::B(sort))) => {
            Key::new(partition.as_str(), sort.as_ref().to_vec())
        }
        _ => Err(StoreError::corrupt("an item of the table", "its keys are not text and bytes")),
    }
}

/// The whole item, or what is wrong with it.
pub(crate) fn decode(mut row: Row) -> Result<Item> {
    let key = match (row.remove(PK), row.remove(SK)) {
        (Some(AttributeValue::S(partition)), Some(AttributeValue::B(sort))) => {
            Key::of(Partition::new(partition)?, SortKey::new(sort.into_inner())?)
        }
        _ => {
            let detail = "its keys are not text and bytes";
            return Err(StoreError::corrupt("an item of the table", detail));
        }
    };
    let version = match row.remove(VER) {
        Some(value) => Version::from_u64(whole_number(&key, VER, value)?),
        None => return Err(damaged(&key, "it has no version: another program wrote it")),
    };
    let expiry = match row.remove(EXP) {
        Some(value) => Some(Expiry::from_secs(whole_number(&key, EXP, value)?)),
        None => None,
    };
    let attributes = row
        .into_iter()
        .map(|(name, value)| decode_attribute(&key, name, value))
        .collect::<Result<Attributes>>()?;
    Ok(Item { key, attributes, version, expiry })
}

fn decode_attribute(key: &Key, name: String, value: AttributeValue) -> Result<(Name, Value)> {
    let value = match value {
        AttributeValue::N(digits) => match digits.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => return Err(damaged(key, &format!("{name} = {digits} is no 64-bit number"))),
        },
        AttributeValue::S(text) => Value::Text(text),
        AttributeValue::B(blob) => Value::Bytes(Bytes::from(blob.into_inner())),
        _ => return Err(damaged(key, &format!("{name} is neither number, text nor bytes"))),
    };
    Ok((name.into(), value))
}

fn whole_number(key: &Key, name: &str, value: AttributeValue) -> Result<u64> {
    match &value {
        AttributeValue::N(digits) => digits.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| damaged(key, &format!("{name} is no whole number")))
}

fn damaged(key: &Key, detail: &str) -> StoreError {
    StoreError::corrupt(format!("item {key}"), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item() -> Item {
        Item {
            key: Key::new("part/é", vec![0, 255]).unwrap(),
            attributes: Attributes::new()
                .with("least", i64::MIN)
                .with("empty", "")
                .with("none", Bytes::new())
                .with("raw", vec![0, 1, 255]),
            version: Version::from_u64(u64::MAX),
            expiry: Some(Expiry::from_secs(4_102_444_800)),
        }
    }

    #[test]
    fn items_survive_the_round_trip() {
        assert_eq!(decode(encode(&item())).unwrap(), item());
        assert_eq!(decode_key(&encode(&item())).unwrap(), item().key);
        let plain = Item { expiry: None, ..item() };
        assert!(!encode(&plain).contains_key(EXP));
        assert_eq!(decode(encode(&plain)).unwrap(), plain);
    }

    #[test]
    fn foreign_items_are_damage_and_named() {
        let number = |digits: &str| AttributeValue::N(digits.to_owned());
        let broken = |name: &str, value: Option<AttributeValue>| {
            let mut row = encode(&item());
            match value {
                Some(value) => row.insert(name.to_owned(), value),
                None => row.remove(name),
            };
            decode(row).unwrap_err().to_string()
        };
        assert!(broken(VER, None).contains("part/é"));
        assert!(broken(VER, Some(number("-1"))).contains("ver is no whole number"));
        assert!(broken(EXP, Some(number("1.5"))).contains("exp is no whole number"));
        assert!(broken("n", Some(number("1e30"))).contains("no 64-bit number"));
        assert!(broken("b", Some(AttributeValue::Bool(true))).contains("neither number"));
        assert!(broken(SK, Some(AttributeValue::S("x".into()))).contains("keys"));
    }
}
