//! Consumer groups.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, list as listed};
use super::super::output::{Column, Output, Show, print_text};
use super::super::queue::check_sure;
use super::super::values::place;
use super::topics::Name;

/// Lists groups.
pub async fn list(door: &Door, out: Output, args: Name) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["topics", &args.topic, "groups"])).await?;
    let columns: &[Column] = &[
        ("GROUP", "name", Show::Plain),
        ("LAG", "lag", Show::Number),
        ("WORKERS", "workers", Show::Number),
    ];
    out.list(columns, &listed(answer, "groups"))
}

/// Which group.
#[derive(Debug, Args)]
pub struct Group {
    /// The topic.
    topic: String,
    /// The group.
    group: String,
}

/// What a group does with records that cannot be handled.
#[derive(Debug, Clone, Args)]
pub struct PoisonArgs {
    /// Attempts at a record before it goes to the dead letters; without it, it blocks until it works.
    #[arg(long, value_name = "COUNT")]
    attempts_max: Option<u32>,
    /// The topic for dead letters; without it, the worker brings a sink.
    #[arg(long, value_name = "TOPIC", requires = "attempts_max")]
    dead_letter_topic: Option<String>,
}

/// A group to be.
#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    group: Group,
    /// Where it begins.
    #[arg(long, value_enum, default_value_t = Start::Earliest)]
    start: Start,
    #[command(flatten)]
    poison: PoisonArgs,
}

/// Where a group begins.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Start {
    /// With the first record that is still there.
    Earliest,
    /// Behind what is there now.
    Latest,
}

impl Start {
    /// As the API says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Earliest => "earliest",
            Self::Latest => "latest",
        }
    }
}

/// Makes a group.
pub async fn create(door: &Door, out: Output, args: Create) -> Result<(), Failure> {
    let body = json!({
        "start": args.start.name(),
        "attempts_max": args.poison.attempts_max,
        "dead_letter_topic": args.poison.dead_letter_topic,
    });
    let Group { topic, group } = &args.group;
    let answer = door.ask(Ask::put(&["topics", topic, "groups", group], body)).await?;
    show(out, answer)
}

fn show(out: Output, answer: Value) -> Result<(), Failure> {
    if out.is_json() {
        return out.document(&answer);
    }
    let columns: &[Column] = &[
        ("group", "name", Show::Plain),
        ("made", "made_ms", Show::Time),
        ("started", "start", Show::Plain),
        ("attempts", "attempts_max", Show::Plain),
        ("dead letters", "dead_letter_topic", Show::Plain),
        ("lag", "lag", Show::Plain),
    ];
    out.one(columns, &answer)?;
    print_text("\n")?;
    let columns: &[Column] = &[
        ("PARTITION", "partition", Show::Number),
        ("CHECKPOINT", "checkpoint", Show::Number),
        ("LATEST", "latest", Show::Number),
        ("LAG", "lag", Show::Number),
        ("EPOCH", "epoch", Show::Number),
        ("FAILS", "fails", Show::Number),
        ("OWNER", "owner", Show::Plain),
    ];
    out.list(columns, &listed(answer.clone(), "partitions"))?;
    let workers = listed(answer, "workers");
    if workers.is_empty() {
        return Ok(());
    }
    print_text("\n")?;
    let columns: &[Column] = &[("WORKER", "id", Show::Plain), ("BEATS", "beats", Show::Number)];
    out.list(columns, &workers)
}

/// Shows how far a group has come.
pub async fn lag(door: &Door, out: Output, args: Group) -> Result<(), Failure> {
    show(out, door.ask(Ask::get(&["topics", &args.topic, "groups", &args.group])).await?)
}

/// What to change.
#[derive(Debug, Args)]
pub struct Configure {
    #[command(flatten)]
    group: Group,
    #[command(flatten)]
    poison: PoisonArgs,
}

/// Changes what a group does with poison.
pub async fn configure(door: &Door, out: Output, args: Configure) -> Result<(), Failure> {
    let body = json!({
        "attempts_max": args.poison.attempts_max,
        "dead_letter_topic": args.poison.dead_letter_topic,
    });
    let Group { topic, group } = &args.group;
    show(out, door.ask(Ask::patch(&["topics", topic, "groups", group], body)).await?)
}

/// Which group, for sure.
#[derive(Debug, Args)]
pub struct Sure {
    #[command(flatten)]
    group: Group,
    /// Yes, forget it for ever.
    #[arg(long)]
    yes: bool,
}

/// Forgets a group.
pub async fn delete(door: &Door, out: Output, args: Sure) -> Result<(), Failure> {
    check_sure(args.yes, "forgets how far the group has come")?;
    let Group { topic, group } = &args.group;
    let answer = door.ask(Ask::delete(&["topics", topic, "groups", group])).await?;
    out.said(&answer, &format!("group {group} is forgotten"))
}

/// Where to move a group.
#[derive(Debug, Args)]
pub struct Reset {
    #[command(flatten)]
    group: Group,
    /// The place: earliest, latest, an offset, a time such as 2026-05-01T12:00:00Z, or @MILLISECONDS.
    #[arg(long, value_name = "PLACE", value_parser = place)]
    to: String,
    /// The partition; without it, all of them.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
}

/// Moves a group.
pub async fn reset(door: &Door, out: Output, args: Reset) -> Result<(), Failure> {
    let Group { topic, group } = &args.group;
    let body = json!({ "to": args.to, "partition": args.partition });
    show(out, door.ask(Ask::post(&["topics", topic, "groups", group, "reset"], body)).await?)
}

/// Moves a group behind everything.
pub async fn skip_to_end(door: &Door, out: Output, args: Group) -> Result<(), Failure> {
    let path = ["topics", args.topic.as_str(), "groups", args.group.as_str(), "skip-to-end"];
    show(out, door.ask(Ask::post(&path, json!({}))).await?)
}
