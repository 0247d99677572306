//! What a queue is created with, and what of it can be changed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{QueueError, Result};
use crate::limits::{
    DELAY_MAX, LANES_MAX, MESSAGE_BYTES_MAX, PRIORITIES_MAX, RECEIVE_LIMIT_MAX, RETENTION_MAX,
    RETENTION_MIN, VISIBILITY_MAX, VISIBILITY_MIN,
};
use crate::names::QueueName;

/// How a queue behaves. Times are kept in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// Which message comes first. Default: the oldest. A receive may ask for another order.
    pub order: Order,
    /// Strict order within each message group, on lanes that number their messages. Default: no. Cannot be changed
    /// later.
    pub strict: Option<Strict>,
    /// How long a received message is invisible to others. Default: 30 seconds.
    #[serde(with = "millis")]
    pub visibility: Duration,
    /// How long a message is kept at most. Default: 14 days.
    #[serde(with = "millis")]
    pub retention: Duration,
    /// How long a sent message waits before it is delivered, unless it says otherwise. Default: not at all.
    #[serde(with = "millis")]
    pub delay: Duration,
    /// Where messages go that were received too often. Default: nowhere, they are received again and again.
    pub dead_letters: Option<DeadLetters>,
    /// Whether a message that is moved here from another queue keeps its age: then it ends when it would have ended, had
    /// it been sent here. Strict queues count from the move in any case. Default: no, it is kept as if it were new.
    #[serde(skip_serializing_if = "is_false")]
    pub keeps_age: bool,
    /// Largest message in bytes (body, attributes and what else its sender says). Default: 1 MiB.
    pub message_bytes_max: usize,
    /// Into how many lanes a client's messages are spread, for more throughput than one partition of the store has.
    /// Between lanes, order is by time, as good as the senders' clocks. Default: 1. Cannot be changed later.
    pub lanes: u8,
    /// How many levels of priority there are: a message has one from 0 (the default) to one less. Default: 1, which
    /// is none. Cannot be changed later.
    pub priorities: u8,
    /// Whether and how long what became of a message is kept. Default: not at all.
    pub status: Option<StatusKeeping>,
    /// Which messages are dropped when there are too many. Default: none.
    pub shedding: Option<Shedding>,
    /// How fast, and how many at a time, messages are handed out. Default: without limits.
    pub limits: Limits,
}

/// Which message comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The oldest.
    #[default]
    Fifo,
    /// The newest. One that was given back keeps its age.
    Lifo,
    /// The one of the highest priority, the oldest of these. Each time a message has waited this long, it counts as
    /// one level higher, so that none waits for ever.
    Priority {
        /// How long that is.
        #[serde(with = "millis")]
        aging: Duration,
    },
    /// The oldest, until a backlog stands; then the newest, until it is gone.
    Adaptive {
        /// A backlog stands when the oldest message has been waiting for longer than this...
        #[serde(with = "millis")]
        target: Duration,
        /// ...at every moment of such a time.
        #[serde(with = "millis")]
        interval: Duration,
    },
}

/// Strict order within groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Strict {
    /// Which messages count as sent before. Default: those with the same deduplication id.
    pub dedup: Dedup,
    /// Within what a deduplication id is unique. Default: the client's whole queue.
    pub dedup_scope: DedupScope,
    /// What becomes of a group whose first message was received too often. Default: the message goes to the dead
    /// letters, and the group goes on.
    pub poison: GroupPoison,
}

/// Which messages of a strict queue count as sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedup {
    /// Those with the same deduplication id; without one, none.
    #[default]
    ById,
    /// Those with the same deduplication id, or without one the same body.
    ByContent,
}

/// Within what a deduplication id is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupScope {
    /// The client's whole queue.
    #[default]
    Queue,
    /// The message's group.
    Group,
}

/// What becomes of a group whose first message was received too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPoison {
    /// The message goes to the dead letters, and the group goes on.
    #[default]
    Skip,
    /// The message is held back and its group with it, until `unblock`.
    Block,
    /// The message and those of its group that wait behind it go to the dead letters, in order.
    Park,
}

/// Where messages go that were received too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetters {
    /// The queue that they go to; of the same kind (strict or not), and not this one.
    pub queue: String,
    /// How often a message is received before.
    pub receives_max: u32,
}

