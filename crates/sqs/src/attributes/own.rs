//! Millpond's own attributes of queues, under a prefix: what SQS cannot say. `docs/sqs.md` lists them.

use std::time::Duration;

use millpond_queue::{
    DelayTarget, GroupPoison, Limits, Order, QueueConfig, Rate, Shedding, StatusKeeping,
};

use super::Texts;
use crate::error::{Code, Failure, Result};
use crate::place::{Place, check_name};

/// What kind of value an attribute has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number, at least 1.
    Count,
    /// Seconds, with a decimal point if need be.
    Seconds,
    /// How many a second.
    Rate,
    /// The name of a queue of the same account and region.
    Queue,
}

/// All of them, without the prefix.
const OWN: &[(&str, Kind)] = &[
    ("Order", Kind::Word(&["fifo", "lifo", "priority", "adaptive"])),
    ("OrderAging", Kind::Seconds),
    ("OrderTarget", Kind::Seconds),
    ("OrderInterval", Kind::Seconds),
    ("Priorities", Kind::Count),
    ("Lanes", Kind::Count),
    ("Clients", Kind::Word(&["true", "false"])),
    ("ShedAge", Kind::Seconds),
    ("ShedDepth", Kind::Count),
    ("ShedDelayTarget", Kind::Seconds),
    ("ShedDelayInterval", Kind::Seconds),
    ("ShedQueue", Kind::Queue),
    ("Rate", Kind::Rate),
    ("RateBurst", Kind::Count),
    ("Running", Kind::Count),
    ("GroupRate", Kind::Rate),
    ("GroupRateBurst", Kind::Count),
    ("GroupRunning", Kind::Count),
    ("StatusKeep", Kind::Seconds),
    ("GroupPoison", Kind::Word(&["skip", "block", "park"])),
];

/// Checks one attribute by itself. Nothing is accepted: it clears it.
pub fn check(name: &str, own: &str, value: &str) -> Result<()> {
    let Some((_, kind)) = OWN.iter().find(|(known, _)| *known == own) else {
        return Err(Failure::unknown_attribute(name));
    };
    let invalid = |accepted: &str| {
        let text = format!("Invalid value for the parameter {name}. {accepted}");
        Err(Failure::new(Code::InvalidAttributeValue, text))
    };
    match kind {
        _ if value.is_empty() => Ok(()),
        Kind::Word(words) if words.contains(&value) => Ok(()),
        Kind::Word(words) => invalid(&format!("It is one of: {}.", words.join(", "))),
        Kind::Count if value.parse::<u32>().is_ok_and(|count| count > 0) => Ok(()),
        Kind::Count => invalid("It is a whole number, at least 1."),
        Kind::Seconds if seconds(value).is_some_and(|time| !time.is_zero()) => Ok(()),
        Kind::Seconds => invalid("It is a number of seconds."),
        Kind::Rate if value.parse::<f64>().is_ok_and(f64::is_finite) => Ok(()),
        Kind::Rate => invalid("It is a number a second."),
        Kind::Queue if check_name(value).is_ok() => Ok(()),
        Kind::Queue => invalid("It is the name of a queue."),
    }
}

/// Seconds, with a decimal point if need be.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// The attributes of one queue.
pub struct Own<'a> {
    pub texts: &'a Texts,
    pub prefix: &'a str,
    pub place: &'a Place,
}

impl Own<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(&format!("{}{name}", self.prefix)).map(String::as_str)
    }

    fn count<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    fn seconds(&self, name: &str) -> Option<Duration> {
        seconds(self.text(name)?)
    }

    /// Whether the queue is divided among clients.
    pub fn has_clients(&self) -> bool {
        self.text("Clients") == Some("true")
    }

    /// What a group does whose first message was received too often.
    pub fn poison(&self) -> GroupPoison {
        match self.text("GroupPoison") {
            Some("block") => GroupPoison::Block,
            Some("park") => GroupPoison::Park,
            _ => GroupPoison::Skip,
        }
    }

    /// Completes what the service's own attributes say of a queue.
    pub fn complete(&self, config: &mut QueueConfig) -> Result<()> {
        config.order = self.order();
        config.priorities = self.small("Priorities")?;
        config.lanes = self.small("Lanes")?;
        config.status = self.seconds("StatusKeep").map(|keep| StatusKeeping { keep });
        config.shedding = self.shedding();
        config.limits = Limits {
            rate: self.rate("Rate", "RateBurst"),
            running: self.count("Running"),
            group_rate: self.rate("GroupRate", "GroupRateBurst"),
            group_running: self.count("GroupRunning"),
        };
        Ok(())
    }

    fn order(&self) -> Order {
        let second = Duration::from_secs(1);
        match self.text("Order") {
            Some("lifo") => Order::Lifo,
            Some("priority") => {
                Order::Priority { aging: self.seconds("OrderAging").unwrap_or(60 * second) }
            }
            Some("adaptive") => Order::Adaptive {
                target: self.seconds("OrderTarget").unwrap_or(second),
                interval: self.seconds("OrderInterval").unwrap_or(5 * second),
            },
            _ => Order::Fifo,
        }
    }

    fn small(&self, name: &str) -> Result<u8> {
        match self.text(name) {
            None => Ok(1),
            Some(text) => text
                .parse()
                .map_err(|_| Failure::attribute_value(&format!("{}{name}", self.prefix))),
        }
    }

    fn rate(&self, name: &str, burst: &str) -> Option<Rate> {
        let per_second = self.count(name)?;
        Some(Rate { per_second, burst: self.count(burst).unwrap_or(1) })
    }

    fn shedding(&self) -> Option<Shedding> {
        let target = self.seconds("ShedDelayTarget");
        let interval = self.seconds("ShedDelayInterval").unwrap_or(Duration::from_secs(5));
        let shedding = Shedding {
            age_max: self.seconds("ShedAge"),
            depth_max: self.count("ShedDepth"),
            delay: target.map(|target| DelayTarget { target, interval }),
            side_queue: self
                .text("ShedQueue")
                .map(|name| Place { name: name.to_owned(), ..self.place.clone() }.stored_name()),
        };
        (shedding != Shedding::default()).then_some(shedding)
    }
}
