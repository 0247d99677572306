//! Putting, reading, following.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed, set};
use super::super::input::{Shape, Source};
use super::super::output::{Column, Output, Show};
use super::super::progress::Progress;
use super::super::queue::failures;
use super::super::values::{duration, millis, pair};
use crate::api::limits::WAIT_MS_MAX;

const MESSAGES: &[Column] = &[
    ("SEQ", "seq", Show::Number),
    ("AT", "at_ms", Show::Time),
    ("PAYLOAD", "payload", Show::Content),
    ("ATTRIBUTES", "attributes", Show::Pairs),
    ("GAP BEFORE", "gap_next", Show::Number),
    ("REASON", "gap_reason", Show::Plain),
];

/// Messages that one request puts.
const PUT_EACH: usize = 100;

/// What to put.
#[derive(Debug, Args)]
#[command(
    override_usage = "millpond sequence put --queue QUEUE --seq NUMBER <CONTENT | --file FILE | --lines FILE>
       millpond sequence put --jsonl FILE"
)]
pub struct Put {
    /// The queue of each message that names none.
    #[arg(long, short, value_name = "QUEUE")]
    queue: Option<String>,
    /// The number of the message; with --lines, of the first one. In --jsonl, each line has its own.
    #[arg(long, short, value_name = "NUMBER")]
    seq: Option<u64>,
    #[command(flatten)]
    source: Source,
    /// Something said about each message, as NAME=VALUE; may be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
}

/// Puts messages.
pub async fn put(door: &Door, out: Output, name: &str, args: Put) -> Result<(), Failure> {
    let mut defaults = Map::new();
    if let Some(queue) = &args.queue {
        defaults.insert("queue".to_owned(), json!(queue));
    }
    if !args.attributes.is_empty() {
        let given = args.attributes.iter().map(|(name, value)| (name.clone(), json!(value)));
        defaults.insert("attributes".to_owned(), Value::Object(given.collect()));
    }
    let output_only = &["at_ms"];
    let mut entries = args.source.entries(Shape { content: "payload", output_only, defaults })?;
    let progress = Progress::start("put", None);
    let (mut done, mut failed, mut first) = (0, 0, None);
    loop {
        let mut messages = entries.batch(PUT_EACH)?;
        if messages.is_empty() {
            break;
        }
        for (message, at) in messages.iter_mut().zip(done as u64..) {
            complete(message, args.seq.map(|first| first + at))?;
        }
        progress.add(messages.len());
        let body = json!({ "messages": messages });
        let answer = door.ask(Ask::post(&["sequencers", name, "messages"], body)).await;
        let answer = answer.map_err(|failure| entries.in_line(failure))?;
        let advanced = listed(answer.clone(), "advanced");
        let mut outcomes = listed(answer, "outcomes");
        let (bad, error) = failures(&outcomes);
        failed += bad;
        first = first.or(error);
        for (outcome, message) in outcomes.iter_mut().zip(&messages) {
            set(outcome, "queue", field(message, "queue").clone());
            set(outcome, "seq", field(message, "seq").clone());
            // What a cursor passed belongs to the last message of its queue in the batch.
            let last =
                messages.iter().rfind(|other| field(other, "queue") == field(message, "queue"));
            if let Some(passed) =
                advanced.iter().find(|passed| field(passed, "queue") == field(message, "queue"))
                && last.is_some_and(|last| field(last, "seq") == field(message, "seq"))
            {
                set(
                    outcome,
                    "passed",
                    json!({ "first": field(passed, "first"), "next": field(passed, "next") }),
                );
            }
        }
        let columns: &[Column] = &[
            ("QUEUE", "queue", Show::Plain),
            ("SEQ", "seq", Show::Number),
            ("ARRIVAL", "arrival", Show::Plain),
            ("PASSED FROM", "passed.first", Show::Number),
            ("NEXT", "passed.next", Show::Number),
            ("ERROR", "error.message", Show::Plain),
        ];
        out.more(columns, &outcomes, done == 0)?;
        done += outcomes.len();
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Partly { failed, of: done, what: "messages", first }),
    }
}

