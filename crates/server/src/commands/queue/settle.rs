//! What a receiver does with messages on loan.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, list as listed, set};
use super::super::input::arguments_or_lines;
use super::super::output::{Column, Output, Show};
use super::super::values::{duration, millis};
use super::Place;
use crate::api::ErrorBody;
use crate::api::limits::BATCH_MAX;

/// How many of these outcomes are failures, and the first of them.
pub fn failures(outcomes: &[Value]) -> (usize, Option<ErrorBody>) {
    let errors: Vec<&Value> = outcomes.iter().filter_map(|outcome| outcome.get("error")).collect();
    let first = errors.first().and_then(|error| serde_json::from_value((*error).clone()).ok());
    (errors.len(), first)
}

/// Asks for each part of the receipts, prints an outcome for each, and fails when one of them did.
async fn settle(
    door: &Door,
    out: Option<Output>,
    place: &Place,
    verb: &str,
    receipts: Vec<String>,
    more: &Value,
) -> Result<(), Failure> {
    let path = ["queues", place.queue.as_str(), verb];
    let (mut done, mut failed, mut first) = (0, 0, None);
    for some in receipts.chunks(BATCH_MAX) {
        let mut body = more.clone();
        set(&mut body, "receipts", json!(some));
        let answer = door.ask(Ask::post(&path, body).client(&place.client)).await?;
        let mut outcomes = listed(answer, "outcomes");
        let (bad, error) = failures(&outcomes);
        failed += bad;
        first = first.or(error);
        for (outcome, receipt) in outcomes.iter_mut().zip(some) {
            set(outcome, "receipt", json!(receipt));
        }
        let columns: &[Column] = &[
            ("RECEIPT", "receipt", Show::Content),
            ("DONE", "settled", Show::Plain),
            ("ERROR", "error.message", Show::Plain),
        ];
        if let Some(out) = out {
            out.more(columns, &outcomes, done == 0)?;
        }
        done += outcomes.len();
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Partly { failed, of: done, what: "receipts", first }),
    }
}

/// Which messages.
#[derive(Debug, Args)]
pub struct Receipts {
    #[command(flatten)]
    place: Place,
    /// Their receipts; `-` reads them from standard input, as lines or as what `receive --json` prints.
    #[arg(required = true)]
    receipts: Vec<String>,
}

/// Acknowledges messages, and prints nothing.
pub async fn ack_all(door: &Door, place: &Place, receipts: Vec<String>) -> Result<(), Failure> {
    settle(door, None, place, "ack", receipts, &json!({})).await
}

/// Acknowledges messages.
pub async fn ack(door: &Door, out: Output, args: Receipts) -> Result<(), Failure> {
    let receipts = arguments_or_lines(args.receipts, "receipt")?;
    settle(door, Some(out), &args.place, "ack", receipts, &json!({})).await
}

/// Gives messages back.
pub async fn release(door: &Door, out: Output, args: Receipts) -> Result<(), Failure> {
    let receipts = arguments_or_lines(args.receipts, "receipt")?;
    settle(door, Some(out), &args.place, "release", receipts, &json!({})).await
}

/// Which messages, and for how long.
#[derive(Debug, Args)]
pub struct Extend {
    #[command(flatten)]
    receipts: Receipts,
    /// How long from now they stay on loan.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    visibility: Duration,
}

/// Extends leases.
pub async fn extend(door: &Door, out: Output, args: Extend) -> Result<(), Failure> {
    let receipts = arguments_or_lines(args.receipts.receipts, "receipt")?;
    let more = json!({ "visibility_ms": millis(args.visibility) });
    settle(door, Some(out), &args.receipts.place, "extend", receipts, &more).await
}

/// Which messages, and why.
#[derive(Debug, Args)]
pub struct Nack {
    #[command(flatten)]
    receipts: Receipts,
    /// How long they wait before they are received again.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    delay: Duration,
    /// What went wrong; kept with the message.
    #[arg(long, default_value = "", hide_default_value = true)]
    error: String,
}

/// Gives messages back after a failure.
pub async fn nack(door: &Door, out: Output, args: Nack) -> Result<(), Failure> {
    let receipts = arguments_or_lines(args.receipts.receipts, "receipt")?;
    let more = json!({ "delay_ms": millis(args.delay), "error": args.error });
    settle(door, Some(out), &args.receipts.place, "nack", receipts, &more).await
}

/// Which task, and how it ended.
#[derive(Debug, Args)]
pub struct Finish {
    #[command(flatten)]
    place: Place,
    /// Its receipt.
    receipt: String,
    /// It ended badly, and is not tried again.
    #[arg(long)]
    failure: bool,
    /// Its result, or its error.
    #[arg(long, default_value = "", hide_default_value = true)]
    result: String,
}

/// Finishes a task.
pub async fn finish(door: &Door, out: Output, args: Finish) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "finish"];
    let body = json!({
        "receipt": args.receipt,
        "success": !args.failure,
        "result": args.result,
    });
    let answer = door.ask(Ask::post(&path, body).client(&args.place.client)).await?;
    let outcomes = listed(answer, "outcomes");
    let columns: &[Column] =
        &[("DONE", "settled", Show::Plain), ("ERROR", "error.message", Show::Plain)];
    out.list(columns, &outcomes)?;
    match failures(&outcomes) {
        (0, _) => Ok(()),
        (failed, first) => Err(Failure::Partly { failed, of: 1, what: "receipts", first }),
    }
}
