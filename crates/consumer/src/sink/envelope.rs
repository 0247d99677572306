//! A dead letter: what died, why, and all that is needed to bring it back.
//!
//! It is JSON with `"millpond": "dead letter"` and a `version`, now 1. Readers refuse versions that they do not know.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::reason::Reason;
use super::spill::Spilled;
use crate::position::{Position, RecordKey, Sequence};
use crate::source::{Scope, SourceKind};
use crate::state::{Status, TaskState};

const MARK: &str = "dead letter";
const VERSION: u32 = 1;

/// What the end of a tumbling window is called among tasks. No task has a slash in its name.
pub(crate) const WINDOW_END: &str = "window/end";

/// What died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A message: the bytes were readable.
    Message,
    /// A record, or a whole event, that could not be read.
    Record,
}

/// Bytes, as text where they are text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// They are UTF-8.
    Text(String),
    /// They are not.
    Base64(String),
}

impl Body {
    /// These bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// When it is not base64.
    pub fn bytes(&self) -> Result<Bytes, LetterError> {
        match self {
            Self::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            Self::Base64(text) => STANDARD
                .decode(text)
                .map(Bytes::from)
                .map_err(|error| LetterError::Unreadable(format!("not base64: {error}"))),
        }
    }
}

/// Where it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceName {
    /// What delivered it.
    pub kind: String,
    /// The full ARN.
    pub arn: String,
    /// The shard; empty when there is none.
    pub shard: String,
}

impl From<&Scope> for SourceName {
    fn from(scope: &Scope) -> Self {
        let (arn, shard) = (scope.arn.clone(), scope.shard.clone());
        Self { kind: scope.kind.name().to_owned(), arn, shard }
    }
}

impl SourceName {
    /// What delivered it, if this version knows it.
    #[must_use]
    pub fn source_kind(&self) -> Option<SourceKind> {
        use SourceKind::{DynamoDb, Kinesis, Log, Queue, Sqs, SqsFifo};
        [Kinesis, DynamoDb, Sqs, SqsFifo, Queue, Log]
            .into_iter()
            .find(|kind| kind.name() == self.kind)
    }
}

/// How a task fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHistory {
    /// How far it came.
    pub status: Status,
    /// How often it failed.
    pub attempts: u32,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Steps that were done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

impl From<&TaskState> for TaskHistory {
    fn from(task: &TaskState) -> Self {
        Self {
            status: task.status,
            attempts: task.attempts,
            error: task.error.clone(),
            steps: task.steps.iter().cloned().collect(),
        }
    }
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub(crate) millpond: String,
    pub(crate) version: u32,
    /// What died.
    pub kind: Kind,
    /// Why.
    pub reason: Reason,
    /// Why, in words.
    pub detail: String,
    /// The consumer.
    pub consumer: String,
    /// The same for the same message or record, however often it is sent.
    pub dedupe_id: String,
    /// Where it is from, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// Its sequence number or message id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// What else names its record, in a table's stream: 16 hexadecimal digits.
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
    pub died_ms: u64,
    /// How its tasks fared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<String, TaskHistory>,
    /// The message's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Body>,
    /// The record as it came. Of an aggregate, only this user record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Body>,
    /// Where the whole letter is, when it was too large for its sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spilled: Option<Spilled>,
}

/// Why bytes are not a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LetterError {
    /// They are something else.
    #[error("this is not a dead letter: {0}")]
    Unreadable(String),
    /// A newer version wrote it. Use that version.
    #[error("the letter has version {0}, this reads up to {VERSION}")]
    Version(u32),
}

impl DeadLetter {
    pub(crate) fn new(kind: Kind, reason: Reason, detail: String, dedupe_id: String) -> Self {
        Self {
            millpond: MARK.into(),
            version: VERSION,
            kind,
            reason,
            detail,
            consumer: String::new(),
            dedupe_id,
            source: None,
            record: None,
            tie: None,
            sub: 0,
            part: 0,
            id: None,
            key: None,
            partition_key: None,
            arrived_ms: None,
            died_ms: 0,
            tasks: BTreeMap::new(),
            message: None,
            raw: None,
            spilled: None,
        }
    }

