//! One record of a source, whatever source it is.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use millpond_store::Timestamp;
use serde::Serialize;

use crate::extract::Data;
use crate::position::{RecordKey, Sequence};

/// What delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// An Amazon Kinesis stream.
    Kinesis,
    /// The stream of a DynamoDB table.
    DynamoDb,
    /// An Amazon SQS queue.
    Sqs,
    /// An Amazon SQS FIFO queue.
    SqsFifo,
    /// A Millpond queue.
    Queue,
    /// A Millpond log.
    Log,
}

impl SourceKind {
    /// Whether a batch of it is a stretch of a stream, of which all from one record on comes again; otherwise each message
    /// comes again by itself, with a count of how often it came.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(self, Self::Kinesis | Self::DynamoDb | Self::Log)
    }

    /// What it is called in errors and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kinesis => "kinesis",
            Self::DynamoDb => "dynamodb",
            Self::Sqs => "sqs",
            Self::SqsFifo => "sqs fifo",
            Self::Queue => "millpond queue",
            Self::Log => "millpond log",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Within what a record is unique: its source in full, and its shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Scope {
    /// What delivers.
    pub kind: SourceKind,
    /// The source's full ARN: streams of the same name in two accounts are two. For Millpond's own, `queue/NAME/CLIENT` or
    /// `log/TOPIC`.
    pub arn: String,
    /// The shard; empty where the source has none or does not tell. For Millpond's own, what tells a queue or topic apart
    /// from others of its name, and before that a topic's partition.
    pub shard: String,
}

/// A record that has all it needs.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it is from.
    pub scope: Arc<Scope>,
    /// What names it there.
    pub key: RecordKey,
    /// Its sequence number, where it has one.
    pub sequence: Option<Sequence>,
    /// What a partial response calls it.
    pub item: String,
    /// Its event or message id.
    pub id: String,
    /// The source's own key: partition key, message group, or a table's keys as JSON.
    pub partition_key: Option<String>,
    /// What it carries.
    pub data: Data,
    /// The record as it came.
    pub raw: Bytes,
    /// When it was put into its source.
    pub arrived: Option<Timestamp>,
    /// How often it was received, this time included, where the source counts that.
    pub receives: Option<u32>,
}

/// A record that cannot be used, and why.
#[derive(Debug, Clone)]
pub struct Unusable {
    /// Why.
    pub reason: String,
    /// The record as it came.
    pub raw: Bytes,
    /// Where it is from, as far as it says.
    pub scope: Option<Arc<Scope>>,
    /// What names it there, as far as it says.
    pub key: Option<RecordKey>,
    /// What a partial response calls it, as far as it says.
    pub item: Option<String>,
    /// How often it was received, where the source counts that and it says so.
    pub receives: Option<u32>,
}

impl Unusable {
    /// A record of which only the bytes are known.
    pub(crate) fn new(raw: Bytes, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { reason, raw, scope: None, key: None, item: None, receives: None }
    }

    /// A record that is all there, but whose content is of no use.
    pub(crate) fn of(record: &Record, reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            raw: record.raw.clone(),
            scope: Some(Arc::clone(&record.scope)),
            key: Some(record.key.clone()),
            item: Some(record.item.clone()),
            receives: record.receives,
        }
    }
}
