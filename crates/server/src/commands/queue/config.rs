//! A queue's configuration, as options.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::input::whole;
use super::super::values::{duration, millis};

/// A queue's configuration, as options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// Which message comes first.
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// With --order priority: after waiting this long, a message counts one level higher. [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "order")]
    aging: Option<Duration>,
    /// With --order adaptive: a backlog stands when the oldest message waits longer than this... [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "order")]
    target: Option<Duration>,
    /// ...at every moment of such a time. [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "order")]
    interval: Option<Duration>,
    /// Strict order within each message group. Cannot be changed later.
    #[arg(long)]
    strict: bool,
    /// In a strict queue: which messages count as sent before.
    #[arg(long, value_enum)]
    dedup: Option<DedupName>,
    /// In a strict queue: within what a deduplication id is unique.
    #[arg(long, value_enum)]
    dedup_scope: Option<ScopeName>,
    /// In a strict queue: what becomes of a group whose first message fails too often.
    #[arg(long, value_enum)]
    poison: Option<PoisonName>,
    /// How long a received message is invisible to others. [usual: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    visibility: Option<Duration>,
    /// How long a message is kept at most. [usual: 14days]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    retention: Option<Duration>,
    /// How long a sent message waits before it is delivered. [usual: 0s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    delay: Option<Duration>,
    /// The queue that messages go to that were received too often.
    #[arg(long, value_name = "QUEUE", requires = "receives_max")]
    dead_letters: Option<String>,
    /// How often a message is received before it goes there.
    #[arg(long, value_name = "COUNT", requires = "dead_letters")]
    receives_max: Option<u32>,
    /// Largest message in bytes. [usual: 1048576]
    #[arg(long, value_name = "BYTES")]
    message_bytes_max: Option<usize>,
    /// Lanes that a client's messages are spread over. Cannot be changed later. [usual: 1]
    #[arg(long, value_name = "COUNT")]
    lanes: Option<u8>,
    /// Levels of priority. Cannot be changed later. [usual: 1]
    #[arg(long, value_name = "COUNT")]
    priorities: Option<u8>,
    /// Keeps what became of a message for this long after its end.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    status: Option<Duration>,
    /// Sheds messages older than this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    shed_age: Option<Duration>,
    /// Sheds the oldest messages when more than this wait.
    #[arg(long, value_name = "COUNT")]
    shed_depth: Option<u64>,
    /// Sheds messages that wait longer than this while a backlog stands...
    #[arg(long, value_name = "TIME", value_parser = duration)]
    shed_target: Option<Duration>,
    /// ...which it does when that is so at every moment of such a time. [default: as --shed-target]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "shed_target")]
    shed_interval: Option<Duration>,
    /// The queue that shed messages go to.
    #[arg(long, value_name = "QUEUE")]
    side_queue: Option<String>,
    /// Whether a message that is moved here from another queue keeps its age. [usual: false]
    #[arg(long, value_name = "BOOL")]
    keeps_age: Option<bool>,
    /// Messages handed out a second, by all workers together.
    #[arg(long, value_name = "PER-SECOND")]
    rate: Option<f64>,
    /// Messages in work at a time, by all workers together.
    #[arg(long, value_name = "COUNT")]
    running: Option<u32>,
    /// Messages of one group handed out a second.
    #[arg(long, value_name = "PER-SECOND")]
    group_rate: Option<f64>,
    /// Messages of one group in work at a time.
    #[arg(long, value_name = "COUNT")]
    group_running: Option<u32>,
    /// How many messages may start at once after a pause, with --rate and --group-rate. [default: 1]
    #[arg(long, value_name = "COUNT")]
    burst: Option<u32>,
    /// The configuration as JSON, or `@FILE`; times in milliseconds. Options come on top.
    #[arg(long, value_name = "JSON | @FILE")]
    config: Option<String>,
}

