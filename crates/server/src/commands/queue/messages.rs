//! Sending, receiving and looking.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed};
use super::super::input::{Shape, Source};
use super::super::output::{Column, Output, Show};
use super::super::progress::Progress;
use super::super::values::{duration, millis, pair};
use super::Place;
use super::config::{OrderName, order_value};
use super::settle::failures;
use crate::api::limits::WAIT_MS_MAX;

/// What a received message has, and one to send has not.
const OUTPUT_ONLY: &[&str] = &[
    "id",
    "identity",
    "receipt",
    "state",
    "sent_ms",
    "sequence",
    "receives",
    "first_received_ms",
    "until_ms",
    "origin",
];

const RECEIVED: &[Column] = &[
    ("ID", "id", Show::Plain),
    ("BODY", "body", Show::Content),
    ("ATTRIBUTES", "attributes", Show::Pairs),
    ("GROUP", "group", Show::Plain),
    ("RECEIVES", "receives", Show::Number),
    ("RECEIPT", "receipt", Show::Plain),
];

/// Messages that were looked at.
pub const PEEKED: &[Column] = &[
    ("ID", "id", Show::Plain),
    ("STATE", "state", Show::Plain),
    ("SENT", "sent_ms", Show::Time),
    ("RECEIVES", "receives", Show::Number),
    ("GROUP", "group", Show::Plain),
    ("BODY", "body", Show::Content),
    ("ATTRIBUTES", "attributes", Show::Pairs),
];

/// What to send.
#[derive(Debug, Args)]
#[command(
    override_usage = "millpond queue send [OPTIONS] QUEUE <CONTENT | --file FILE | --jsonl FILE | --lines FILE>"
)]
pub struct Send {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    source: Source,
    /// Something said about each message, as NAME=VALUE; may be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
    #[command(flatten)]
    options: MessageOptions,
    /// Messages that one request sends.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    batch: u16,
}

/// What each message has unless it says otherwise.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Each message")]
pub struct MessageOptions {
    /// Its group.
    #[arg(long)]
    group: Option<String>,
    /// In a strict queue: sent once within 5 minutes.
    #[arg(long, value_name = "ID")]
    dedup_id: Option<String>,
    /// Higher is sooner, in a queue with priorities.
    #[arg(long)]
    priority: Option<u8>,
    /// How long it waits before it is delivered.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    delay: Option<Duration>,
    /// How long after sending it can be delivered.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
    /// A trace header, handed on unchanged.
    #[arg(long)]
    trace: Option<String>,
}

