//! Appending and reading.

use millpond_log::{AppendOptions, Batch, NewRecord, ProducerId, Record, Sequence};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::content::{decode, decode_some, encode, encode_some};
use super::super::error::{ApiError, ErrorBody};
use super::super::queue::{check_batch, check_max, check_wait};
use super::{failed, parse_place};

/// A record to append.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordInput {
    /// Records with the same key go to the same partition, in order; as text.
    key: Option<String>,
    /// The key in base64.
    key_base64: Option<String>,
    /// What it says, as text.
    payload: Option<String>,
    /// What it says, in base64.
    payload_base64: Option<String>,
    /// What is said about it, in order.
    #[serde(default)]
    headers: Vec<Header>,
}

/// Something said about a record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Its value, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
}

impl RecordInput {
    fn record(self) -> Result<NewRecord, ApiError> {
        let headers = self.headers.into_iter().map(|header| {
            let value = decode("value", header.value, header.value_base64)?;
            Ok((header.name, value))
        });
        Ok(NewRecord {
            key: decode_some("key", self.key, self.key_base64)?,
            payload: decode("payload", self.payload, self.payload_base64)?,
            headers: headers.collect::<Result<_, ApiError>>()?,
        })
    }
}

/// What to append.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendInput {
    topic: String,
    /// The records, in order, at most 1,000.
    records: Vec<RecordInput>,
    /// The partition that all of them go to, all or none. Default: each to the partition of its key, or to any.
    partition: Option<u32>,
    /// With a partition: refused when the partition has seen a greater token.
    fence: Option<u64>,
    /// With a partition: who sends them, so that they are appended once, however often they are sent.
    producer: Option<String>,
    /// With a producer: the sequence of the first record among the producer's in this partition.
    first_sequence: Option<u64>,
}

/// Where a record is, or why it is not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AppendOutcome {
    /// The partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// The offset in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// It was there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// Why it was not appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// What became of each.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AppendAnswer {
    /// An outcome for each record, in order.
    pub outcomes: Vec<AppendOutcome>,
}

/// Appends records.
pub async fn append(api: Api, input: AppendInput) -> Result<AppendAnswer, ApiError> {
    check_batch("records", input.records.len())?;
    let topic = api.handles().topic(&input.topic).await?;
    let records = input.records.into_iter().map(RecordInput::record);
    let records = records.collect::<Result<Vec<_>, _>>()?;
    let error = |error| failed(&api, &input.topic, error);
    let at = |partition, offset, duplicate| AppendOutcome {
        partition: Some(partition),
        offset: Some(offset),
        duplicate,
        error: None,
    };
    let Some(partition) = input.partition else {
        if input.fence.is_some() || input.producer.is_some() {
            return Err(ApiError::invalid("partition", "is needed with fence and producer"));
        }
        let outcomes = Box::pin(topic.append_batch(records)).await.map_err(error)?;
        let outcomes = outcomes.into_iter().map(|outcome| match outcome {
            Ok(position) => at(position.partition, position.offset, false),
            Err(error) => AppendOutcome {
                error: Some(*failed(&api, &input.topic, error).body),
                ..AppendOutcome::default()
            },
        });
        return Ok(AppendAnswer { outcomes: outcomes.collect() });
    };
    let sequence = match (input.producer, input.first_sequence) {
        (Some(producer), Some(first)) => {
            Some(Sequence { producer: ProducerId::new(&producer)?, first })
        }
        (None, None) => None,
        _ => return Err(ApiError::invalid("first_sequence", "and producer go together")),
    };
    let options = AppendOptions { fence: input.fence, sequence };
    let done = Box::pin(topic.append_to(partition, records, &options)).await.map_err(error)?;
    let offsets = done.first..done.first + done.count as u64;
    let outcomes = offsets.map(|offset| at(done.partition, offset, done.duplicate)).collect();
    Ok(AppendAnswer { outcomes })
}

