//! Dead letters: listing them, and bringing what is in them back.

use clap::{ArgGroup, Args, ValueEnum};
use millpond_consumer::redrive::{
    Destination, Redriven, ToLog, ToQueue, Which, list_log, list_queue, redrive_log, redrive_queue,
};
use millpond_consumer::sink::{Kind, LetterError};
use millpond_consumer::{DeadLetter, Reason, Spill};
use millpond_dynamodb::{ObjectOptions, Objects};
use millpond_lanes::Ground;
use millpond_log::{Log, LogError, Topic};
use millpond_queue::{Client, QueueError, Queues};
use serde_json::{Value, json};

use super::super::Failure;
use super::super::output::{Column, Output, Show};
use super::super::target::Target;
use crate::api::{ApiError, ErrorBody};

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
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max: u32,
    /// Only these reasons: unusable, rejected, exhausted, abandoned, expired.
    #[arg(long, value_delimiter = ',', value_parser = reason)]
    reason: Vec<Reason>,
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

fn reason(name: &str) -> Result<Reason, String> {
    Reason::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        format!("there is no reason {name:?}; there are {}", names.join(", "))
    })
}

impl LettersArgs {
    fn which(&self) -> Which {
        let kind = self.kind.map(|kind| match kind {
            KindName::Message => Kind::Message,
            KindName::Record => Kind::Record,
        });
        let (consumer, arn) = (self.consumer.clone(), self.arn.clone());
        Which { reasons: self.reason.clone(), kind, consumer, arn }
    }

    fn max(&self) -> usize {
        usize::try_from(self.max).unwrap_or(usize::MAX)
    }
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
pub async fn list(ground: &Ground, args: &LettersArgs, out: Output) -> Result<(), Failure> {
    let (which, max) = (args.which(), args.max());
    let rows: Vec<Value> = match (&args.queue, &args.topic) {
        (Some(queue), _) => {
            let dead = client(ground, queue, &args.client).await?;
            list_queue(&dead, &which, max).await?.iter().map(|letter| row(letter, None)).collect()
        }
        (None, topic) => {
            let dead = topic_of(ground, topic.as_deref().unwrap_or_default()).await?;
            let found = list_log(&dead, args.partition, args.offset, &which, max).await?;
            found.iter().map(|(offset, letter)| row(letter, Some(*offset))).collect()
        }
    };
    out.list(LETTERS, &rows)
}

/// Brings letters back.
pub async fn redrive(
    ground: &Ground,
    target: &Target,
    args: &RedriveArgs,
    out: Output,
) -> Result<(), Failure> {
    let letters = &args.letters;
    let (which, max) = (letters.which(), letters.max());
    let to: Box<dyn Destination> = match (&args.to_queue, &args.to_topic) {
        (Some(queue), _) => Box::new(ToQueue(client(ground, queue, &args.to_client).await?)),
        (None, topic) => {
            Box::new(ToLog(topic_of(ground, topic.as_deref().unwrap_or_default()).await?))
        }
    };
    let spill = match &target.objects {
        Some(url) => {
            let objects = Objects::open(url, &ObjectOptions::default())?;
            Some(Spill::new(objects.store, objects.prefix))
        }
        None => None,
    };
    let (redriven, next) = match (&letters.queue, &letters.topic) {
        (Some(queue), _) => {
            let dead = client(ground, queue, &letters.client).await?;
            (redrive_queue(&dead, &*to, &which, spill.as_ref(), max).await?, None)
        }
        (None, topic) => {
            let dead = topic_of(ground, topic.as_deref().unwrap_or_default()).await?;
            let place = (letters.partition, letters.offset);
            let (redriven, next) =
                redrive_log(&dead, place, &*to, &which, spill.as_ref(), max).await?;
            (redriven, Some(next))
        }
    };
    said(out, &redriven, next)
}

fn said(out: Output, redriven: &Redriven, next: Option<u64>) -> Result<(), Failure> {
    let Redriven { sent, skipped, failed } = redriven;
    let answer = json!({
        "sent": sent, "skipped": skipped, "failed": failed.len(), "failures": failed, "next": next,
    });
    out.one(REDRIVEN, &answer)?;
    let Some(first) = failed.first() else { return Ok(()) };
    let first = ErrorBody { code: "failed".to_owned(), message: first.clone(), field: None };
    let (failed, of) = (failed.len(), sent + failed.len());
    Err(Failure::Partly { failed, of, what: "letters", first: Some(first) })
}

fn row(letter: &Result<DeadLetter, LetterError>, offset: Option<u64>) -> Value {
    let mut row = match letter {
        Ok(letter) => serde_json::to_value(letter).unwrap_or_default(),
        Err(error) => json!({ "kind": "unreadable", "detail": error.to_string() }),
    };
    if let (Some(row), Some(offset)) = (row.as_object_mut(), offset) {
        row.insert("offset".to_owned(), offset.into());
    }
    row
}

async fn client(ground: &Ground, queue: &str, client: &str) -> Result<Client, Failure> {
    let open = async {
        let queue = Queues::new(ground).open(queue).await?;
        if client.is_empty() { queue.main() } else { queue.client(client) }
    };
    open.await.map_err(|error: QueueError| ApiError::from(error).into())
}

async fn topic_of(ground: &Ground, name: &str) -> Result<Topic, Failure> {
    let topic = Log::new(ground).topic(name).await;
    topic.map_err(|error: LogError| ApiError::from(error).into())
}
