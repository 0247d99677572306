//! What a consumer remembers.

use std::sync::Arc;

use clap::Args;
use millpond_consumer::source::{Scope, SourceKind};
use millpond_consumer::state::{Address, KnownSource, StateRow, StoreState};
use millpond_lanes::Ground;
use serde_json::{Value, json};

use super::super::Failure;
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
pub async fn sources(ground: &Ground, args: &SourcesArgs, out: Output) -> Result<(), Failure> {
    let state = StoreState::new(Arc::clone(&ground.store), &ground.environment);
    let known = state.sources(&args.consumer).await?;
    let rows: Vec<Value> =
        known.iter().map(|source| json!({ "arn": source.arn, "shard": source.shard })).collect();
    out.list(SOURCES, &rows)
}

/// Shows state.
pub async fn show(ground: &Ground, args: &StateArgs, out: Output) -> Result<(), Failure> {
    let state = StoreState::new(Arc::clone(&ground.store), &ground.environment);
    let is_meant = |known: &KnownSource| {
        args.arn.as_ref().is_none_or(|arn| *arn == known.arn)
            && args.shard.as_ref().is_none_or(|shard| *shard == known.shard)
    };
    let mut rows = Vec::new();
    for known in state.sources(&args.consumer).await?.into_iter().filter(is_meant) {
        // Of the scope, what delivers is not part of where its state is.
        let kind = SourceKind::Kinesis;
        let scope = Scope { kind, arn: known.arn.clone(), shard: known.shard.clone() };
        let address = Address { consumer: args.consumer.as_str().into(), scope: Arc::new(scope) };
        let found = state.rows(&address).await?;
        let wanted = found.iter().filter(|row| !args.unfinished || is_unfinished(row));
        rows.extend(wanted.map(|row| described(&known, row)));
    }
    out.list(ROWS, &rows)
}

fn is_unfinished(row: &StateRow) -> bool {
    row.state.dead.is_none() && row.state.tasks.values().any(|task| !task.status.is_ended())
}

fn described(known: &KnownSource, row: &StateRow) -> Value {
    let tasks: serde_json::Map<String, Value> = row
        .state
        .tasks
        .iter()
        .map(|(name, task)| {
            let described = json!({
                "status": task.status,
                "attempts": task.attempts,
                "error": task.error,
                "steps": task.steps,
                "not_before_ms": task.due_ms,
            });
            (name.clone(), described)
        })
        .collect();
    let summary: Vec<String> = row
        .state
        .tasks
        .iter()
        .map(|(name, task)| {
            let status = format!("{:?}", task.status).to_lowercase();
            let error = task.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
            format!("{name}: {status}, {} in vain{error}", task.attempts)
        })
        .collect();
    json!({
        "arn": known.arn,
        "shard": known.shard,
        "message": row.position.to_string(),
        "dead": row.state.dead.map(millpond_consumer::Reason::name),
        "running": row.state.running,
        "summary": summary.join("; "),
        "tasks": tasks,
    })
}
