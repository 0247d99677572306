//! Dead letters: bringing what is in them back.

use millpond_consumer::Spill;
use millpond_consumer::redrive::{Destination, ToLog, ToQueue, Which, redrive_log, redrive_queue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::queue::check_max;
use super::letters::{LetterKind, kind, one_of, reasons};

/// Which letters, and where to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveInput {
    /// The queue of dead letters; either this or a topic.
    from_queue: Option<String>,
    /// The client of that queue. Default: the main one.
    #[serde(default)]
    from_client: String,
    /// The topic of dead letters.
    from_topic: Option<String>,
    /// The partition of that topic. Default: 0.
    #[serde(default)]
    partition: u32,
    /// The first offset of that partition to look at. Default: 0.
    #[serde(default)]
    offset: u64,
    /// How many to look at, up to 10,000. Default: 100.
    max: Option<usize>,
    /// Only these reasons: unusable, rejected, exhausted, abandoned, expired. Default: all.
    #[serde(default)]
    reasons: Vec<String>,
    /// Only messages, or only records that could not be read.
    kind: Option<LetterKind>,
    /// Only those of this consumer.
    consumer: Option<String>,
    /// Only those of this source, by its full ARN.
    arn: Option<String>,
    /// The queue that takes the messages; either this or a topic.
    to_queue: Option<String>,
    /// The client of that queue. Default: the main one.
    #[serde(default)]
    to_client: String,
    /// The topic that takes the messages.
    to_topic: Option<String>,
}

/// What a redrive did.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RedrivenLetters")]
pub struct RedriveOutput {
    /// Letters that were brought back.
    pub sent: usize,
    /// Letters that were not meant, and stay.
    pub skipped: usize,
    /// Letters that could not be brought back, and stay.
    pub failed: usize,
    /// Why, of each.
    pub failures: Vec<String>,
    /// In a topic: the first offset that was not looked at, to go on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Brings letters back.
pub async fn redrive(api: Api, input: RedriveInput) -> Result<RedriveOutput, ApiError> {
    let max = check_max(input.max)?;
    let which = Which {
        reasons: reasons(input.reasons.iter().map(String::as_str))?,
        kind: kind(input.kind)?,
        consumer: input.consumer,
        arn: input.arn,
    };
    let from = one_of(("from_queue", input.from_queue), ("from_topic", input.from_topic))?;
    let to = one_of(("to_queue", input.to_queue), ("to_topic", input.to_topic))?;
    let handles = api.handles();
    let to: Box<dyn Destination> = match to {
        Ok(queue) => Box::new(ToQueue(handles.client(&queue, &input.to_client).await?)),
        Err(topic) => Box::new(ToLog(handles.topic(&topic).await?)),
    };
    let spill = api.ground().objects.as_ref().map(|objects| {
        let (store, prefix) = objects.place();
        Spill::new(store, prefix)
    });
    let (redriven, next) = match from {
        Ok(queue) => {
            let dead = handles.client(&queue, &input.from_client).await?;
            let redriven = redrive_queue(&dead, &*to, &which, spill.as_ref(), max);
            (Box::pin(redriven).await?, None)
        }
        Err(topic) => {
            let (dead, place) = (handles.topic(&topic).await?, (input.partition, input.offset));
            let redriven = redrive_log(&dead, place, &*to, &which, spill.as_ref(), max);
            let (redriven, next) = Box::pin(redriven).await?;
            (redriven, Some(next))
        }
    };
    Ok(RedriveOutput {
        sent: redriven.sent,
        skipped: redriven.skipped,
        failed: redriven.failed.len(),
        failures: redriven.failed,
        next,
    })
}
