//! Where queues are, what they wait for, and moving them by hand.

use clap::Args;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed, named};
use super::super::output::{Column, Output, Show, print_text};
use super::super::progress::Progress;
use super::super::queue::check_sure;

/// Which queue.
#[derive(Debug, Args)]
pub struct Queue {
    /// The queue.
    queue: String,
}

const RUNS: &[Column] = &[("FIRST", "first", Show::Number), ("NEXT", "next", Show::Number)];

/// Lists queues.
pub async fn list(door: &Door, out: Output, name: &str) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["sequencers", name, "queues"])).await?;
    out.list(&[("QUEUE", "queue", Show::Plain)], &named(answer, "queues", "queue"))
}

/// Shows a cursor.
pub async fn cursor(door: &Door, out: Output, name: &str, args: Queue) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["sequencers", name, "queues", &args.queue])).await?;
    let columns: &[Column] = &[
        ("queue", "queue", Show::Plain),
        ("waits for", "next", Show::Plain),
        ("began with", "start", Show::Plain),
        ("kept from", "floor", Show::Plain),
        ("epoch", "epoch", Show::Plain),
        ("epoch began at", "base", Show::Plain),
        ("gaps", "gaps", Show::Plain),
        ("gaps ahead", "gaps_ahead", Show::Plain),
        ("late arrivals", "lates", Show::Plain),
        ("resets", "life", Show::Plain),
        ("parked at", "parked", Show::Plain),
        ("being reset to", "reset_to", Show::Plain),
    ];
    out.one(columns, &answer)
}

/// Lists what is missing.
pub async fn gaps(door: &Door, out: Output, name: &str, args: Queue) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), "missing"];
    out.list(RUNS, &listed(door.ask(Ask::get(&path)).await?, "missing"))
}

/// Shows what waits.
pub async fn pending(door: &Door, out: Output, name: &str, args: Queue) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), "pending"];
    let answer = door.ask(Ask::get(&path)).await?;
    if out.is_json() {
        return out.document(&answer);
    }
    let columns: &[Column] = &[
        ("messages", "count", Show::Plain),
        ("bytes", "bytes", Show::Plain),
        ("span", "span", Show::Plain),
    ];
    out.one(columns, &answer)?;
    let runs = listed(answer, "runs");
    if runs.is_empty() {
        return Ok(());
    }
    print_text("\n")?;
    out.list(RUNS, &runs)
}

/// What the cursor passed, in words.
fn tell_passed(out: Output, answer: &Value) -> Result<(), Failure> {
    let sentence = match answer.get("passed") {
        Some(passed) => {
            format!(
                "the cursor passed {} up to and without {}",
                field(passed, "first"),
                field(passed, "next")
            )
        }
        None => "the cursor passed nothing".to_owned(),
    };
    out.said(answer, &sentence)
}

/// Which numbers.
#[derive(Debug, Args)]
pub struct DeclareGap {
    /// The queue.
    queue: String,
    /// The first number.
    first: u64,
    /// The number behind the last.
    next: u64,
}

/// Declares a gap.
pub async fn declare_gap(
    door: &Door,
    out: Output,
    name: &str,
    args: DeclareGap,
) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), "declare-gap"];
    let body = json!({ "first": args.first, "next": args.next });
    tell_passed(out, &door.ask(Ask::post(&path, body)).await?)
}

/// Which number.
#[derive(Debug, Args)]
pub struct To {
    /// The queue.
    queue: String,
    /// The number.
    to: u64,
}

/// Skips or rewinds.
pub async fn moved(
    door: &Door,
    out: Output,
    name: &str,
    verb: &str,
    args: To,
) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), verb];
    tell_passed(out, &door.ask(Ask::post(&path, json!({ "to": args.to }))).await?)
}

/// Where to start over, for sure.
#[derive(Debug, Args)]
pub struct Reset {
    #[command(flatten)]
    to: To,
    /// Yes, remove all that is in it for ever.
    #[arg(long)]
    yes: bool,
}

/// Starts a queue over.
pub async fn reset(door: &Door, out: Output, name: &str, args: Reset) -> Result<(), Failure> {
    check_sure(args.yes, "removes everything in the queue")?;
    let path = ["sequencers", name, "queues", args.to.queue.as_str(), "reset"];
    let answer = door.ask(Ask::post(&path, json!({ "to": args.to.to }))).await?;
    out.said(&answer, &format!("queue {} starts over at {}", args.to.queue, args.to.to))
}

/// Removes delivered messages, until none is left to remove.
pub async fn trim(door: &Door, out: Output, name: &str, args: To) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), "trim"];
    let progress = Progress::start("trim", None);
    let mut removed = 0;
    loop {
        let answer = door.ask(Ask::post(&path, json!({ "to": args.to }))).await?;
        let some = field(&answer, "removed").as_u64().unwrap_or_default();
        removed += some;
        progress.add(usize::try_from(some).unwrap_or_default());
        if field(&answer, "more") != true || some == 0 {
            break;
        }
    }
    drop(progress);
    let answer = json!({ "floor": args.to, "removed": removed });
    out.said(&answer, &format!("removed {removed} rows; kept from {} on", args.to))
}

/// How much to sweep.
#[derive(Debug, Args)]
pub struct Sweep {
    /// Every queue there is, not only those in which messages wait.
    #[arg(long)]
    all: bool,
}

/// Heals queues.
pub async fn sweep(door: &Door, out: Output, name: &str, args: Sweep) -> Result<(), Failure> {
    let body = json!({ "all": args.all });
    let answer = door.ask(Ask::post(&["sequencers", name, "sweep"], body)).await?;
    let columns: &[Column] = &[
        ("queues visited", "visited", Show::Plain),
        ("advanced", "advanced", Show::Plain),
        ("skipped", "skipped", Show::Plain),
        ("parked", "parked", Show::Plain),
        ("settled", "settled", Show::Plain),
        ("failed", "failed", Show::Plain),
    ];
    out.one(columns, &answer)?;
    let failed = listed(answer, "failed");
    match failed.len() {
        0 => Ok(()),
        count => Err(Failure::Broken(format!("{count} queues could not be swept; try again"))),
    }
}

/// Lists readers.
pub async fn readers(door: &Door, out: Output, name: &str, args: Queue) -> Result<(), Failure> {
    let path = ["sequencers", name, "queues", args.queue.as_str(), "readers"];
    let columns: &[Column] = &[("READER", "reader", Show::Plain), ("NEXT", "next", Show::Number)];
    out.list(columns, &listed(door.ask(Ask::get(&path)).await?, "readers"))
}

/// Which reader, and where to.
#[derive(Debug, Args)]
pub struct Reader {
    /// The queue.
    queue: String,
    /// The reader.
    reader: String,
    /// The number that it reads next.
    next: u64,
}

/// Moves a reader.
pub async fn reader(
    door: &Door,
    out: Output,
    name: &str,
    verb: &str,
    args: Reader,
) -> Result<(), Failure> {
    let Reader { queue, reader, next } = &args;
    let path = ["sequencers", name, "queues", queue, "readers", reader, verb];
    let answer = door.ask(Ask::post(&path, json!({ "next": next }))).await?;
    out.said(&answer, &format!("reader {reader} reads {} next", field(&answer, "next")))
}
