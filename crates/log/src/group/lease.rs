//! A lease: who reads a partition for a group, and how far the group has come.
//!
//! Partition `log/TOPIC/INCARNATION/@GROUP/INCARNATION`, sort key `l` and the partition in 4 bytes:
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `own` | text | the worker that holds it; missing when nobody does |
//! | `ep` | number | the epoch: raised whenever it changes hands |
//! | `ck` | number | the checkpoint: the first offset that is not done. It never goes back within an epoch |
//! | `fl` | number | failed attempts at the record at the checkpoint; missing when there were none |

use millpond_store::{Attributes, Expect, Item, Key, Partition, SortKey, Value, Version, Write};

use crate::config::{optional, required};
use crate::error::{LogError, Result, number};
use crate::name::WorkerId;

/// The first byte of a lease's sort key.
pub(crate) const PREFIX: u8 = b'l';

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub partition: u32,
    pub owner: Option<WorkerId>,
    pub epoch: u64,
    pub checkpoint: u64,
    pub fails: u32,
    pub version: Version,
}

impl Lease {
    pub fn key(group: &Partition, partition: u32) -> Result<Key> {
        let mut sort = vec![PREFIX];
        sort.extend_from_slice(&partition.to_be_bytes());
        Ok(Key::of(group.clone(), SortKey::new(sort)?))
    }

    /// The write that makes the item so.
    pub fn put(&self, group: &Partition, expect: Expect) -> Result<Write> {
        Ok(Write::put(Self::key(group, self.partition)?, self.attributes(), expect, self.version))
    }

    fn attributes(&self) -> Attributes {
        let mut attributes =
            Attributes::new().with("ep", number(self.epoch)).with("ck", number(self.checkpoint));
        if let Some(owner) = &self.owner {
            attributes.set("own", owner.as_str());
        }
        if self.fails > 0 {
            attributes.set("fl", i64::from(self.fails));
        }
        attributes
    }

    pub fn decode(item: &Item) -> Result<Self> {
        Self::read(item).ok_or_else(|| {
            LogError::corrupt(format!("lease {}", item.key), "its attributes cannot be read")
        })
    }

    fn read(item: &Item) -> Option<Self> {
        let attributes = &item.attributes;
        let partition = item.key.sort.as_bytes().strip_prefix(&[PREFIX])?;
        let owner = match attributes.get("own") {
            None => None,
            Some(Value::Text(owner)) => Some(WorkerId::new(owner).ok()?),
            Some(_) => return None,
        };
        Some(Self {
            partition: u32::from_be_bytes(partition.try_into().ok()?),
            owner,
            epoch: required(attributes, "ep")?,
            checkpoint: required(attributes, "ck")?,
            fails: u32::try_from(optional(attributes, "fl")?.unwrap_or_default()).ok()?,
            version: item.version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn round_trips(
            partition in any::<u32>(),
            owned in any::<bool>(),
            (epoch, checkpoint) in (0..1_u64 << 60, 0..1_u64 << 60),
            (fails, version) in (any::<u32>(), any::<u64>()),
        ) {
            let owner = owned.then(|| WorkerId::new("w1").unwrap());
            let version = Version::from_u64(version);
            let lease = Lease { partition, owner, epoch, checkpoint, fails, version };
            let group = Partition::new("g").unwrap();
            let item = lease.put(&group, Expect::Any).unwrap().item().unwrap();
            prop_assert_eq!(Lease::decode(&item).unwrap(), lease);
            assert!(item.size() <= 1_024);
        }
    }
}
