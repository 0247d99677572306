//! Topics as a whole.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed, named};
use super::super::output::{Column, Output, Show, print_text};
use super::super::progress::Progress;
use super::super::queue::check_sure;
use super::super::store::SWEPT;
use super::super::values::{duration, millis};

/// A topic's settings, as options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub struct Settings {
    /// `trim` removes records older than this. [usual: kept for ever]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    retention_age: Option<Duration>,
    /// `trim` removes what is over this many bytes in a partition. [usual: no bound]
    #[arg(long, value_name = "BYTES")]
    retention_bytes: Option<u64>,
    /// How long a producer waits for more records before it flushes. [usual: 5ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    linger: Option<Duration>,
    /// A flush of this many bytes goes to the object store, when there is one. [usual: 8192]
    #[arg(long, value_name = "BYTES")]
    object_bytes_min: Option<usize>,
    /// A segment is closed once it has this many bytes. [usual: 1048576]
    #[arg(long, value_name = "BYTES")]
    segment_bytes_max: Option<usize>,
}

impl Settings {
    fn value(&self) -> Map<String, Value> {
        let fields = [
            ("retention_age_ms", json!(self.retention_age.map(millis))),
            ("retention_bytes", json!(self.retention_bytes)),
            ("linger_ms", json!(self.linger.map(millis))),
            ("object_bytes_min", json!(self.object_bytes_min)),
            ("segment_bytes_max", json!(self.segment_bytes_max)),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A topic to be.
#[derive(Debug, Args)]
pub struct Create {
    /// Its name.
    topic: String,
    /// How many partitions; they can grow, never shrink.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    partitions: u32,
    #[command(flatten)]
    settings: Settings,
}

/// Creates a topic.
pub async fn create(door: &Door, out: Output, args: Create) -> Result<(), Failure> {
    let mut settings = args.settings.value();
    settings.insert("partitions".to_owned(), json!(args.partitions));
    let body = json!({ "settings": settings });
    let answer = door.ask(Ask::put(&["topics", &args.topic], body)).await?;
    out.said(&answer, &format!("topic {} is there", args.topic))
}

/// Lists topics.
pub async fn list(door: &Door, out: Output) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["topics"])).await?;
    out.list(&[("TOPIC", "topic", Show::Plain)], &named(answer, "topics", "topic"))
}

/// Which topic.
#[derive(Debug, Args)]
pub struct Name {
    /// The topic.
    pub topic: String,
}

fn show_settings(out: Output, answer: &Value) -> Result<(), Failure> {
    let columns: &[Column] = &[
        ("name", "name", Show::Plain),
        ("created", "created_ms", Show::Time),
        ("partitions", "settings.partitions", Show::Plain),
        ("retention by age", "settings.retention_age_ms", Show::Duration),
        ("retention by bytes", "settings.retention_bytes", Show::Plain),
        ("linger", "settings.linger_ms", Show::Duration),
        ("objects from bytes", "settings.object_bytes_min", Show::Plain),
        ("segment bytes", "settings.segment_bytes_max", Show::Plain),
    ];
    out.one(columns, answer)
}

/// Shows a topic.
pub async fn describe(door: &Door, out: Output, args: Name) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["topics", &args.topic])).await?;
    if out.is_json() {
        return out.document(&answer);
    }
    show_settings(out, &answer)?;
    print_text("\n")?;
    let columns: &[Column] = &[
        ("PARTITION", "partition", Show::Number),
        ("EARLIEST", "earliest", Show::Number),
        ("LATEST", "latest", Show::Number),
        ("BYTES", "bytes", Show::Number),
        ("OLDEST", "oldest_ms", Show::Time),
        ("FENCE", "fence", Show::Number),
    ];
    out.list(columns, &listed(answer, "partitions"))
}

/// What to change.
#[derive(Debug, Args)]
pub struct Configure {
    /// The topic.
    topic: String,
    /// Takes a bound away: retention_age or retention_bytes.
    #[arg(long, value_name = "BOUND", value_parser = ["retention_age", "retention_bytes"])]
    unset: Vec<String>,
    #[command(flatten)]
    settings: Settings,
}

/// Shows or changes settings.
pub async fn configure(door: &Door, out: Output, args: Configure) -> Result<(), Failure> {
    let mut change = args.settings.value();
    for bound in args.unset {
        let name = if bound == "retention_age" { "retention_age_ms".to_owned() } else { bound };
        change.insert(name, Value::Null);
    }
    let path = ["topics", args.topic.as_str()];
    let answer = if change.is_empty() {
        door.ask(Ask::get(&path)).await?
    } else {
        door.ask(Ask::patch(&path, json!({ "settings": change }))).await?
    };
    if out.is_json() { out.document(&answer) } else { show_settings(out, &answer) }
}

/// Which topic, for sure.
#[derive(Debug, Args)]
pub struct Sure {
    /// The topic.
    topic: String,
    /// Yes, delete it for ever.
    #[arg(long)]
    yes: bool,
}

/// Deletes a topic.
pub async fn delete(door: &Door, out: Output, args: Sure) -> Result<(), Failure> {
    check_sure(args.yes, "deletes the topic with its records and groups")?;
    let answer = door.ask(Ask::delete(&["topics", &args.topic])).await?;
    out.said(&answer, &format!("topic {} is deleted", args.topic))
}

/// How far to grow.
#[derive(Debug, Args)]
pub struct Grow {
    /// The topic.
    topic: String,
    /// How many partitions there are to be.
    partitions: u32,
}

/// Gives a topic more partitions.
pub async fn grow(door: &Door, out: Output, args: Grow) -> Result<(), Failure> {
    let body = json!({ "partitions": args.partitions });
    let answer = door.ask(Ask::post(&["topics", &args.topic, "grow"], body)).await?;
    out.said(&answer, &format!("topic {} has {} partitions", args.topic, args.partitions))
}

/// Removes what retention says, until nothing is left to remove.
pub async fn trim(door: &Door, out: Output, args: Name) -> Result<(), Failure> {
    let progress = Progress::start("trim", None);
    let (mut segments, mut records, mut bytes) = (0, 0, 0);
    loop {
        let answer = door.ask(Ask::post(&["topics", &args.topic, "trim"], json!({}))).await?;
        let number = |name: &str| field(&answer, name).as_u64().unwrap_or_default();
        segments += number("segments");
        records += number("records");
        bytes += number("bytes");
        progress.add(usize::try_from(number("records")).unwrap_or_default());
        if field(&answer, "more") != true || number("segments") == 0 {
            break;
        }
    }
    drop(progress);
    let answer = json!({ "segments": segments, "records": records, "bytes": bytes });
    out.said(&answer, &format!("removed {records} records ({bytes} bytes) in {segments} segments"))
}

/// Whether to remove what is found.
#[derive(Debug, Args)]
pub struct Sweep {
    /// The topic.
    topic: String,
    /// Removes what is found; without it, it is only counted.
    #[arg(long)]
    remove: bool,
}

/// Finds objects that no record is in.
pub async fn sweep(door: &Door, out: Output, args: Sweep) -> Result<(), Failure> {
    let body = json!({ "dry_run": !args.remove });
    let answer = door.ask(Ask::post(&["topics", &args.topic, "sweep"], body)).await?;
    out.one(SWEPT, &answer)
}