/// What to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    topic: String,
    /// The partition.
    partition: u32,
    /// Where to begin: an offset, earliest, latest, or @ and milliseconds since 1970. Default: earliest.
    from: Option<String>,
    /// Most records, up to 10,000. Default: 100.
    max: Option<usize>,
    /// How long to wait when there is nothing, up to 60,000. Default: not at all.
    #[serde(default)]
    wait_ms: u64,
}

/// A record.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Record")]
pub struct RecordOutput {
    /// The partition.
    pub partition: u32,
    /// Its place in the partition.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Its key, when that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its key, in base64, when that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_base64: Option<String>,
    /// What it says, when that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// What it says, in base64, when that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
}

impl From<Record> for RecordOutput {
    fn from(record: Record) -> Self {
        let (key, key_base64) = encode_some(record.key.as_ref());
        let (payload, payload_base64) = encode(&record.payload);
        let header = |(name, value): (String, bytes::Bytes)| {
            let (value, value_base64) = encode(&value);
            Header { name, value, value_base64 }
        };
        Self {
            partition: record.partition,
            offset: record.offset,
            timestamp_ms: record.timestamp.as_millis(),
            key,
            key_base64,
            payload,
            payload_base64,
            headers: record.headers.into_iter().map(header).collect(),
        }
    }
}

/// Offsets that are gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedOffsets {
    /// The first that is missing.
    pub from: u64,
    /// The first that is not.
    pub to: u64,
}

/// What was read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Records {
    /// The records, by rising offset.
    pub records: Vec<RecordOutput>,
    /// Before them, what retention has removed of what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<RemovedOffsets>,
    /// Where to read on.
    pub next: u64,
    /// Whether there was more at the time.
    pub more: bool,
}

impl From<Batch> for Records {
    fn from(batch: Batch) -> Self {
        Self {
            records: batch.records.into_iter().map(Into::into).collect(),
            gap: batch.gap.map(|gap| RemovedOffsets { from: gap.from, to: gap.to }),
            next: batch.next,
            more: batch.more,
        }
    }
}

/// Reads a partition.
pub async fn read(api: Api, input: ReadInput) -> Result<Records, ApiError> {
    let (max, wait) = (check_max(input.max)?, check_wait(input.wait_ms)?);
    let place = parse_place("from", input.from.as_deref().unwrap_or("earliest"))?;
    let topic = api.handles().topic(&input.topic).await?;
    let error = |error| failed(&api, &input.topic, error);
    let from = match place {
        // Below what is kept there is a gap to tell of, not an error.
        millpond_log::Seek::Offset(offset) => offset,
        place => topic.seek(input.partition, place).await.map_err(error)?,
    };
    let batch = Box::pin(topic.read(input.partition, from, max)).await.map_err(error)?;
    if !batch.is_empty() || wait.is_zero() {
        return Ok(batch.into());
    }
    let place = millpond_log::Seek::Offset(batch.next);
    let mut follower = topic.follow(input.partition, place, max).await.map_err(error)?;
    let awaited = Box::pin(follower.next_within(wait));
    tokio::select! {
        biased;
        next = awaited => Ok(next.map_err(error)?.unwrap_or(batch).into()),
        () = api.until_closed() => Ok(batch.into()),
    }
}

/// Which place.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeekInput {
    topic: String,
    /// The partition.
    partition: u32,
    /// The place: an offset, earliest, latest, or @ and milliseconds since 1970.
    at: String,
}

/// Where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OffsetOutput {
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: u64,
}

/// The offset of a place.
pub async fn seek(api: Api, input: SeekInput) -> Result<OffsetOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let place = parse_place("at", &input.at)?;
    let offset = Box::pin(topic.seek(input.partition, place)).await;
    let offset = offset.map_err(|error| failed(&api, &input.topic, error))?;
    Ok(OffsetOutput { partition: input.partition, offset })
}