/// What is kept of finished messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusKeeping {
    /// How long after its end.
    #[serde(with = "millis")]
    pub keep: Duration,
}

/// Which messages are dropped, each counted by its reason. The oldest go first; those in work never.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shedding {
    /// Those older than this.
    #[serde(with = "optional_millis")]
    pub age_max: Option<Duration>,
    /// The oldest, when more than this wait. Judged by `maintain`, within what it runs.
    pub depth_max: Option<u64>,
    /// Those that wait for longer than a target, while a backlog stands.
    pub delay: Option<DelayTarget>,
    /// The queue that gets them. Default: none, they are gone.
    pub side_queue: Option<String>,
}

/// How long messages may wait while a backlog stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayTarget {
    /// A backlog stands when the oldest message has been waiting for longer than this...
    #[serde(with = "millis")]
    pub target: Duration,
    /// ...at every moment of such a time.
    #[serde(with = "millis")]
    pub interval: Duration,
}

/// How fast, and how many at a time, messages are handed out, by all processes together. They are checked before a
/// message is claimed, so that one that must wait loses neither an attempt nor time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Messages a second, for the client's queue as a whole.
    pub rate: Option<Rate>,
    /// Messages in work at a time, for the client's queue as a whole.
    pub running: Option<u32>,
    /// Messages a second, for each group.
    pub group_rate: Option<Rate>,
    /// Messages in work at a time, for each group.
    pub group_running: Option<u32>,
}

/// A rate, evenly spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many a second.
    pub per_second: f64,
    /// How many may start at once after a pause. At least 1.
    pub burst: u32,
}

impl Limits {
    /// Whether there is none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.rate.is_none()
            && self.running.is_none()
            && self.group_rate.is_none()
            && self.group_running.is_none()
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            order: Order::Fifo,
            strict: None,
            visibility: Duration::from_secs(30),
            retention: Duration::from_secs(14 * 24 * 60 * 60),
            delay: Duration::ZERO,
            dead_letters: None,
            keeps_age: false,
            message_bytes_max: 1_024 * 1_024,
            lanes: 1,
            priorities: 1,
            status: None,
            shedding: None,
            limits: Limits::default(),
        }
    }
}

impl QueueConfig {
    /// A queue with strict order within groups, and the rest as usual.
    #[must_use]
    pub fn strict() -> Self {
        Self { strict: Some(Strict::default()), ..Self::default() }
    }

    /// Checks that each value makes sense, and that they do together.
    ///
    /// # Errors
    /// [`QueueError::Invalid`], which names the field.
    pub fn check(&self, name: &QueueName) -> Result<()> {
        within("visibility", self.visibility, VISIBILITY_MIN, VISIBILITY_MAX)?;
        within("retention", self.retention, RETENTION_MIN, RETENTION_MAX)?;
        within("delay", self.delay, Duration::ZERO, DELAY_MAX)?;
        if self.delay >= self.retention {
            return Err(QueueError::invalid("delay", "is not shorter than the retention"));
        }
        between("message_bytes_max", self.message_bytes_max, 1, MESSAGE_BYTES_MAX)?;
        between("lanes", usize::from(self.lanes), 1, usize::from(LANES_MAX))?;
        between("priorities", usize::from(self.priorities), 1, usize::from(PRIORITIES_MAX))?;
        self.check_order(self.order)?;
        if let Some(dead) = &self.dead_letters {
            check_other("dead_letters.queue", &dead.queue, name)?;
            let most = RECEIVE_LIMIT_MAX as usize;
            between("dead_letters.receives_max", dead.receives_max as usize, 1, most)?;
        }
        if let Some(status) = &self.status {
            within("status.keep", status.keep, RETENTION_MIN, RETENTION_MAX)?;
        }
        self.check_shedding(name)?;
        self.check_strict()?;
        self.limits.check()
    }

