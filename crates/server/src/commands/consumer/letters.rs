//! Dead letters: listing them, and bringing what is in them back.

use clap::{ArgGroup, Args, ValueEnum};
use millpond_consumer::Reason;
use millpond_consumer::redrive::Which;
use millpond_consumer::sink::Kind;
use millpond_lambda::settings::SinkPlace;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed};
use super::super::output::{Column, Output, Show};
use super::aws;
use crate::api::ErrorBody;

/// Where dead letters are, and which are meant.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("from_where").required(true).args(["queue", "topic", "from"])))]
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
    /// Dead letters in AWS: sqs:URL or kinesis:STREAM, by name or ARN. Those in SQS cannot be received by others for a minute.
    #[arg(long, value_name = "PLACE", value_parser = aws::place)]
    from: Option<SinkPlace>,
    /// The shard of that stream; without it, all.
    #[arg(long, requires = "from")]
    pub shard: Option<String>,
    /// The sequence number in that shard after which to begin; without it, at the oldest.
    #[arg(long, requires = "shard", value_name = "SEQUENCE")]
    pub after: Option<String>,
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
#[command(group(ArgGroup::new("to_where").required(true).args(["to_queue", "to_topic", "to"])))]
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
    /// What in AWS takes the messages: sqs:URL or kinesis:STREAM, by name or ARN.
    #[arg(long, value_name = "PLACE", value_parser = aws::place)]
    to: Option<SinkPlace>,
}

/// A queue, a topic or something else.
fn place_of(
    queue: Option<&String>,
    client: &str,
    topic: Option<&String>,
    other: Option<&SinkPlace>,
) -> SinkPlace {
    match (queue, topic, other) {
        (_, _, Some(place)) => place.clone(),
        (_, Some(topic), None) => SinkPlace::Log { topic: topic.clone() },
        (queue, None, None) => SinkPlace::Queue {
            queue: queue.cloned().unwrap_or_default(),
            client: client.to_owned(),
        },
    }
}

impl LettersArgs {
    /// Where the letters are.
    pub fn place(&self) -> SinkPlace {
        place_of(self.queue.as_ref(), &self.client, self.topic.as_ref(), self.from.as_ref())
    }

    /// Which are meant.
    pub fn which(&self) -> Which {
        Which {
            reasons: self.reason.iter().filter_map(|name| Reason::from_name(name)).collect(),
            kind: self.kind.map(KindName::kind),
            consumer: self.consumer.clone(),
            arn: self.arn.clone(),
        }
    }

    /// How many are looked at.
    pub fn looked_at_max(&self) -> usize {
        usize::try_from(self.max).unwrap_or(usize::MAX)
    }

    /// Partition and offset, in a topic.
    pub const fn offset(&self) -> (u32, u64) {
        (self.partition, self.offset)
    }
}

impl RedriveArgs {
    /// The letters that are meant.
    pub const fn letters(&self) -> &LettersArgs {
        &self.letters
    }

    /// Where what is in them goes.
    pub fn destination(&self) -> SinkPlace {
        place_of(self.to_queue.as_ref(), &self.to_client, self.to_topic.as_ref(), self.to.as_ref())
    }
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

    const fn kind(self) -> Kind {
        match self {
            Self::Message => Kind::Message,
            Self::Record => Kind::Record,
        }
    }
}

fn reason(name: &str) -> Result<String, String> {
    Reason::from_name(name).map(|reason| reason.name().to_owned()).ok_or_else(|| {
        let names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        format!("there is no reason {name:?}; there are {}", names.join(", "))
    })
}

/// Columns of letters.
pub const LETTERS: &[Column] = &[
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

const SHARDS: &[Column] = &[("SHARD", "shard", Show::Plain), ("GO ON AFTER", "after", Show::Plain)];

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
    report(out, &door.ask(Ask::post(&["letters", "redrive"], body)).await?)
}

/// Prints what a redrive did.
pub fn report(out: Output, answer: &Value) -> Result<(), Failure> {
    out.one(REDRIVEN, answer)?;
    if let (Some(shards), false) = (field(answer, "shards").as_array(), out.is_json()) {
        out.list(SHARDS, shards)?;
    }
    let count = |name: &str| {
        field(answer, name).as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    };
    let (sent, failed) = (count("sent"), count("failed"));
    let first = field(answer, "failures").get(0).and_then(Value::as_str);
    let Some(first) = first else { return Ok(()) };
    let first = ErrorBody { code: "failed".to_owned(), message: first.to_owned(), field: None };
    Err(Failure::Partly { failed, of: sent + failed, what: "letters", first: Some(first) })
}
