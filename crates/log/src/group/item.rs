//! A group's item.
//!
//! Partition `log/TOPIC/INCARNATION/@`, sort key the group's name:
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `inc` | text | the group's incarnation, 16 hexadecimal digits |
//! | `start` | text | `earliest` or `latest`: where it began |
//! | `parts` | number | how many partitions it reads |
//! | `to` | number | how many it will read next; missing unless the topic has grown |
//! | `bar` | bytes | with `to`: how far each of `parts` must be read before, varints |
//! | `att` | number | attempts before a dead letter; missing when a failing record blocks |
//! | `dlq` | text | the topic for dead letters, when there is one |
//! | `at` | number | when it was made, ms since 1970 |
//! | `new` | number | 1 until the leases of a group that begins at the latest are there |

use bytes::Bytes;
use millpond_lanes::codec::{Reader, put_varint};
use millpond_store::{Attributes, Item, Key, Timestamp, Value, Version};

use crate::config::{optional, required};
use crate::error::{LogError, Result, millis, number};
use crate::limits::{ATTEMPTS_MAX, PARTITIONS_MAX};
use crate::name::{GroupName, TopicName};

/// Where a group begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// With the first record that is still there.
    #[default]
    Earliest,
    /// Behind what is there when the group is made.
    Latest,
}

/// What to do with a record that cannot be handled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Poison {
    /// Try it again until it works: nothing behind it in its partition is handled before.
    #[default]
    Block,
    /// After so many attempts, put it with the dead letters and go on.
    DeadLetter {
        /// Attempts, the first one included; they are counted across workers and restarts.
        attempts: u32,
        /// The topic for dead letters; without one, the run brings a sink.
        topic: Option<TopicName>,
    },
}

/// What a group is made with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupConfig {
    /// Where it begins.
    pub start: Start,
    /// What it does with records that cannot be handled.
    pub poison: Poison,
}

impl GroupConfig {
    pub(super) fn check(&self) -> Result<()> {
        match self.poison {
            Poison::DeadLetter { attempts, .. } if !(1..=ATTEMPTS_MAX).contains(&attempts) => {
                let problem = format!("is {attempts}: from 1 to {ATTEMPTS_MAX}");
                Err(LogError::invalid("attempts", problem))
            }
            _ => Ok(()),
        }
    }
}

/// A group that is to read more partitions, once it has come so far in the old ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Growth {
    pub to: u32,
    pub barrier: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupItem {
    pub name: GroupName,
    pub incarnation: u64,
    pub config: GroupConfig,
    pub partitions: u32,
    pub growth: Option<Growth>,
    pub made: Timestamp,
    pub pending: bool,
    pub version: Version,
}

impl GroupItem {
    pub fn key(partition: &str, name: &GroupName) -> Result<Key> {
        Ok(Key::new(partition, name.as_str().as_bytes().to_vec())?)
    }

    pub fn attributes(&self) -> Attributes {
        let start = match self.config.start {
            Start::Earliest => "earliest",
            Start::Latest => "latest",
        };
        let mut attributes = Attributes::new()
            .with("inc", format!("{:016x}", self.incarnation))
            .with("start", start)
            .with("parts", i64::from(self.partitions))
            .with("at", millis(self.made));
        if let Some(growth) = &self.growth {
            let mut barrier = Vec::new();
            growth.barrier.iter().for_each(|offset| put_varint(&mut barrier, *offset));
            attributes.set("to", i64::from(growth.to));
            attributes.set("bar", barrier);
        }
        if let Poison::DeadLetter { attempts, topic } = &self.config.poison {
            attributes.set("att", number(u64::from(*attempts)));
            if let Some(topic) = topic {
                attributes.set("dlq", topic.as_str());
            }
        }
        if self.pending {
            attributes.set("new", 1);
        }
        attributes
    }

    pub fn decode(item: &Item) -> Result<Self> {
        Self::read(item).ok_or_else(|| {
            LogError::corrupt(format!("group {}", item.key), "its attributes cannot be read")
        })
    }

    fn read(item: &Item) -> Option<Self> {
        let attributes = &item.attributes;
        let name = std::str::from_utf8(item.key.sort.as_bytes()).ok()?;
        let count = |number: u64| {
            u32::try_from(number).ok().filter(|count| (1..=PARTITIONS_MAX).contains(count))
        };
        let partitions = count(required(attributes, "parts")?)?;
        let start = match attributes.text("start").ok()? {
            "earliest" => Start::Earliest,
            "latest" => Start::Latest,
            _ => return None,
        };
        let poison = match optional(attributes, "att")? {
            None => Poison::Block,
            Some(attempts) => {
                let topic = match attributes.get("dlq") {
                    Some(Value::Text(topic)) => Some(TopicName::new(topic).ok()?),
                    Some(_) => return None,
                    None => None,
                };
                Poison::DeadLetter { attempts: u32::try_from(attempts).ok()?, topic }
            }
        };
        let growth = match optional(attributes, "to")? {
            None => None,
            Some(to) => {
                let barrier = read_barrier(attributes.bytes("bar").ok()?, partitions)?;
                Some(Growth { to: count(to)?, barrier })
            }
        };
        Some(Self {
            name: GroupName::new(name).ok()?,
            incarnation: u64::from_str_radix(attributes.text("inc").ok()?, 16).ok()?,
            config: GroupConfig { start, poison },
            partitions,
            growth,
            made: Timestamp::from_millis(required(attributes, "at")?),
            pending: attributes.get("new").is_some(),
            version: item.version,
        })
    }
}

fn read_barrier(bytes: &Bytes, partitions: u32) -> Option<Vec<u64>> {
    let mut reader = Reader::new(bytes);
    let barrier: Option<Vec<u64>> = (0..partitions).map(|_| reader.varint()).collect();
    barrier.filter(|_| reader.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn round_trips(
            (incarnation, version) in (any::<u64>(), any::<u64>()),
            barrier in vec(any::<u64>(), 1..20),
            grows in any::<bool>(),
            attempts in option::of(1..=ATTEMPTS_MAX),
            (latest, pending, topic) in (any::<bool>(), any::<bool>(), any::<bool>()),
        ) {
            let partitions = u32::try_from(barrier.len()).unwrap();
            let topic = topic.then(|| TopicName::new("dead").unwrap());
            let poison = attempts
                .map_or(Poison::Block, |attempts| Poison::DeadLetter { attempts, topic });
            let group = GroupItem {
                name: GroupName::new("billing").unwrap(),
                incarnation,
                config: GroupConfig {
                    start: if latest { Start::Latest } else { Start::Earliest },
                    poison,
                },
                partitions,
                growth: grows.then_some(Growth { to: partitions + 1, barrier }),
                made: Timestamp::from_millis(5),
                pending,
                version: Version::from_u64(version),
            };
            let key = GroupItem::key("groups", &group.name).unwrap();
            let item = Item { key, attributes: group.attributes(), version: group.version, expiry: None };
            prop_assert_eq!(GroupItem::decode(&item).unwrap(), group);
        }
    }
}