/// Which message comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// The oldest.
    Fifo,
    /// The newest.
    Lifo,
    /// The one of the highest priority, and the oldest of these.
    Priority,
    /// The oldest, until a backlog stands; then the newest.
    Adaptive,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DedupName {
    ById,
    ByContent,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    Queue,
    Group,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PoisonName {
    Skip,
    Block,
    Park,
}

/// An order as the API takes it.
pub fn order_value(
    order: OrderName,
    aging: Option<Duration>,
    target: Option<Duration>,
    interval: Option<Duration>,
) -> Value {
    let target = target.unwrap_or(Duration::from_secs(1));
    match order {
        OrderName::Fifo => json!("fifo"),
        OrderName::Lifo => json!("lifo"),
        OrderName::Priority => {
            json!({ "priority": { "aging": millis(aging.unwrap_or(Duration::from_secs(60))) } })
        }
        OrderName::Adaptive => {
            let interval = millis(interval.unwrap_or(target));
            json!({ "adaptive": { "target": millis(target), "interval": interval } })
        }
    }
}

impl ConfigArgs {
    /// The configuration, or the change of one, as the API takes it.
    pub fn value(&self) -> Result<Map<String, Value>, Failure> {
        let mut config = self.base()?;
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                config.insert(name.to_owned(), value);
            }
        };
        let order = |order| order_value(order, self.aging, self.target, self.interval);
        let time = |time: Option<Duration>| time.map(|time| json!(millis(time)));
        set("order", self.order.map(order));
        set("strict", self.strict_value());
        set("visibility", time(self.visibility));
        set("retention", time(self.retention));
        set("delay", time(self.delay));
        let dead = self.dead_letters.as_ref();
        set(
            "dead_letters",
            dead.map(|queue| json!({ "queue": queue, "receives_max": self.receives_max })),
        );
        set("message_bytes_max", self.message_bytes_max.map(Value::from));
        set("lanes", self.lanes.map(Value::from));
        set("priorities", self.priorities.map(Value::from));
        set("status", self.status.map(|keep| json!({ "keep": millis(keep) })));
        set("shedding", self.shedding_value());
        set("limits", self.limits_value());
        set("keeps_age", self.keeps_age.map(Value::from));
        Ok(config)
    }

    fn base(&self) -> Result<Map<String, Value>, Failure> {
        let Some(given) = &self.config else { return Ok(Map::new()) };
        let text = match given.strip_prefix('@') {
            Some(file) => String::from_utf8_lossy(&whole(file.as_ref())?).into_owned(),
            None => given.clone(),
        };
        serde_json::from_str(&text)
            .map_err(|error| Failure::Usage(format!("--config is not a JSON object: {error}")))
    }

    fn strict_value(&self) -> Option<Value> {
        let mut strict = Map::new();
        if let Some(dedup) = self.dedup {
            let dedup = match dedup {
                DedupName::ById => "by_id",
                DedupName::ByContent => "by_content",
            };
            strict.insert("dedup".to_owned(), json!(dedup));
        }
        if let Some(scope) = self.dedup_scope {
            let scope = match scope {
                ScopeName::Queue => "queue",
                ScopeName::Group => "group",
            };
            strict.insert("dedup_scope".to_owned(), json!(scope));
        }
        if let Some(poison) = self.poison {
            let poison = match poison {
                PoisonName::Skip => "skip",
                PoisonName::Block => "block",
                PoisonName::Park => "park",
            };
            strict.insert("poison".to_owned(), json!(poison));
        }
        (self.strict || !strict.is_empty()).then_some(Value::Object(strict))
    }

    fn shedding_value(&self) -> Option<Value> {
        let mut shedding = Map::new();
        if let Some(age) = self.shed_age {
            shedding.insert("age_max".to_owned(), json!(millis(age)));
        }
        if let Some(depth) = self.shed_depth {
            shedding.insert("depth_max".to_owned(), json!(depth));
        }
        if let Some(target) = self.shed_target {
            let interval = self.shed_interval.unwrap_or(target);
            let delay = json!({ "target": millis(target), "interval": millis(interval) });
            shedding.insert("delay".to_owned(), delay);
        }
        if let Some(side) = &self.side_queue {
            shedding.insert("side_queue".to_owned(), json!(side));
        }
        (!shedding.is_empty()).then_some(Value::Object(shedding))
    }

    fn limits_value(&self) -> Option<Value> {
        let burst = self.burst.unwrap_or(1);
        let rate = |per_second| json!({ "per_second": per_second, "burst": burst });
        let mut limits = Map::new();
        if let Some(per_second) = self.rate {
            limits.insert("rate".to_owned(), rate(per_second));
        }
        if let Some(per_second) = self.group_rate {
            limits.insert("group_rate".to_owned(), rate(per_second));
        }
        if let Some(running) = self.running {
            limits.insert("running".to_owned(), json!(running));
        }
        if let Some(running) = self.group_running {
            limits.insert("group_running".to_owned(), json!(running));
        }
        (!limits.is_empty()).then_some(Value::Object(limits))
    }
}
