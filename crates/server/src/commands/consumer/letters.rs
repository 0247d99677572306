//! Dead letters: listing them, and bringing what is in them back.

use clap::{ArgGroup, Args, ValueEnum};
use millpond_consumer::Reason;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed};
use super::super::output::{Column, Output, Show};
use crate::api::ErrorBody;

/// Where dead letters are, and which are meant.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("from").required(true).args(["queue", "topic"])))]
pub struct LettersArgs {
    /// The queue of dead letters.
    #[arg(long)]
    queue: Option<String>,
    /// The client of that queue; without it, the main one.
    #[arg(long, requires = "queue", default_value = "")]
    client: String,
    /// The topic of dead letters.
    #[arg(long)]
    topic: Option<String>,
    /// The partition of that topic.
    #[arg(long, requires = "topic", default_value_t = 0)]
    partition: u32,
    /// The first offset to look at.
    #[arg(long, requires = "topic", default_value_t = 0)]
    offset: u64,
    /// How many to look at.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max: u32,
    /// Only these reasons: unusable, rejected, exhausted, abandoned, expired.
    #[arg(long, value_delimiter = ',', value_parser = reason)]
    reason: Vec<String>,
    /// Only messages, or only records that could not be read.
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// Only those of this consumer.
    #[arg(long)]
    consumer: Option<String>,
    /// Only those of this source, by its full ARN.
    #[arg(long)]
    arn: Option<String>,
}

/// Which letters, and where to.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("to").required(true).args(["to_queue", "to_topic"])))]
pub struct RedriveArgs {
    #[command(flatten)]
    letters: LettersArgs,
    /// The queue that takes the messages.
    #[arg(long)]
    to_queue: Option<String>,
    /// The client of that queue; without it, the main one.
    #[arg(long, requires = "to_queue", default_value = "")]
    to_client: String,
    /// The topic that takes the messages.
    #[arg(long)]
    to_topic: Option<String>,
}

/// What died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// A message that could be read.
    Message,
    /// A record, or a whole event, that could not.
    Record,
}

impl KindName {
    const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Record => "record",
        }
    }
}

fn reason(name: &str) -> Result<String, String> {
    Reason::from_name(name).map(|reason| reason.name().to_owned()).ok_or_else(|| {
        let names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        format!("there is no reason {name:?}; there are {}", names.join(", "))
    })
}

const LETTERS: &[Column] = &[
    ("DIED", "died_ms", Show::Time),
    ("KIND", "kind", Show::Plain),
    ("REASON", "reason", Show::Plain),
    ("CONSUMER", "consumer", Show::Plain),
    ("RECORD", "record", Show::Plain),
    ("DETAIL", "detail", Show::Content),
];

const REDRIVEN: &[Column] = &[
    ("sent", "sent", Show::Plain),
    ("left, not meant", "skipped", Show::Plain),
    ("failed, and left", "failed", Show::Plain),
    ("next offset", "next", Show::Plain),
];

/// Lists letters.
pub async fn list(door: &Door, out: Output, args: LettersArgs) -> Result<(), Failure> {
    let reasons = (!args.reason.is_empty()).then(|| args.reason.join(","));
    let ask = Ask::get(&["letters"])
        .with_some("queue", args.queue)
        .client(&args.client)
        .with_some("topic", args.topic)
        .with("partition", args.partition)
        .with("offset", args.offset)
        .with("max", args.max)
        .with_some("reasons", reasons)
        .with_some("kind", args.kind.map(KindName::name))
        .with_some("consumer", args.consumer)
        .with_some("arn", args.arn);
    out.list(LETTERS, &listed(door.ask(ask).await?, "letters"))
}

/// Brings letters back.
pub async fn redrive(door: &Door, out: Output, args: RedriveArgs) -> Result<(), Failure> {
    let letters = args.letters;
    let body = json!({
        "from_queue": letters.queue,
        "from_client": letters.client,
        "from_topic": letters.topic,
        "partition": letters.partition,
        "offset": letters.offset,
        "max": letters.max,
        "reasons": letters.reason,
        "kind": letters.kind.map(KindName::name),
        "consumer": letters.consumer,
        "arn": letters.arn,
        "to_queue": args.to_queue,
        "to_client": args.to_client,
        "to_topic": args.to_topic,
    });
    let answer = door.ask(Ask::post(&["letters", "redrive"], body)).await?;
    out.one(REDRIVEN, &answer)?;
    let count = |name: &str| {
        field(&answer, name).as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    };
    let (sent, failed) = (count("sent"), count("failed"));
    let first = field(&answer, "failures").get(0).and_then(Value::as_str);
    let Some(first) = first else { return Ok(()) };
    let first = ErrorBody { code: "failed".to_owned(), message: first.to_owned(), field: None };
    Err(Failure::Partly { failed, of: sent + failed, what: "letters", first: Some(first) })
}
