//! Queues as a whole.

use clap::Args;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed, named};
use super::super::output::{Column, Output, Show, print_text};
use super::super::progress::Progress;
use super::Place;
use super::config::ConfigArgs;

/// Messages that one request of a redrive moves: so that progress can be seen...
const REDRIVE_EACH: usize = 100;

/// ...and, at a low rate, as many as take this many seconds.
const REDRIVE_SECONDS: f64 = 10.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it saturates, and is clamped"
)]
fn redrive_each(rate: Option<f64>) -> usize {
    rate.map_or(REDRIVE_EACH, |rate| ((rate * REDRIVE_SECONDS) as usize).clamp(1, REDRIVE_EACH))
}

const COUNT_COLUMNS: &[Column] = &[
    ("CLIENT", "client", Show::Plain),
    ("AVAILABLE", "count.available", Show::Number),
    ("LEASED", "count.leased", Show::Number),
    ("DELAYED", "count.delayed", Show::Number),
    ("HELD", "count.held", Show::Number),
    ("OLDEST", "count.oldest_age_ms", Show::Duration),
];

/// A queue to be.
#[derive(Debug, Args)]
pub struct Create {
    /// Its name: 1 to 80 letters, digits, `-`, `_` or `.`.
    queue: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Creates a queue.
pub async fn create(door: &Door, out: Output, args: Create) -> Result<(), Failure> {
    let body = json!({ "config": args.config.value()? });
    let answer = door.ask(Ask::put(&["queues", &args.queue], body)).await?;
    out.said(&answer, &format!("queue {} is there", args.queue))
}

/// Which queues.
#[derive(Debug, Args)]
pub struct List {
    /// Only those whose names begin like this.
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
}

/// Lists queues.
pub async fn list(door: &Door, out: Output, args: List) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["queues"]).with("prefix", &args.prefix)).await?;
    out.list(&[("QUEUE", "queue", Show::Plain)], &named(answer, "queues", "queue"))
}

/// Which queue.
#[derive(Debug, Args)]
pub struct Describe {
    /// The queue.
    queue: String,
    /// Most clients.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    max: usize,
}

/// Shows a queue.
pub async fn describe(door: &Door, out: Output, args: Describe) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["queues", &args.queue]).with("max", args.max)).await?;
    if out.is_json() {
        return out.document(&answer);
    }
    show_config(out, &answer)?;
    print_text("\n")?;
    let total = field(&answer, "clients_total").as_u64().unwrap_or_default();
    let clients = listed(answer, "clients");
    if clients.is_empty() {
        return print_text("no client was ever sent to\n");
    }
    out.list(COUNT_COLUMNS, &clients)?;
    match total.saturating_sub(clients.len() as u64) {
        0 => Ok(()),
        more => print_text(&format!("and {more} more clients; see --max\n")),
    }
}

fn show_config(out: Output, queue: &Value) -> Result<(), Failure> {
    let columns: &[Column] = &[
        ("name", "name", Show::Plain),
        ("order", "config.order", Show::Plain),
        ("strict", "config.strict", Show::Plain),
        ("visibility", "config.visibility", Show::Duration),
        ("retention", "config.retention", Show::Duration),
        ("delay", "config.delay", Show::Duration),
        ("dead letters", "config.dead_letters", Show::Plain),
        ("largest message", "config.message_bytes_max", Show::Plain),
        ("lanes", "config.lanes", Show::Plain),
        ("priorities", "config.priorities", Show::Plain),
        ("status", "config.status", Show::Plain),
        ("shedding", "config.shedding", Show::Plain),
        ("limits", "config.limits", Show::Plain),
    ];
    out.one(columns, queue)
}

