//! Looking at dead letters, and bringing what is in them back.

use std::fmt;

use async_trait::async_trait;
use millpond_log::{LogError, NewRecord, Topic};
use millpond_queue::{Client, Message, QueueError, Receive};
use millpond_store::Timestamp;

use crate::consumer::Consumer;
use crate::sink::{DeadLetter, Kind, LetterError, Reason, Spill, SpillError};

/// Why dead letters could not be listed or brought back.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// The queue of dead letters failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The topic of dead letters failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A letter's object could not be read.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// A letter was spilled, and nothing says where to. Give the consumer's spill.
    #[error("the letter {0} was spilled to an object store, and none is given")]
    NoSpill(String),
    /// A letter is damaged.
    #[error(transparent)]
    Letter(#[from] LetterError),
    /// What was to take it did not.
    #[error("{0}")]
    Refused(String),
}

/// Which letters are meant. Default: all.
#[derive(Debug, Clone, Default)]
pub struct Which {
    /// Only these reasons; all when empty.
    pub reasons: Vec<Reason>,
    /// Only dead messages, or only dead records.
    pub kind: Option<Kind>,
    /// Only those of this consumer.
    pub consumer: Option<String>,
    /// Only those of this source.
    pub arn: Option<String>,
}

impl Which {
    /// Whether a letter is meant.
    #[must_use]
    pub fn matches(&self, letter: &DeadLetter) -> bool {
        let arn = letter.source.as_ref().map(|source| &source.arn);
        (self.reasons.is_empty() || self.reasons.contains(&letter.reason))
            && self.kind.is_none_or(|kind| kind == letter.kind)
            && self.consumer.as_ref().is_none_or(|name| *name == letter.consumer)
            && self.arn.as_ref().is_none_or(|wanted| arn == Some(wanted))
    }
}

/// What takes what was dead.
#[async_trait]
pub trait Destination: fmt::Debug + Send + Sync {
    /// Takes the payload of a letter, byte for byte.
    ///
    /// # Errors
    /// When it does not have it. The letter then stays.
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError>;
}

/// Back into a Millpond queue.
#[derive(Debug, Clone)]
pub struct ToQueue(pub Client);

#[async_trait]
impl Destination for ToQueue {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let mut message = Message::new(letter.payload()?);
        message.group.clone_from(&letter.partition_key);
        if self.0.config().await?.strict.is_some() {
            message = message.dedup_id(format!("redrive-{}", letter.dedupe_id));
        }
        self.0.send(message).await?;
        Ok(())
    }
}

/// Back into a Millpond log.
#[derive(Debug, Clone)]
pub struct ToLog(pub Topic);

#[async_trait]
impl Destination for ToLog {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let payload = letter.payload()?;
        let record = match &letter.partition_key {
            Some(key) => NewRecord::keyed(key.clone(), payload),
            None => NewRecord::new(payload),
        };
        self.0.append(record.header("redriven", letter.dedupe_id.clone())).await?;
        Ok(())
    }
}

/// Straight to a consumer, as an event of its one record: for records of Kinesis, DynamoDB Streams and SQS, once what was
/// wrong is mended. The consumer should have another name than the one that gave the message up, whose state says that it
/// is dead.
#[derive(Debug, Clone)]
pub struct ToConsumer {
    /// The consumer.
    pub consumer: Consumer,
    /// Until when a record may take.
    pub deadline: Timestamp,
}

#[async_trait]
impl Destination for ToConsumer {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let raw = letter.raw.as_ref().ok_or_else(|| {
            RedriveError::Refused(format!(
                "the letter {} has no record of its own",
                letter.dedupe_id
            ))
        })?;
        let mut event = br#"{"Records":["#.to_vec();
        event.extend_from_slice(&raw.bytes()?);
        event.extend_from_slice(b"]}");
        match self.consumer.handle(&event, self.deadline).await {
            Ok((_, report)) if report.is_complete() => Ok(()),
            Ok((_, report)) => Err(RedriveError::Refused(format!(
                "it was not finished: {}",
                report.problems.join("; ")
            ))),
            Err(failed) => Err(RedriveError::Refused(failed.to_string())),
        }
    }
}

/// What a redrive did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redriven {
    /// Letters that were brought back, and are gone from the dead letters.
    pub sent: usize,
    /// Letters that were not meant, and stay.
    pub skipped: usize,
    /// What could not be brought back, and stays.
    pub failed: Vec<String>,
}

