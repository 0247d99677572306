//! A topic's item: its configuration, and where its data is.
//!
//! Partition `log`, sort key `t` and the topic's name:
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `inc` | text | the incarnation, 16 hexadecimal digits: a topic made anew shares nothing with the old one |
//! | `parts` | text | how many partitions there were and are, oldest first: `4`, or `4,6,12` |
//! | `at` | number | when it was created, ms since 1970 |
//! | `grown` | number | when it last grew, ms since 1970; missing when it never did |
//! | `age` | number | retention in ms; missing when records are kept for ever |
//! | `size` | number | retention in bytes of each partition; missing when there is no bound |
//! | `linger` | number | how long producers wait for company, ms |
//! | `obj` | number | a flush of this many bytes goes to the object store |
//! | `seg` | number | a segment is closed at this many bytes |
//! | `del` | number | 1 while it is being deleted |

use std::time::Duration;

use millpond_lanes::limits::LOG_SEGMENT_BYTES_MAX;
use millpond_store::{Attributes, Item, Key, Timestamp, Value, Version};

use crate::error::{LogError, Result, millis, number};
use crate::limits::{LINGER_MAX, PARTITIONS_MAX, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::name::TopicName;

/// The store's partition in which all topics are.
pub(crate) const CATALOGUE: &str = "log";

/// The first byte of a topic's sort key.
pub(crate) const TOPIC_PREFIX: u8 = b't';

/// How a topic keeps its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopicConfig {
    /// How many partitions, 1 to [`PARTITIONS_MAX`]. They can grow, never shrink. Default: 4.
    pub partitions: u32,
    /// Records older than this are removed by [`trim`](crate::Topic::trim). Default: kept for ever.
    pub retention_age: Option<Duration>,
    /// What is over this many bytes in a partition is removed, oldest first. Default: no bound.
    pub retention_bytes: Option<u64>,
    /// How long a [`Producer`](crate::Producer) waits for more records before it flushes. Default: 5 ms.
    pub linger: Duration,
    /// A flush of this many bytes goes to the object store, when there is one. Default: 8 KiB, from where on a put
    /// and a get cost less than writing and reading items.
    pub object_bytes_min: usize,
    /// A segment is closed once it has this many bytes. Default: 1 MiB.
    pub segment_bytes_max: usize,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            partitions: 4,
            retention_age: None,
            retention_bytes: None,
            linger: Duration::from_millis(5),
            object_bytes_min: 8 * 1_024,
            segment_bytes_max: LOG_SEGMENT_BYTES_MAX,
        }
    }
}

impl TopicConfig {
    /// The default with this many partitions.
    #[must_use]
    pub fn with_partitions(partitions: u32) -> Self {
        Self { partitions, ..Self::default() }
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_partitions(self.partitions)?;
        if self.retention_age.is_some_and(|age| age < Duration::from_secs(1)) {
            return Err(LogError::invalid("retention_age", "is less than a second"));
        }
        if self.retention_bytes == Some(0) {
            return Err(LogError::invalid("retention_bytes", "is zero"));
        }
        if self.linger > LINGER_MAX {
            let problem = format!("is {:?}, the limit is {LINGER_MAX:?}", self.linger);
            return Err(LogError::invalid("linger", problem));
        }
        LogError::check_size("object_bytes_min", self.object_bytes_min, SEGMENT_BYTES_MAX)?;
        LogError::check_size("segment_bytes_max", self.segment_bytes_max, SEGMENT_BYTES_MAX)?;
        if self.segment_bytes_max < SEGMENT_BYTES_MIN {
            let problem = format!("is {}, at least {SEGMENT_BYTES_MIN}", self.segment_bytes_max);
            return Err(LogError::invalid("segment_bytes_max", problem));
        }
        Ok(())
    }
}

pub(crate) fn check_partitions(partitions: u32) -> Result<()> {
    if (1..=PARTITIONS_MAX).contains(&partitions) {
        return Ok(());
    }
    Err(LogError::invalid("partitions", format!("is {partitions}: from 1 to {PARTITIONS_MAX}")))
}

/// A topic as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopicItem {
    pub name: TopicName,
    pub incarnation: u64,
    pub config: TopicConfig,
    /// How many partitions there were before it grew, oldest first, without the present number.
    pub grown_from: Vec<u32>,
    pub created: Timestamp,
    pub grown: Option<Timestamp>,
    pub deleting: bool,
    /// The item's version; that of the next write, when it is to be written.
    pub version: Version,
}

impl TopicItem {
    pub fn key(name: &TopicName) -> Result<Key> {
        let mut sort = vec![TOPIC_PREFIX];
        sort.extend_from_slice(name.as_str().as_bytes());
        Ok(Key::new(CATALOGUE, sort)?)
    }

