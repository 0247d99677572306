//! The row of a queue: what SQS knows of it and the queue below does not.
//!
//! | partition | sort key | attribute |
//! |---|---|---|
//! | `sqs/REGION/ACCOUNT` | the queue's name | `row`: JSON, the fields below |
//!
//! A deleted queue leaves its row for a minute.

use millpond_store::{
    Attributes, Expect, Expiry, Item, Key, StoreError, Timestamp, Version, Write,
};
use serde::{Deserialize, Serialize};

use crate::attributes::Texts;
use crate::place::Place;

/// What is kept of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Record {
    /// When it was created, and last changed.
    pub created_ms: u64,
    /// See `created_ms`.
    pub modified_ms: u64,
    /// Attributes that are set, as they are shown.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub attributes: Texts,
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub tags: Texts,
    /// When it was last purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged_ms: Option<u64>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_ms: Option<u64>,
}

impl Record {
    pub fn deleted(&self) -> Option<Timestamp> {
        self.deleted_ms.map(Timestamp::from_millis)
    }

    pub fn put(
        &self,
        place: &Place,
        expect: Expect,
        version: Version,
    ) -> Result<Write, StoreError> {
        let text = serde_json::to_string(self).expect("a record is plain data");
        let attributes = Attributes::new().with("row", text.as_str());
        Ok(Write::put(key(place)?, attributes, expect, version))
    }

    /// The same, for a row that goes away by itself.
    pub fn put_until(
        &self,
        place: &Place,
        expect: Expect,
        version: Version,
        until: Timestamp,
    ) -> Result<Write, StoreError> {
        Ok(self.put(place, expect, version)?.expires(Expiry::at(until)))
    }

    pub fn read(item: &Item) -> Result<Self, StoreError> {
        serde_json::from_str(item.attributes.text("row")?)
            .map_err(|error| StoreError::corrupt(format!("queue {}", item.key), error.to_string()))
    }
}

/// The partition with the rows of an account in a region.
pub fn partition(place: &Place) -> String {
    format!("sqs/{}/{}", place.region, place.account)
}

pub fn key(place: &Place) -> Result<Key, StoreError> {
    Key::new(partition(place), place.name.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::btree_map;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn records_round_trip(
            attributes in btree_map(".{0,9}", ".{0,20}", 0..5), tags in btree_map(".{0,9}", ".{0,20}", 0..5), times in any::<[u64; 2]>(),
            purged_ms in any::<Option<u64>>(), deleted_ms in any::<Option<u64>>(),
        ) {
            let [created_ms, modified_ms] = times;
            let record = Record { created_ms, modified_ms, attributes, tags, purged_ms, deleted_ms };
            let place = Place::of_stored("q").unwrap();
            let put = record.put(&place, Expect::Absent, Version::from_u64(1)).unwrap();
            prop_assert_eq!(Record::read(&put.item().unwrap()).unwrap(), record);
        }
    }
}
