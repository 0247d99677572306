//! What a consumer remembers.

use clap::Args;
use serde_json::Value;

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed, set};
use super::super::output::{Column, Output, Show};

/// Whose sources.
#[derive(Debug, Args)]
pub struct SourcesArgs {
    /// The consumer's name.
    consumer: String,
}

/// Whose state, and of what.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// The consumer's name.
    consumer: String,
    /// Only of this source, by its full ARN.
    #[arg(long)]
    arn: Option<String>,
    /// Only of this shard.
    #[arg(long)]
    shard: Option<String>,
    /// Only of messages that are not finished.
    #[arg(long)]
    unfinished: bool,
    /// Most messages.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max: u32,
}

/// Which message.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// The consumer's name.
    consumer: String,
    /// The message, as `consumer state` shows it.
    message: String,
    /// Its source, by its full ARN.
    #[arg(long)]
    arn: String,
    /// Its shard, where the source has any.
    #[arg(long, default_value = "")]
    shard: String,
}

const SOURCES: &[Column] = &[("SOURCE", "arn", Show::Plain), ("SHARD", "shard", Show::Plain)];

const ROWS: &[Column] = &[
    ("SOURCE", "arn", Show::Plain),
    ("SHARD", "shard", Show::Plain),
    ("MESSAGE", "message", Show::Plain),
    ("DEAD", "dead", Show::Plain),
    ("TASKS", "summary", Show::Plain),
];

/// Lists sources.
pub async fn sources(door: &Door, out: Output, args: SourcesArgs) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["consumers", &args.consumer, "sources"])).await?;
    out.list(SOURCES, &listed(answer, "sources"))
}

/// Shows state.
pub async fn show(door: &Door, out: Output, args: StateArgs) -> Result<(), Failure> {
    let ask = Ask::get(&["consumers", &args.consumer, "state"])
        .with_some("arn", args.arn)
        .with_some("shard", args.shard)
        .with("unfinished", args.unfinished)
        .with("max", args.max);
    let answer = door.ask(ask).await?;
    let more = field(&answer, "more") == true;
    let mut rows = listed(answer, "messages");
    if !out.is_json() {
        for row in &mut rows {
            let summary = match field(row, "problem").as_str() {
                Some(problem) => format!("cannot be read: {problem}"),
                None => summary(field(row, "tasks")),
            };
            set(row, "summary", summary.into());
        }
    }
    out.list(ROWS, &rows)?;
    if more {
        eprintln!(
            "millpond: there are more; narrow it with --arn, --shard or --unfinished, or raise --max"
        );
    }
    Ok(())
}

/// Forgets a message.
pub async fn forget(door: &Door, out: Output, args: ForgetArgs) -> Result<(), Failure> {
    let ask = Ask::delete(&["consumers", &args.consumer, "state"])
        .with("arn", args.arn)
        .with("shard", args.shard)
        .with("message", &args.message);
    let answer = door.ask(ask).await?;
    out.said(&answer, &format!("{} has forgotten {}", args.consumer, args.message))
}

fn summary(tasks: &Value) -> String {
    let one = |(name, task): (&String, &Value)| {
        let status = field(task, "status").as_str().unwrap_or_default();
        let error = field(task, "error").as_str().map(|error| format!(", {error}"));
        let attempts = field(task, "attempts");
        format!("{name}: {status}, {attempts} in vain{}", error.unwrap_or_default())
    };
    tasks.as_object().into_iter().flatten().map(one).collect::<Vec<_>>().join("; ")
}