    pub fn attributes(&self) -> Attributes {
        let config = &self.config;
        let parts = self.grown_from.iter().chain([&config.partitions]);
        let parts = parts.map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut attributes = Attributes::new()
            .with("inc", format!("{:016x}", self.incarnation))
            .with("parts", parts)
            .with("at", millis(self.created))
            .with("linger", duration(config.linger))
            .with("obj", number(config.object_bytes_min as u64))
            .with("seg", number(config.segment_bytes_max as u64));
        if let Some(age) = config.retention_age {
            attributes.set("age", duration(age));
        }
        if let Some(size) = config.retention_bytes {
            attributes.set("size", number(size));
        }
        if let Some(grown) = self.grown {
            attributes.set("grown", millis(grown));
        }
        if self.deleting {
            attributes.set("del", 1);
        }
        attributes
    }

    pub fn decode(item: &Item) -> Result<Self> {
        Self::read(item).ok_or_else(|| {
            LogError::corrupt(format!("topic {}", item.key), "its attributes cannot be read")
        })
    }

    fn read(item: &Item) -> Option<Self> {
        let attributes = &item.attributes;
        let name = item.key.sort.as_bytes().strip_prefix(&[TOPIC_PREFIX])?;
        let name = TopicName::new(std::str::from_utf8(name).ok()?).ok()?;
        let incarnation = u64::from_str_radix(attributes.text("inc").ok()?, 16).ok()?;
        let parts = attributes.text("parts").ok()?.split(',').map(str::parse);
        let mut grown_from: Vec<u32> = parts.collect::<Result<_, _>>().ok()?;
        let partitions = grown_from.pop()?;
        let config = TopicConfig {
            partitions,
            retention_age: optional(attributes, "age")?.map(Duration::from_millis),
            retention_bytes: optional(attributes, "size")?,
            linger: Duration::from_millis(required(attributes, "linger")?),
            object_bytes_min: usize::try_from(required(attributes, "obj")?).ok()?,
            segment_bytes_max: usize::try_from(required(attributes, "seg")?).ok()?,
        };
        config.check().ok()?;
        let created = Timestamp::from_millis(required(attributes, "at")?);
        let grown = optional(attributes, "grown")?.map(Timestamp::from_millis);
        let deleting = attributes.get("del").is_some();
        let version = item.version;
        Some(Self { name, incarnation, config, grown_from, created, grown, deleting, version })
    }

    /// The name under which everything of this incarnation is: the shelf, and the beginning of the lanes' names.
    pub fn root(&self) -> String {
        format!("{CATALOGUE}/{}/{:016x}", self.name, self.incarnation)
    }
}

fn duration(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A number that may be missing; nothing when it is something else.
#[expect(clippy::option_option, reason = "missing is fine, nonsense is not")]
pub(crate) fn optional(attributes: &Attributes, name: &str) -> Option<Option<u64>> {
    match attributes.get(name) {
        None => Some(None),
        Some(Value::Number(n)) => u64::try_from(*n).ok().map(Some),
        Some(_) => None,
    }
}

/// A number that must be there.
pub(crate) fn required(attributes: &Attributes, name: &str) -> Option<u64> {
    optional(attributes, name)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn round_trips(
            (incarnation, version) in (any::<u64>(), any::<u64>()),
            (partitions, grown) in (1..=PARTITIONS_MAX, 1..5_u32),
            age in option::of(1_000..10_000_000_u64),
            size in option::of(1..1_u64 << 40),
            deleting in any::<bool>(),
        ) {
            let config = TopicConfig {
                retention_age: age.map(Duration::from_millis),
                retention_bytes: size,
                ..TopicConfig::with_partitions(partitions)
            };
            let topic = TopicItem {
                name: TopicName::new("orders").unwrap(),
                incarnation,
                config,
                grown_from: (1..grown).collect(),
                created: Timestamp::from_millis(17),
                grown: deleting.then_some(Timestamp::from_millis(18)),
                deleting,
                version: Version::from_u64(version),
            };
            let key = TopicItem::key(&topic.name).unwrap();
            let item = Item { key, attributes: topic.attributes(), version: topic.version, expiry: None };
            prop_assert_eq!(TopicItem::decode(&item).unwrap(), topic);
        }
    }

    #[test]
    fn absurd_configurations_are_refused_by_name() {
        let good = TopicConfig::default();
        for (config, field) in [
            (TopicConfig { partitions: 0, ..good }, "partitions"),
            (TopicConfig { partitions: PARTITIONS_MAX + 1, ..good }, "partitions"),
            (TopicConfig { retention_age: Some(Duration::ZERO), ..good }, "retention_age"),
            (TopicConfig { retention_bytes: Some(0), ..good }, "retention_bytes"),
            (TopicConfig { linger: LINGER_MAX * 2, ..good }, "linger"),
            (TopicConfig { segment_bytes_max: 1, ..good }, "segment_bytes_max"),
            (TopicConfig { object_bytes_min: usize::MAX, ..good }, "object_bytes_min"),
        ] {
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }
}