/// Gives a message its number where it has none, and refuses what has no place.
fn complete(message: &mut Value, seq: Option<u64>) -> Result<(), Failure> {
    let Some(fields) = message.as_object_mut() else { return Ok(()) };
    if !fields.contains_key("queue") {
        return Err(Failure::Usage("a message names no queue: give --queue".to_owned()));
    }
    match seq {
        Some(seq) => {
            fields.entry("seq").or_insert_with(|| json!(seq));
        }
        None if !fields.contains_key("seq") => {
            return Err(Failure::Usage("a message has no number: give --seq".to_owned()));
        }
        None => {}
    }
    Ok(())
}

/// What to read.
#[derive(Debug, Args)]
pub struct Read {
    /// The queue.
    queue: String,
    /// The first number; without it, the first that is kept.
    #[arg(long, value_name = "NUMBER")]
    first: Option<u64>,
    /// The number behind the last; without it, what the queue waits for.
    #[arg(long, value_name = "NUMBER")]
    next: Option<u64>,
    /// Most numbers.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    max: usize,
    /// Reads from this reader's place on, and leaves it there: commit what was dealt with.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["first", "next"])]
    reader: Option<String>,
}

/// Reads messages.
pub async fn read(door: &Door, out: Output, name: &str, args: Read) -> Result<(), Failure> {
    let queue = args.queue.as_str();
    let ask = match &args.reader {
        Some(reader) => {
            Ask::get(&["sequencers", name, "queues", queue, "readers", reader, "messages"])
        }
        None => Ask::get(&["sequencers", name, "queues", queue, "messages"])
            .with_some("first", args.first)
            .with_some("next", args.next),
    };
    let answer = door.ask(ask.with("max", args.max)).await?;
    out.list(MESSAGES, &listed(answer, "messages"))
}

/// From which late arrival on.
#[derive(Debug, Args)]
pub struct Late {
    /// The queue.
    queue: String,
    /// The first of them, counted from 0.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u64,
}

/// Lists late arrivals.
pub async fn late(door: &Door, out: Output, name: &str, args: Late) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), "late"];
    let answer = door.ask(Ask::get(&path).with("from", args.from)).await?;
    out.list(MESSAGES, &listed(answer, "messages"))
}

/// From where on, and for how long.
#[derive(Debug, Args)]
pub struct Ranges {
    /// The queue.
    queue: String,
    /// The first number that is not known yet: now, start, or a number.
    #[arg(long, value_name = "NUMBER", default_value = "now")]
    from: String,
    /// How long to wait for the next range.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    wait: Duration,
    /// Goes on until interrupted.
    #[arg(long)]
    follow: bool,
    /// Ends after so many ranges.
    #[arg(long, value_name = "COUNT", requires = "follow")]
    max: Option<usize>,
}

/// Tells what the cursor passes.
pub async fn ranges(door: &Door, out: Output, name: &str, args: Ranges) -> Result<(), Failure> {
    let columns: &[Column] = &[
        ("EPOCH", "epoch", Show::Number),
        ("FIRST", "passed.first", Show::Number),
        ("NEXT", "passed.next", Show::Number),
        ("LATE", "late.seq", Show::Number),
        ("PARKED AT", "parked", Show::Number),
    ];
    let path = ["sequencers", name, "queues", args.queue.as_str(), "ranges"];
    let (mut from, mut told) = (args.from.clone(), 0);
    loop {
        let wait = if args.follow { WAIT_MS_MAX } else { millis(args.wait).min(WAIT_MS_MAX) };
        let answer = door.ask(Ask::get(&path).with("from", &from).with("wait_ms", wait)).await?;
        from = field(&answer, "next").as_str().unwrap_or("now").to_owned();
        if answer.get("epoch").is_some() {
            out.more(columns, std::slice::from_ref(&answer), told == 0)?;
            told += 1;
        }
        if !args.follow || args.max == Some(told) {
            return Ok(());
        }
    }
}