/// The letters in a queue, oldest first, up to `max` looked at; those that are not letters are named.
///
/// # Errors
/// When the queue cannot be reached.
pub async fn list_queue(
    dead: &Client,
    which: &Which,
    max: usize,
) -> Result<Vec<Result<DeadLetter, LetterError>>, RedriveError> {
    let peeked = dead.peek(max).await?;
    let letters = peeked.into_iter().map(|peeked| DeadLetter::decode(&peeked.message.body));
    Ok(letters
        .filter(|letter| letter.as_ref().map_or(true, |letter| which.matches(letter)))
        .collect())
}

/// Brings letters of a queue back, up to `max` of them. A letter is acknowledged only when its destination has it.
///
/// # Errors
/// When the queue cannot be reached.
pub async fn redrive_queue(
    dead: &Client,
    to: &dyn Destination,
    which: &Which,
    spill: Option<&Spill>,
    max: usize,
) -> Result<Redriven, RedriveError> {
    let mut redriven = Redriven::default();
    let mut kept = Vec::new();
    for _ in 0..max {
        let Some(delivery) = dead.receive(&Receive::up_to(1)).await?.pop() else { break };
        let letter = DeadLetter::decode(&delivery.body).map_err(RedriveError::from);
        let outcome = match letter {
            Ok(letter) if !which.matches(&letter) => {
                redriven.skipped += 1;
                kept.push(delivery.receipt);
                continue;
            }
            Ok(letter) => send_whole(letter, to, spill).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => {
                dead.ack(&delivery.receipt).await?;
                redriven.sent += 1;
            }
            Err(error) => {
                redriven.failed.push(error.to_string());
                kept.push(delivery.receipt);
            }
        }
    }
    for receipt in kept {
        // Its loan ends by itself too.
        if let Err(error) = dead.release(&receipt).await {
            tracing::warn!(%error, "a dead letter could not be given back before its loan ends");
        }
    }
    Ok(redriven)
}

/// The letters in a partition of a topic, from an offset on, up to `max` looked at, with their offsets.
///
/// # Errors
/// When the topic cannot be reached.
pub async fn list_log(
    dead: &Topic,
    partition: u32,
    from: u64,
    which: &Which,
    max: usize,
) -> Result<Vec<(u64, Result<DeadLetter, LetterError>)>, RedriveError> {
    let batch = dead.read(partition, from, max).await?;
    let letters =
        batch.records.iter().map(|record| (record.offset, DeadLetter::decode(&record.payload)));
    let meant = |letter: &Result<DeadLetter, LetterError>| {
        letter.as_ref().map_or(true, |letter| which.matches(letter))
    };
    Ok(letters.filter(|(_, letter)| meant(letter)).collect())
}

/// Brings letters of a topic's partition back, from an offset on, up to `max` looked at. A log keeps its records: remember
/// the offset that it returns, the first one not looked at.
///
/// # Errors
/// When the topic cannot be reached.
pub async fn redrive_log(
    dead: &Topic,
    (partition, from): (u32, u64),
    to: &dyn Destination,
    which: &Which,
    spill: Option<&Spill>,
    max: usize,
) -> Result<(Redriven, u64), RedriveError> {
    let batch = dead.read(partition, from, max).await?;
    let mut redriven = Redriven::default();
    for record in &batch.records {
        let letter = DeadLetter::decode(&record.payload).map_err(RedriveError::from);
        let outcome = match letter {
            Ok(letter) if !which.matches(&letter) => {
                redriven.skipped += 1;
                continue;
            }
            Ok(letter) => send_whole(letter, to, spill).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => redriven.sent += 1,
            Err(error) => redriven.failed.push(format!("offset {}: {error}", record.offset)),
        }
    }
    Ok((redriven, batch.next))
}

async fn send_whole(
    letter: DeadLetter,
    to: &dyn Destination,
    spill: Option<&Spill>,
) -> Result<(), RedriveError> {
    let whole = match (spill, letter.spilled.is_some()) {
        (Some(spill), true) => spill.fetch(letter).await?,
        (None, true) => return Err(RedriveError::NoSpill(letter.dedupe_id)),
        (_, false) => letter,
    };
    to.send(&whole).await
}
