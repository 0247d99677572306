//! Appending, reading and following.

use std::time::Duration;

use clap::Args;
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed};
use super::super::input::{Shape, Source};
use super::super::output::{Column, Output, Show};
use super::super::progress::Progress;
use super::super::queue::failures;
use super::super::values::{duration, millis, pair, place};
use crate::api::limits::{LISTED_MAX, WAIT_MS_MAX};

/// Records, as they are shown.
pub const RECORDS: &[Column] = &[
    ("PARTITION", "partition", Show::Number),
    ("OFFSET", "offset", Show::Number),
    ("TIME", "timestamp_ms", Show::Time),
    ("KEY", "key", Show::Content),
    ("PAYLOAD", "payload", Show::Content),
    ("HEADERS", "headers", Show::Pairs),
];

/// Records that one request reads.
const READ_EACH: usize = 1_000;

/// What to append.
#[derive(Debug, Args)]
#[command(
    override_usage = "millpond log append [OPTIONS] TOPIC <CONTENT | --file FILE | --jsonl FILE | --lines FILE>"
)]
pub struct Append {
    /// The topic.
    topic: String,
    #[command(flatten)]
    source: Source,
    /// The key of each record that has none: records of one key go to one partition, in order.
    #[arg(long)]
    key: Option<String>,
    /// Something said about each record that has no headers, as NAME=VALUE; may be repeated.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair)]
    headers: Vec<(String, String)>,
    /// The partition that each batch goes to, all of it or nothing.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
    /// Refused when the partition has seen a greater token.
    #[arg(long, value_name = "TOKEN", requires = "partition")]
    fence: Option<u64>,
    /// Who sends the records, so that they are appended once, however often this is run.
    #[arg(long, value_name = "ID", requires = "partition", requires = "first_sequence")]
    producer: Option<String>,
    /// The sequence of the first record among the producer's in this partition.
    #[arg(long, value_name = "NUMBER", requires = "producer")]
    first_sequence: Option<u64>,
    /// Records that one request appends.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    batch: u16,
}

/// Appends records.
pub async fn append(door: &Door, out: Output, args: Append) -> Result<(), Failure> {
    let mut defaults = Map::new();
    if let Some(key) = &args.key {
        defaults.insert("key".to_owned(), json!(key));
    }
    if !args.headers.is_empty() {
        let headers =
            args.headers.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        defaults.insert("headers".to_owned(), headers.collect());
    }
    let output_only = &["partition", "offset", "timestamp_ms"];
    let mut entries = args.source.entries(Shape { content: "payload", output_only, defaults })?;
    let progress = Progress::start("append", None);
    let (mut done, mut failed, mut first) = (0, 0, None);
    loop {
        let records = entries.batch(usize::from(args.batch))?;
        if records.is_empty() {
            break;
        }
        progress.add(records.len());
        let body = json!({
            "records": records,
            "partition": args.partition,
            "fence": args.fence,
            "producer": args.producer,
            "first_sequence": args.first_sequence.map(|first| first + done as u64),
        });
        let answer = door.ask(Ask::post(&["topics", &args.topic, "records"], body)).await;
        let answer = answer.map_err(|failure| entries.in_line(failure))?;
        let outcomes = listed(answer, "outcomes");
        let (bad, error) = failures(&outcomes);
        failed += bad;
        first = first.or(error);
        let columns: &[Column] = &[
            ("PARTITION", "partition", Show::Number),
            ("OFFSET", "offset", Show::Number),
            ("DUPLICATE", "duplicate", Show::Plain),
            ("ERROR", "error.message", Show::Plain),
        ];
        out.more(columns, &outcomes, done == 0)?;
        done += outcomes.len();
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Partly { failed, of: done, what: "records", first }),
    }
}

/// What to read.
#[derive(Debug, Args)]
pub struct Read {
    /// The topic.
    topic: String,
    /// The partition; without it, all of them, one after the other.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
    /// Where to begin: earliest, latest, an offset, a time such as 2026-05-01T12:00:00Z, or @MILLISECONDS.
    #[arg(long, value_name = "PLACE", value_parser = place, default_value = "earliest")]
    from: String,
    /// Most records of each partition.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    max: usize,
    /// How long to wait when there is nothing.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", requires = "partition")]
    wait: Duration,
}

/// The partitions that are meant.
async fn partitions(door: &Door, topic: &str, given: Option<u32>) -> Result<Vec<u64>, Failure> {
    if let Some(partition) = given {
        return Ok(vec![u64::from(partition)]);
    }
    let answer = door.ask(Ask::get(&["topics", topic])).await?;
    let numbers = listed(answer, "partitions");
    Ok(numbers.iter().filter_map(|partition| field(partition, "partition").as_u64()).collect())
}