    /// Whether it is about the end of a tumbling window: what is in it is what was gathered, and no message.
    #[must_use]
    pub fn is_window(&self) -> bool {
        self.kind == Kind::Record && self.tasks.contains_key(WINDOW_END)
    }

    /// Where the message stood, when that is known.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let text = self.record.as_deref()?;
        let stream = self.source.as_ref()?.source_kind()?.is_stream();
        let record = match Sequence::new(text) {
            Some(sequence) if stream => {
                let tie = match &self.tie {
                    Some(tie) => Some(u64::from_str_radix(tie, 16).ok()?.to_be_bytes()),
                    None => None,
                };
                RecordKey::Sequence(sequence, tie)
            }
            _ => RecordKey::Id(text.into()),
        };
        Some(Position { record, sub: self.sub, part: self.part })
    }

    /// The same letter about what is named so.
    pub(crate) fn about(self, key: &RecordKey) -> Self {
        let tie = match key {
            RecordKey::Sequence(_, Some(tie)) => Some(format!("{:016x}", u64::from_be_bytes(*tie))),
            _ => None,
        };
        Self { record: Some(Position::of(key.clone()).to_string()), tie, ..self }
    }

    /// The letter as bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        serde_json::to_vec(self).expect("text and numbers under text keys are always JSON").into()
    }

    /// Reads a letter.
    ///
    /// # Errors
    /// When it is something else, or of a version to come.
    pub fn decode(bytes: &[u8]) -> Result<Self, LetterError> {
        #[derive(Deserialize)]
        struct Head {
            millpond: String,
            version: u32,
        }
        let unreadable = |error: serde_json::Error| LetterError::Unreadable(error.to_string());
        let head: Head = serde_json::from_slice(bytes).map_err(unreadable)?;
        if head.millpond != MARK {
            return Err(LetterError::Unreadable(format!("it says {:?}", head.millpond)));
        }
        if head.version != VERSION {
            return Err(LetterError::Version(head.version));
        }
        serde_json::from_slice(bytes).map_err(unreadable)
    }

    /// The bytes that died: the message's, or the record's when there is no message.
    ///
    /// # Errors
    /// When the letter was spilled and not fetched, or is damaged.
    pub fn payload(&self) -> Result<Bytes, LetterError> {
        let body = self.message.as_ref().or(self.raw.as_ref());
        body.ok_or_else(|| {
            LetterError::Unreadable("its bytes were spilled; fetch it first".into())
        })?
        .bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_back_byte_identical() {
        for payload in [&b"{\"a\": 1}"[..], b"", &[0, 159, 146, 150], "é\u{0}\"".as_bytes()] {
            let mut letter =
                DeadLetter::new(Kind::Message, Reason::Rejected, "no".into(), "id".into());
            letter.message = Some(Body::of(payload));
            let back = DeadLetter::decode(&letter.encode()).unwrap();
            assert_eq!(back, letter);
            assert_eq!(back.payload().unwrap(), payload);
        }
    }

    #[test]
    fn strange_letters_are_refused() {
        let letter = DeadLetter::new(Kind::Record, Reason::Unusable, "no".into(), "id".into());
        let newer = String::from_utf8(letter.encode().to_vec()).unwrap();
        let newer = newer.replace("\"version\":1", "\"version\":2");
        let error = DeadLetter::decode(newer.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "the letter has version 2, this reads up to 1");
        assert!(DeadLetter::decode(b"{\"millpond\":\"x\",\"version\":1}").is_err());
        assert!(DeadLetter::decode(b"hello").is_err());
        assert!(letter.payload().unwrap_err().to_string().contains("fetch it first"));
    }
}
