//! A sequencer's settings.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, named};
use super::super::output::{Column, Output, Show};
use super::super::values::{duration, millis};

/// Settings, as options. What is given replaces all settings: what is not given is as usual.
#[derive(Debug, Args)]
pub struct Configure {
    /// The number with which a queue begins: a number, first_seen, or stored. [usual: 0]
    #[arg(long, value_name = "NUMBER", value_parser = start)]
    start: Option<Value>,
    /// The most numbers that one step of the cursor passes. [usual: 100]
    #[arg(long, value_name = "COUNT")]
    batch: Option<usize>,
    /// How many numbers ahead of the awaited one are accepted. [usual: 1000000]
    #[arg(long, value_name = "COUNT")]
    window_span: Option<u64>,
    /// How many messages may wait. [usual: no bound]
    #[arg(long, value_name = "COUNT")]
    window_count: Option<u64>,
    /// How many bytes of payload may wait. [usual: no bound]
    #[arg(long, value_name = "BYTES")]
    window_bytes: Option<u64>,
    /// A second message with the same number and other content. [usual: refuse]
    #[arg(long, value_enum)]
    conflicts: Option<Conflicts>,
    /// What happens when a number does not come. [usual: wait]
    #[arg(long, value_enum)]
    gaps: Option<Gaps>,
    /// With --gaps skip-after and park-after: after how long.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "gaps")]
    gaps_after: Option<Duration>,
    /// What happens to a message whose number was skipped. [usual: reject]
    #[arg(long, value_enum)]
    late: Option<LateRule>,
    /// Delivered messages: the last so many numbers stay at least. [usual: all]
    #[arg(long, value_name = "COUNT", conflicts_with = "retain")]
    retain_last: Option<u64>,
    /// Delivered messages: what was put within this time stays at least. [usual: all]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    retain: Option<Duration>,
    /// Goes back to the usual settings.
    #[arg(long)]
    usual: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Conflicts {
    /// Other content is refused.
    Refuse,
    /// It is a duplicate, whatever it says.
    KeepFirst,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Gaps {
    /// The queue waits.
    Wait,
    /// It goes on where a producer declares a gap.
    WhenDeclared,
    /// The sweeper skips what is missing for so long.
    SkipAfter,
    /// The sweeper parks a queue in which something is missing for so long.
    ParkAfter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LateRule {
    /// Refused.
    Reject,
    /// Kept aside.
    SideQueue,
    /// Kept aside, and subscribers are told.
    Deliver,
}

fn start(text: &str) -> Result<Value, String> {
    match text {
        "first_seen" | "stored" => Ok(json!(text)),
        number => number
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| "give a number, first_seen or stored".to_owned()),
    }
}

impl Configure {
    fn value(&self) -> Map<String, Value> {
        let conflicts = self.conflicts.map(|conflicts| match conflicts {
            Conflicts::Refuse => "refuse",
            Conflicts::KeepFirst => "keep_first",
        });
        let gaps = self.gaps.map(|gaps| match gaps {
            Gaps::Wait => "wait",
            Gaps::WhenDeclared => "when_declared",
            Gaps::SkipAfter => "skip_after",
            Gaps::ParkAfter => "park_after",
        });
        let late = self.late.map(|late| match late {
            LateRule::Reject => "reject",
            LateRule::SideQueue => "side_queue",
            LateRule::Deliver => "deliver",
        });
        let fields = [
            ("start", json!(self.start)),
            ("batch", json!(self.batch)),
            ("window_span", json!(self.window_span)),
            ("window_count", json!(self.window_count)),
            ("window_bytes", json!(self.window_bytes)),
            ("conflicts", json!(conflicts)),
            ("gaps", json!(gaps)),
            ("gaps_after_ms", json!(self.gaps_after.map(millis))),
            ("late", json!(late)),
            ("retain_last", json!(self.retain_last)),
            ("retain_ms", json!(self.retain.map(millis))),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Shows or stores settings.
pub async fn configure(
    door: &Door,
    out: Output,
    name: &str,
    args: Configure,
) -> Result<(), Failure> {
    let settings = args.value();
    let answer = if settings.is_empty() && !args.usual {
        door.ask(Ask::get(&["sequencers", name])).await?
    } else {
        door.ask(Ask::put(&["sequencers", name], json!({ "settings": settings }))).await?
    };
    let columns: &[Column] = &[
        ("sequencer", "name", Show::Plain),
        ("settings", "settings", Show::Plain),
        ("stored", "stored", Show::Plain),
    ];
    out.one(columns, &answer)
}

/// Lists sequencers.
pub async fn list(door: &Door, out: Output) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["sequencers"])).await?;
    out.list(&[("SEQUENCER", "sequencer", Show::Plain)], &named(answer, "sequencers", "sequencer"))
}
