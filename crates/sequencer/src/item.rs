//! The row of a message.
//!
//! Partition `NAME/q/QUEUE`, sort key `i` and the number (8 bytes).
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `at` | number | when it was put, ms since 1970 |
//! | `body` | bytes | the payload |
//! | `attrs` | text | its attributes as a JSON object of text; missing when there are none |
//! | `sum` | number | CRC-32 (IEEE) of the number (8 bytes), `at` (8 bytes), `attrs` and `body` |

use millpond_store::{Attributes, Expect, Item, Partition, StoreError, Timestamp, Version, Write};

use crate::error::Result;
use crate::message::Message;
use crate::names::{kind, number_key, number_of};

/// A stored message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) message: Message,
}

impl Row {
    pub(crate) fn write(&self, partition: &Partition, version: Version) -> Result<Write> {
        let key = number_key(partition, kind::ITEM, self.seq)?;
        Ok(Write::put(key, self.encode(), Expect::Absent, version))
    }

    pub(crate) fn encode(&self) -> Attributes {
        let text = self.message.attributes_text();
        let sum = checksum(self.seq, self.at, &text, &self.message.payload);
        let mut attributes = Attributes::new()
            .with("at", millis(self.at))
            .with("body", self.message.payload.clone())
            .with("sum", i64::from(sum));
        if !text.is_empty() {
            attributes.set("attrs", text);
        }
        attributes
    }

    pub(crate) fn decode(item: &Item) -> Result<Self> {
        let seq = number_of(&item.key)?;
        let at = timestamp(item, "at")?;
        let payload = item.attributes.bytes("body")?.clone();
        let text = match item.attributes.get("attrs") {
            Some(_) => item.attributes.text("attrs")?,
            None => "",
        };
        let damaged = |detail: &str| StoreError::corrupt(format!("item {}", item.key), detail);
        if item.attributes.number("sum")? != i64::from(checksum(seq, at, text, &payload)) {
            return Err(damaged("its checksum is wrong").into());
        }
        let attributes = match text {
            "" => std::collections::BTreeMap::new(),
            text => serde_json::from_str(text)
                .map_err(|_| damaged("its attributes are not a JSON object of text"))?,
        };
        Ok(Self { seq, at, message: Message { payload, attributes } })
    }
}

fn checksum(seq: u64, at: Timestamp, attributes: &str, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&seq.to_be_bytes());
    sum.update(&at.as_millis().to_be_bytes());
    sum.update(attributes.as_bytes());
    sum.update(payload);
    sum.finalize()
}

/// A time as a stored number.
pub(crate) fn millis(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A number that is never negative.
pub(crate) fn natural(item: &Item, name: &str) -> Result<u64> {
    let number = item.attributes.number(name)?;
    u64::try_from(number).map_err(|_| {
        StoreError::corrupt(format!("item {}", item.key), format!("{name} is negative")).into()
    })
}

/// The same, or zero where it is missing.
pub(crate) fn natural_or_zero(item: &Item, name: &str) -> Result<u64> {
    item.attributes.get(name).map_or(Ok(0), |_| natural(item, name))
}

/// A time that was stored by [`millis`].
pub(crate) fn timestamp(item: &Item, name: &str) -> Result<Timestamp> {
    natural(item, name).map(Timestamp::from_millis)
}

/// A count or number as it is stored.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #[test]
        fn rows_survive_the_round_trip_and_damage_is_noticed(
            seq in 0..crate::limits::SEQ_MAX,
            at in 0..1_u64 << 50,
            payload in vec(any::<u8>(), 0..200),
            attributes in btree_map(".{0,10}", ".{0,10}", 0..4),
            hit in any::<usize>(),
        ) {
            let message = Message { payload: payload.into(), attributes };
            let row = Row { seq, at: Timestamp::from_millis(at), message };
            let partition = Partition::new("p").unwrap();
            let write = row.write(&partition, Version::from_u64(1)).unwrap();
            let mut item = write.item().unwrap();
            assert_eq!(Row::decode(&item).unwrap(), row);
            let mut body = item.attributes.bytes("body").unwrap().to_vec();
            if !body.is_empty() {
                let at = hit % body.len();
                body[at] ^= 1;
                item.attributes.set("body", body);
                assert!(Row::decode(&item).unwrap_err().to_string().contains("checksum"));
            }
        }
    }
}
