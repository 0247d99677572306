//! Dead letters: which there are.

use std::collections::BTreeMap;

use millpond_consumer::redrive::{Which, list_log, list_queue};
use millpond_consumer::sink::{Kind, LetterError};
use millpond_consumer::{DeadLetter, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::queue::check_max;
use super::state::TaskOutput;

/// Where dead letters are, and which are meant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LettersInput {
    /// The queue of dead letters; either this or a topic.
    queue: Option<String>,
    /// The client of the queue. Default: the main one.
    #[serde(default)]
    client: String,
    /// The topic of dead letters.
    topic: Option<String>,
    /// The partition of the topic. Default: 0.
    #[serde(default)]
    partition: u32,
    /// The first offset of the partition to look at. Default: 0.
    #[serde(default)]
    offset: u64,
    /// How many to look at, up to 10,000. Default: 100.
    max: Option<usize>,
    /// Only these reasons, with commas between them: unusable, rejected, exhausted, abandoned, expired.
    reasons: Option<String>,
    /// Only messages, or only records that could not be read.
    kind: Option<LetterKind>,
    /// Only those of this consumer.
    consumer: Option<String>,
    /// Only those of this source, by its full ARN.
    arn: Option<String>,
}

/// What died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LetterKind {
    /// A message that could be read.
    Message,
    /// A record, or a whole event, that could not.
    Record,
    /// What is there is no dead letter, or of a newer version; `detail` says more.
    Unreadable,
}

/// Exactly one of a queue (good) and a topic (else).
pub fn one_of<T>(
    (queue_field, queue): (&str, Option<T>),
    (topic_field, topic): (&str, Option<T>),
) -> Result<Result<T, T>, ApiError> {
    match (queue, topic) {
        (Some(queue), None) => Ok(Ok(queue)),
        (None, Some(topic)) => Ok(Err(topic)),
        (Some(_), Some(_)) => Err(ApiError::invalid(
            topic_field,
            format!("and {queue_field} are both given; give one"),
        )),
        (None, None) => {
            Err(ApiError::invalid(queue_field, format!("is missing; give it, or {topic_field}")))
        }
    }
}

/// Reasons by their names.
pub fn reasons<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<Reason>, ApiError> {
    let reason = |name: &str| {
        Reason::from_name(name).ok_or_else(|| {
            let all: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
            let problem = format!("has {name:?} in it; there are {}", all.join(", "));
            ApiError::invalid("reasons", problem)
        })
    };
    names.map(reason).collect()
}

/// The kind that is meant.
pub fn kind(kind: Option<LetterKind>) -> Result<Option<Kind>, ApiError> {
    match kind {
        None => Ok(None),
        Some(LetterKind::Message) => Ok(Some(Kind::Message)),
        Some(LetterKind::Record) => Ok(Some(Kind::Record)),
        Some(LetterKind::Unreadable) => {
            Err(ApiError::invalid("kind", "is unreadable, which cannot be asked for"))
        }
    }
}

/// Dead letters.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Letters {
    /// The letters, oldest first.
    pub letters: Vec<LetterOutput>,
}

/// A dead letter.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Letter")]
pub struct LetterOutput {
    /// Its offset, in a topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What died: message, record, or unreadable when this is no letter.
    pub kind: String,
    /// Why: unusable, rejected, exhausted, abandoned or expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in words.
    pub detail: String,
    /// The consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// The same for the same message or record, however often it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_id: Option<String>,
    /// Where it is from, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<LetterSource>,
    /// Its sequence number or message id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// What else names its record, in a table's stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<String>,
    /// Its place in an aggregate.
    #[serde(default)]
    pub sub: u32,
    /// Its place among what the extractor found.
    #[serde(default)]
    pub part: u32,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its business key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The source's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    /// When it came to its source, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_ms: Option<u64>,
    /// When it died, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_ms: Option<u64>,
    /// How its tasks fared, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<String, TaskOutput>,
    /// The message's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<LetterBody>,
    /// The record as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<LetterBody>,
    /// Where the whole letter is, when it was too large for its sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spilled: Option<LetterObject>,
}

/// Where a letter's message is from.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LetterSource {
    /// What delivered it.
    pub kind: String,
    /// The full ARN.
    pub arn: String,
    /// The shard; empty when there is none.
    pub shard: String,
}

/// Bytes, in one of two forms.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LetterBody {
    /// As text, when they are that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// In base64, when they are not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Where a large letter is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LetterObject {
    /// The object's path.
    pub path: String,
    /// Its size.
    pub bytes: usize,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

impl LetterOutput {
    /// What was found where letters are.
    pub fn of(found: &Result<DeadLetter, LetterError>) -> Self {
        let unreadable =
            |detail: String| Self { kind: "unreadable".to_owned(), detail, ..Self::default() };
        match found {
            Ok(letter) => {
                let value = serde_json::to_value(letter).unwrap_or_default();
                serde_json::from_value(value).unwrap_or_else(|error| unreadable(error.to_string()))
            }
            Err(error) => unreadable(error.to_string()),
        }
    }
}

/// Lists letters.
pub async fn list(api: Api, input: LettersInput) -> Result<Letters, ApiError> {
    let max = check_max(input.max)?;
    let names = input.reasons.as_deref().unwrap_or_default();
    let which = Which {
        reasons: reasons(names.split(',').map(str::trim).filter(|name| !name.is_empty()))?,
        kind: kind(input.kind)?,
        consumer: input.consumer,
        arn: input.arn,
    };
    let letters = match one_of(("queue", input.queue), ("topic", input.topic))? {
        Ok(queue) => {
            let dead = api.handles().client(&queue, &input.client).await?;
            let found = Box::pin(list_queue(&dead, &which, max)).await?;
            found.iter().map(LetterOutput::of).collect()
        }
        Err(topic) => {
            let dead = api.handles().topic(&topic).await?;
            let found = list_log(&dead, input.partition, input.offset, &which, max);
            let found = Box::pin(found).await?;
            let letter = |(offset, letter): &(u64, _)| LetterOutput {
                offset: Some(*offset),
                ..LetterOutput::of(letter)
            };
            found.iter().map(letter).collect()
        }
    };
    Ok(Letters { letters })
}