    /// Checks an order against what the queue is.
    pub(crate) fn check_order(&self, order: Order) -> Result<()> {
        if self.strict.is_some() && order != Order::Fifo {
            return Err(QueueError::invalid("order", "of a strict queue is fifo, always"));
        }
        match order {
            Order::Fifo | Order::Lifo => Ok(()),
            Order::Priority { aging } => {
                within("order.aging", aging, Duration::from_millis(1), RETENTION_MAX)
            }
            Order::Adaptive { target, interval } => check_target("order", target, interval),
        }
    }

    fn check_strict(&self) -> Result<()> {
        if self.strict.is_none() {
            return Ok(());
        }
        if self.priorities > 1 {
            return Err(QueueError::invalid("priorities", "contradict strict order"));
        }
        if self.shedding.is_some() {
            return Err(QueueError::invalid("shedding", "contradicts strict order"));
        }
        Ok(())
    }

    fn check_shedding(&self, name: &QueueName) -> Result<()> {
        let Some(shedding) = &self.shedding else { return Ok(()) };
        if let Some(age) = shedding.age_max {
            within("shedding.age_max", age, Duration::from_millis(1), RETENTION_MAX)?;
        }
        if shedding.depth_max == Some(0) {
            return Err(QueueError::invalid("shedding.depth_max", "is 0: nothing could wait"));
        }
        if let Some(DelayTarget { target, interval }) = shedding.delay {
            check_target("shedding.delay", target, interval)?;
        }
        match &shedding.side_queue {
            Some(side) => check_other("shedding.side_queue", side, name),
            None => Ok(()),
        }
    }

    /// What of this cannot become `other`.
    pub(crate) fn fixed_field_of(&self, other: &Self) -> Option<&'static str> {
        if self.strict.is_some() != other.strict.is_some() {
            return Some("strict");
        }
        if self.lanes != other.lanes {
            return Some("lanes");
        }
        (self.priorities != other.priorities).then_some("priorities")
    }

    /// The first field in which this differs from `other`.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        let fields = [
            ("order", self.order == other.order),
            ("strict", self.strict == other.strict),
            ("visibility", self.visibility == other.visibility),
            ("retention", self.retention == other.retention),
            ("delay", self.delay == other.delay),
            ("dead_letters", self.dead_letters == other.dead_letters),
            ("keeps_age", self.keeps_age == other.keeps_age),
            ("message_bytes_max", self.message_bytes_max == other.message_bytes_max),
            ("lanes", self.lanes == other.lanes),
            ("priorities", self.priorities == other.priorities),
            ("status", self.status == other.status),
            ("shedding", self.shedding == other.shedding),
            ("limits", self.limits == other.limits),
        ];
        fields.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
    }
}

impl Limits {
    fn check(&self) -> Result<()> {
        let rates = [("limits.rate", self.rate), ("limits.group_rate", self.group_rate)];
        for (field, rate) in rates {
            let Some(Rate { per_second, burst }) = rate else { continue };
            if !(per_second.is_finite() && (0.001..=1_000_000.0).contains(&per_second)) {
                return Err(QueueError::invalid(
                    field,
                    format!("is {per_second} a second; 0.001 to 1,000,000 are accepted"),
                ));
            }
            between(field, burst as usize, 1, 1_000_000)?;
        }
        let caps = [("limits.running", self.running), ("limits.group_running", self.group_running)];
        for (field, cap) in caps {
            if let Some(cap) = cap {
                between(field, cap as usize, 1, 1_000_000)?;
            }
        }
        Ok(())
    }
}

fn check_target(field: &'static str, target: Duration, interval: Duration) -> Result<()> {
    within(field, target, Duration::from_millis(1), RETENTION_MAX)?;
    within(field, interval, Duration::from_millis(1), RETENTION_MAX)
}

fn check_other(field: &'static str, other: &str, name: &QueueName) -> Result<()> {
    if QueueName::new(other).is_err() {
        return Err(QueueError::invalid(field, format!("{other:?} is not the name of a queue")));
    }
    if other == name.as_str() {
        return Err(QueueError::invalid(field, "is the queue itself"));
    }
    Ok(())
}

pub(crate) fn within(
    field: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(QueueError::invalid(field, format!("is {value:?}; {least:?} to {most:?} are accepted")))
}

pub(crate) fn between(field: &'static str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(QueueError::invalid(field, format!("is {value}; {least} to {most} are accepted")))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this form")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        duration.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}
