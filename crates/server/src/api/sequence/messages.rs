//! Putting and reading.

use std::collections::BTreeMap;

use millpond_sequencer::{
    Advance, Arrival, Delivered, Entry, Gap, GapReason, Message, Output, Read,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::content::{decode, encode};
use super::super::error::{ApiError, ErrorBody};
use super::super::limits::LISTED_MAX;
use super::super::queue::{check_batch, check_max};

/// A message with its place.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewNumberedMessage")]
pub struct MessageInput {
    /// The queue.
    queue: String,
    /// The number.
    seq: u64,
    /// What it says, as text.
    payload: Option<String>,
    /// What it says, in base64.
    payload_base64: Option<String>,
    /// What else is said, by name.
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

impl MessageInput {
    fn entry(self) -> Result<Entry, ApiError> {
        let payload = decode("payload", self.payload, self.payload_base64)?;
        let message = Message { payload, attributes: self.attributes };
        Ok(Entry::new(&self.queue, self.seq, message)?)
    }
}

/// What to put.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutInput {
    sequencer: String,
    /// The messages, at most 1,000.
    messages: Vec<MessageInput>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Arrival")]
pub enum ArrivalName {
    /// It is stored.
    Stored,
    /// It was stored before.
    Duplicate,
    /// Its number was passed so long ago that the message is not kept any more.
    Passed,
    /// It came too late, and is kept aside.
    KeptAside,
    /// It came too late, and subscribers are told.
    DeliveredLate,
}

impl From<Arrival> for ArrivalName {
    fn from(arrival: Arrival) -> Self {
        match arrival {
            Arrival::Stored => Self::Stored,
            Arrival::Duplicate => Self::Duplicate,
            Arrival::Passed => Self::Passed,
            Arrival::KeptAside => Self::KeptAside,
            Arrival::DeliveredLate => Self::DeliveredLate,
        }
    }
}

/// What became of a put.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PutOutcome {
    /// What became of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<ArrivalName>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// Numbers that a cursor passed: from `first` up to and without `next`.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Passed {
    /// The first number.
    pub first: u64,
    /// The number behind the last.
    pub next: u64,
}

impl From<Advance> for Passed {
    fn from(advance: Advance) -> Self {
        Self { first: advance.first, next: advance.next }
    }
}

/// What a queue's cursor passed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueuePassed {
    /// The queue.
    pub queue: String,
    /// The first number.
    pub first: u64,
    /// The number behind the last.
    pub next: u64,
}

/// What became of each, and what cursors passed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PutAnswer {
    /// An outcome for each message, in order.
    pub outcomes: Vec<PutOutcome>,
    /// What the cursors passed by this request.
    pub advanced: Vec<QueuePassed>,
}

/// Puts messages.
pub async fn put(api: Api, input: PutInput) -> Result<PutAnswer, ApiError> {
    check_batch("messages", input.messages.len())?;
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let mut outcomes: Vec<Option<PutOutcome>> = Vec::new();
    let mut entries = Vec::new();
    let refused = |error: ApiError| PutOutcome { arrival: None, error: Some(*error.body) };
    for message in input.messages {
        match message.entry() {
            Ok(entry) => {
                entries.push(entry);
                outcomes.push(None);
            }
            Err(error) => outcomes.push(Some(refused(error))),
        }
    }
    let done = Box::pin(sequencer.put_batch(entries)).await?;
    let mut arrivals = done.arrivals.into_iter().map(|arrival| match arrival {
        Ok(arrival) => PutOutcome { arrival: Some(arrival.into()), error: None },
        Err(error) => refused(error.into()),
    });
    let outcomes = outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| arrivals.next()));
    let outcomes = outcomes.collect();
    let advanced = done.advanced.into_iter().map(|(queue, passed)| QueuePassed {
        queue: queue.to_string(),
        first: passed.first,
        next: passed.next,
    });
    Ok(PutAnswer { outcomes, advanced: advanced.collect() })
}

/// What to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    sequencer: String,
    queue: String,
    /// The first number. Default: the first that is kept.
    first: Option<u64>,
    /// The number behind the last. Default: what the queue waits for.
    next: Option<u64>,
    /// Most numbers, up to 10,000. Default: 100.
    max: Option<usize>,
}

/// A message or a gap, in its place. A gap has `next` and `reason`, a message all else.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct NumberedMessage {
    /// The number, of a gap the first.
    pub seq: u64,
    /// When it was put, or recorded, in milliseconds since 1970.
    pub at_ms: u64,
    /// What it says, when that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// What it says, in base64, when that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// What else is said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Of a gap: the number behind the last that was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_next: Option<u64>,
    /// Of a gap: why the numbers were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_reason: Option<GapReasonName>,
}

/// Why numbers were skipped.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GapReason")]
pub enum GapReasonName {
    /// They did not come in time.
    Timeout,
    /// A producer said that they will not come.
    Declared,
    /// Somebody skipped them by hand.
    Skipped,
}

impl From<Delivered> for NumberedMessage {
    fn from(delivered: Delivered) -> Self {
        let (payload, payload_base64) = encode(&delivered.message.payload);
        Self {
            seq: delivered.seq,
            at_ms: delivered.at.as_millis(),
            payload,
            payload_base64,
            attributes: delivered.message.attributes,
            ..Self::default()
        }
    }
}

impl From<Gap> for NumberedMessage {
    fn from(gap: Gap) -> Self {
        let reason = match gap.reason {
            GapReason::Timeout => GapReasonName::Timeout,
            GapReason::Declared => GapReasonName::Declared,
            GapReason::Skipped => GapReasonName::Skipped,
        };
        Self {
            seq: gap.first,
            at_ms: gap.at.as_millis(),
            gap_next: Some(gap.end),
            gap_reason: Some(reason),
            ..Self::default()
        }
    }
}

/// What was read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadAnswer {
    /// Messages and gaps, by rising number.
    pub messages: Vec<NumberedMessage>,
    /// Where to read on.
    pub next: u64,
}

impl From<Read> for ReadAnswer {
    fn from(read: Read) -> Self {
        let output = |output| match output {
            Output::Message(message) => NumberedMessage::from(message),
            Output::Gap(gap) => NumberedMessage::from(gap),
        };
        Self { messages: read.outputs.into_iter().map(output).collect(), next: read.next }
    }
}

/// Reads a range.
pub async fn read(api: Api, input: ReadInput) -> Result<ReadAnswer, ApiError> {
    let max = u64::try_from(check_max(input.max)?).unwrap_or(LISTED_MAX as u64);
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let (first, end) = match (input.first, input.next) {
        (Some(first), Some(end)) => (first, end),
        (first, end) => {
            let cursor = super::queues::found(&sequencer, &input.queue).await?;
            (first.unwrap_or(cursor.floor), end.unwrap_or(cursor.next))
        }
    };
    // A range that is not there is the sequencer's to refuse; one that is too long is cut.
    let end = if end > first { end.min(first.saturating_add(max)) } else { end };
    Ok(Box::pin(sequencer.read(&input.queue, first..end)).await?.into())
}