impl MessageOptions {
    /// The fields of each message.
    pub fn fields(&self, attributes: &[(String, String)]) -> Map<String, Value> {
        let attributes: Map<String, Value> =
            attributes.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let fields = [
            ("group", json!(self.group)),
            ("dedup_id", json!(self.dedup_id)),
            ("priority", json!(self.priority)),
            ("delay_ms", json!(self.delay.map(millis))),
            ("ttl_ms", json!(self.ttl.map(millis))),
            ("trace", json!(self.trace)),
            ("attributes", if attributes.is_empty() { Value::Null } else { json!(attributes) }),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Sends messages.
pub async fn send(door: &Door, out: Output, args: Send) -> Result<(), Failure> {
    let shape = Shape {
        content: "body",
        output_only: OUTPUT_ONLY,
        defaults: args.options.fields(&args.attributes),
    };
    let mut entries = args.source.entries(shape)?;
    let progress = Progress::start("send", None);
    let path = ["queues", args.place.queue.as_str(), "messages"];
    let (mut sent, mut failed, mut first) = (0, 0, None);
    loop {
        let messages = entries.batch(usize::from(args.batch))?;
        if messages.is_empty() {
            break;
        }
        progress.add(messages.len());
        let body = json!({ "messages": messages });
        let answer = door.ask(Ask::post(&path, body).client(&args.place.client)).await;
        let answer = answer.map_err(|failure| entries.in_line(failure))?;
        let outcomes = listed(answer, "outcomes");
        let (bad, error) = failures(&outcomes);
        failed += bad;
        first = first.or(error);
        let columns: &[Column] = &[
            ("ID", "id", Show::Plain),
            ("SEQUENCE", "sequence", Show::Number),
            ("DUPLICATE", "duplicate", Show::Plain),
            ("ERROR", "error.message", Show::Plain),
        ];
        out.more(columns, &outcomes, sent == 0)?;
        sent += outcomes.len();
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Partly { failed, of: sent, what: "messages", first }),
    }
}

/// What to receive.
#[derive(Debug, Args)]
pub struct Receive {
    #[command(flatten)]
    place: Place,
    /// Most messages.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    max: usize,
    /// Fewest messages to wait for.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    min: usize,
    /// How long to wait for them.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    wait: Duration,
    /// How long they are invisible to others; without it, as the queue says.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    visibility: Option<Duration>,
    /// Which come first; without it, as the queue says.
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// In a strict queue: the same id again gets the same messages again.
    #[arg(long, value_name = "ID")]
    attempt: Option<String>,
    /// A group whose messages come behind all others, in a queue that is not strict; may be repeated.
    #[arg(long, value_name = "GROUP")]
    behind: Vec<String>,
    /// Who receives, to be kept with the task's status.
    #[arg(long, default_value = "", hide_default_value = true)]
    worker: String,
    /// Goes on receiving until interrupted.
    #[arg(long, conflicts_with = "attempt")]
    follow: bool,
    /// Acknowledges each message once it is printed.
    #[arg(long)]
    ack: bool,
}

/// Receives messages.
pub async fn receive(door: &Door, out: Output, args: Receive) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "receive"];
    let longest = Duration::from_millis(WAIT_MS_MAX);
    let (mut left, mut first) = (args.wait, true);
    loop {
        // A wait that is longer than one request may be is made of several.
        let wait = if args.follow { longest } else { left.min(longest) };
        left = left.saturating_sub(wait);
        let body = json!({
            "max": args.max,
            "min": args.min,
            "wait_ms": millis(wait),
            "visibility_ms": args.visibility.map(millis),
            "order": args.order.map(|order| order_value(order, None, None, None)),
            "attempt": args.attempt,
            "behind": args.behind,
            "worker": args.worker,
        });
        let answer = door.ask(Ask::post(&path, body).client(&args.place.client)).await?;
        let messages = listed(answer, "messages");
        if !messages.is_empty() {
            out.more(RECEIVED, &messages, first)?;
            first = false;
            if args.ack {
                let receipts =
                    messages.iter().filter_map(|message| field(message, "receipt").as_str());
                let receipts: Vec<String> = receipts.map(str::to_owned).collect();
                super::settle::ack_all(door, &args.place, receipts).await?;
            }
        }
        if !args.follow && (!messages.is_empty() || left.is_zero()) {
            return Ok(());
        }
    }
}

/// What to look at.
#[derive(Debug, Args)]
pub struct Peek {
    #[command(flatten)]
    place: Place,
    /// Most messages.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    max: usize,
}

/// Shows messages.
pub async fn peek(door: &Door, out: Output, args: Peek) -> Result<(), Failure> {
    let ask = Ask::get(&["queues", &args.place.queue, "messages"]).client(&args.place.client);
    let answer = door.ask(ask.with("max", args.max)).await?;
    out.list(PEEKED, &listed(answer, "messages"))
}

/// Shows dead letters.
pub async fn dead_letters(door: &Door, out: Output, args: Peek) -> Result<(), Failure> {
    let ask = Ask::get(&["queues", &args.place.queue, "dead-letters"]).client(&args.place.client);
    let answer = door.ask(ask.with("max", args.max)).await?;
    let columns: &[Column] = &[
        ("ID", "id", Show::Plain),
        ("REASON", "origin.reason", Show::Plain),
        ("RECEIVES", "origin.receives", Show::Number),
        ("ERROR", "origin.error", Show::Plain),
        ("MOVED", "origin.moved_ms", Show::Time),
        ("BODY", "body", Show::Content),
    ];
    out.list(columns, &listed(answer, "messages"))
}

/// Which message.
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub place: Place,
    /// Its id.
    pub id: String,
}

/// Shows one message.
pub async fn get(door: &Door, out: Output, args: Get) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "messages", args.id.as_str()];
    let answer = door.ask(Ask::get(&path).client(&args.place.client)).await?;
    let columns: &[Column] = &[
        ("id", "id", Show::Plain),
        ("identity", "identity", Show::Plain),
        ("state", "state", Show::Plain),
        ("until", "until_ms", Show::Time),
        ("sent", "sent_ms", Show::Time),
        ("receives", "receives", Show::Plain),
        ("first received", "first_received_ms", Show::Time),
        ("sequence", "sequence", Show::Plain),
        ("group", "group", Show::Plain),
        ("dedup id", "dedup_id", Show::Plain),
        ("priority", "priority", Show::Plain),
        ("trace", "trace", Show::Plain),
        ("attributes", "attributes", Show::Pairs),
        ("origin", "origin", Show::Plain),
        ("body", "body", Show::Content),
    ];
    out.one(columns, &answer)
}