/// What retention has removed of what was asked for is said, not passed over.
pub fn tell_gap(answer: &Value, partition: u64) {
    if let Some(gap) = answer.get("gap") {
        eprintln!(
            "millpond: partition {partition}: offsets {} to {} were removed by retention",
            field(gap, "from"),
            field(gap, "to")
        );
    }
}

/// Reads records.
pub async fn read(door: &Door, out: Output, args: Read) -> Result<(), Failure> {
    let mut first = true;
    for partition in partitions(door, &args.topic, args.partition).await? {
        let (mut from, mut left) = (args.from.clone(), args.max);
        while left > 0 {
            let ask = Ask::get(&["topics", &args.topic, "records"])
                .with("partition", partition)
                .with("from", &from)
                .with("max", left.min(READ_EACH).min(LISTED_MAX))
                .with("wait_ms", millis(args.wait).min(WAIT_MS_MAX));
            let answer = door.ask(ask).await?;
            tell_gap(&answer, partition);
            from = field(&answer, "next").to_string();
            let more = field(&answer, "more") == true;
            let records = listed(answer, "records");
            left -= records.len().min(left);
            if !records.is_empty() {
                out.more(RECORDS, &records, first)?;
                first = false;
            }
            if !more {
                break;
            }
        }
    }
    Ok(())
}

/// What to follow.
#[derive(Debug, Args)]
pub struct Follow {
    /// The topic.
    topic: String,
    /// The partition; without it, all of them at the same time.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
    /// Where to begin: earliest, latest, an offset, a time such as 2026-05-01T12:00:00Z, or @MILLISECONDS.
    #[arg(long, value_name = "PLACE", value_parser = place, default_value = "latest")]
    from: String,
    /// Ends after so many records.
    #[arg(long, value_name = "COUNT")]
    max: Option<usize>,
}

/// Follows partitions.
pub async fn follow(door: &Door, out: Output, args: Follow) -> Result<(), Failure> {
    let mut streams: Vec<BoxStream<'_, Result<Vec<Value>, Failure>>> = Vec::new();
    for partition in partitions(door, &args.topic, args.partition).await? {
        // The place is found once, so that what comes meanwhile is not passed over.
        let ask = Ask::get(&["topics", &args.topic, "offset"]);
        let ask = ask.with("partition", partition).with("at", &args.from);
        let offset = field(&door.ask(ask).await?, "offset").to_string();
        let topic = args.topic.as_str();
        let ask = move |from: String| async move {
            let ask = Ask::get(&["topics", topic, "records"])
                .with("partition", partition)
                .with("from", &from)
                .with("max", READ_EACH)
                .with("wait_ms", WAIT_MS_MAX);
            let answer = door.ask(ask).await?;
            tell_gap(&answer, partition);
            let next = field(&answer, "next").to_string();
            Ok::<_, Failure>((listed(answer, "records"), next))
        };
        let stream =
            futures::stream::try_unfold(
                offset,
                move |from| async move { ask(from).await.map(Some) },
            );
        streams.push(stream.boxed());
    }
    let mut all = select_all(streams);
    let (mut first, mut printed) = (true, 0);
    while let Some(records) = all.next().await {
        let mut records = records?;
        if let Some(max) = args.max {
            records.truncate(max - printed);
        }
        if !records.is_empty() {
            out.more(RECORDS, &records, first)?;
            first = false;
            printed += records.len();
        }
        if args.max == Some(printed) {
            break;
        }
    }
    Ok(())
}

/// Which place.
#[derive(Debug, Args)]
pub struct Seek {
    /// The topic.
    topic: String,
    /// The place: earliest, latest, an offset, a time such as 2026-05-01T12:00:00Z, or @MILLISECONDS.
    #[arg(value_parser = place)]
    place: String,
    /// The partition; without it, all of them.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
}

/// Shows the offset of a place.
pub async fn seek(door: &Door, out: Output, args: Seek) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for partition in partitions(door, &args.topic, args.partition).await? {
        let ask = Ask::get(&["topics", &args.topic, "offset"]);
        rows.push(door.ask(ask.with("partition", partition).with("at", &args.place)).await?);
    }
    let columns: &[Column] =
        &[("PARTITION", "partition", Show::Number), ("OFFSET", "offset", Show::Number)];
    out.list(columns, &rows)
}