/// What to change.
#[derive(Debug, Args)]
pub struct Configure {
    /// The queue.
    queue: String,
    /// Takes a part of the configuration away: dead_letters, status, shedding, limits.
    #[arg(long, value_name = "PART")]
    unset: Vec<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Shows or changes a configuration.
pub async fn configure(door: &Door, out: Output, args: Configure) -> Result<(), Failure> {
    let mut change = args.config.value()?;
    for part in args.unset {
        change.insert(part, Value::Null);
    }
    let path = ["queues", args.queue.as_str()];
    let answer = if change.is_empty() {
        let mut answer = door.ask(Ask::get(&path).with("max", 1)).await?;
        if let Some(queue) = answer.as_object_mut() {
            queue.remove("clients");
            queue.remove("clients_total");
        }
        answer
    } else {
        door.ask(Ask::patch(&path, json!({ "config": change }))).await?
    };
    if out.is_json() { out.document(&answer) } else { show_config(out, &answer) }
}

/// Which client of which queue.
#[derive(Debug, Args)]
pub struct Where {
    #[command(flatten)]
    place: Place,
}

/// Counts messages.
pub async fn count(door: &Door, out: Output, args: Where) -> Result<(), Failure> {
    let ask = Ask::get(&["queues", &args.place.queue, "count"]).client(&args.place.client);
    let answer = door.ask(ask).await?;
    let columns: &[Column] = &[
        ("available", "available", Show::Plain),
        ("leased", "leased", Show::Plain),
        ("delayed", "delayed", Show::Plain),
        ("held", "held", Show::Plain),
        ("oldest", "oldest_age_ms", Show::Duration),
    ];
    out.one(columns, &answer)?;
    if out.is_json() {
        return Ok(());
    }
    let totals = answer.get("totals").and_then(Value::as_object);
    let happened = totals.into_iter().flatten().filter(|(_, count)| count.as_u64() != Some(0));
    let rows: Vec<Value> =
        happened.map(|(event, count)| json!({ "event": event, "count": count })).collect();
    if rows.is_empty() {
        return Ok(());
    }
    print_text("\n")?;
    out.list(&[("SO FAR", "event", Show::Plain), ("COUNT", "count", Show::Number)], &rows)
}

/// Does what must be done now and then.
pub async fn maintain(door: &Door, out: Output, args: Where) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "maintain"];
    let answer = door.ask(Ask::post(&path, json!({})).client(&args.place.client)).await?;
    let columns: &[Column] = &[
        ("expired", "expired", Show::Plain),
        ("shed", "shed", Show::Plain),
        ("more to do", "more", Show::Plain),
    ];
    out.one(columns, &answer)
}

/// Which client of which queue, for sure.
#[derive(Debug, Args)]
pub struct Sure {
    #[command(flatten)]
    place: Place,
    /// Yes, remove them for ever.
    #[arg(long)]
    yes: bool,
}

/// Refuses what cannot be undone unless it is meant.
pub fn check_sure(yes: bool, what: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    Err(Failure::Usage(format!("this {what} for ever; say --yes if that is meant")))
}

/// Removes every message.
pub async fn purge(door: &Door, out: Output, args: Sure) -> Result<(), Failure> {
    check_sure(args.yes, "removes every message of the client")?;
    let path = ["queues", args.place.queue.as_str(), "purge"];
    let answer = door.ask(Ask::post(&path, json!({})).client(&args.place.client)).await?;
    out.said(&answer, &format!("removed {} messages", field(&answer, "removed")))
}

/// Which queue, for sure.
#[derive(Debug, Args)]
pub struct SureName {
    /// The queue.
    queue: String,
    /// Yes, delete it for ever.
    #[arg(long)]
    yes: bool,
}

/// Deletes a queue.
pub async fn delete(door: &Door, out: Output, args: SureName) -> Result<(), Failure> {
    check_sure(args.yes, "deletes the queue and everything in it")?;
    let answer = door.ask(Ask::delete(&["queues", &args.queue])).await?;
    out.said(&answer, &format!("queue {} is deleted", args.queue))
}

/// What to bring back.
#[derive(Debug, Args)]
pub struct Redrive {
    #[command(flatten)]
    place: Place,
    /// The queue that they go to; without it, the one that each came from.
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,
    /// Most messages a second.
    #[arg(long, value_name = "PER-SECOND")]
    rate: Option<f64>,
    /// Most messages; without it, all that are there.
    #[arg(long, value_name = "COUNT")]
    max: Option<usize>,
}

/// Brings dead letters back.
pub async fn redrive(door: &Door, out: Output, args: Redrive) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "redrive"];
    let progress = Progress::start("redrive", args.max.map(|max| max as u64));
    let (mut moved, mut homeless) = (0_usize, 0_u64);
    loop {
        let each = redrive_each(args.rate);
        let left = args.max.map_or(each, |max| (max - moved).min(each));
        if left == 0 {
            break;
        }
        let body = json!({ "to": args.to, "rate": args.rate, "max": left });
        let answer = door.ask(Ask::post(&path, body).client(&args.place.client)).await?;
        let some = field(&answer, "moved").as_u64().and_then(|some| usize::try_from(some).ok());
        let some = some.unwrap_or_default();
        homeless = homeless.max(field(&answer, "homeless").as_u64().unwrap_or_default());
        moved += some;
        progress.add(some);
        if some < left {
            break;
        }
    }
    drop(progress);
    let stay = match homeless {
        0 => String::new(),
        homeless => format!("; {homeless} stay, since they say no queue to go to: use --to"),
    };
    let answer = json!({ "moved": moved, "homeless": homeless });
    out.said(&answer, &format!("brought {moved} messages back{stay}"))
}

/// Which group.
#[derive(Debug, Args)]
pub struct Unblock {
    #[command(flatten)]
    place: Place,
    /// The group.
    group: String,
}

/// Lets a group go on.
pub async fn unblock(door: &Door, out: Output, args: Unblock) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "unblock"];
    let body = json!({ "group": args.group });
    let answer = door.ask(Ask::post(&path, body).client(&args.place.client)).await?;
    out.said(&answer, &format!("{} messages were held", field(&answer, "held")))
}
