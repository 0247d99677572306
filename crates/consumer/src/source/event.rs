//! An event: what a Lambda function is invoked with.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::{Record, Scope, SourceKind, Unusable};
use super::window::{Around, Window};
use super::{dynamodb, kinesis, sqs};
use crate::limits::{ARN_BYTES_MAX, EVENT_BYTES_MAX, EVENT_RECORDS_MAX, SHARD_BYTES_MAX};

/// Why an event is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is not JSON, or not an object with a list of records. It goes to the dead records as a whole.
    #[error("the event is not a list of records: {0}")]
    NotAnEvent(String),
    /// It is over a limit. It goes to the dead records as a whole.
    #[error("the event has {size} {unit}, at most {limit} are accepted")]
    TooLarge {
        /// How large it is.
        size: usize,
        /// What is counted.
        unit: &'static str,
        /// The most that is accepted.
        limit: usize,
    },
}

/// The records of an event, each usable or not.
#[derive(Debug, Default)]
pub struct Event {
    /// The records, in order.
    pub records: Vec<Result<Record, Box<Unusable>>>,
    /// The tumbling window that they are of, whose state the response must hand on.
    pub window: Option<Window>,
    /// Of what is in the records, only this is run.
    pub(crate) only: Option<Only>,
}

/// One message of a record that was taken apart before: its data is the user record's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Only {
    /// Its place in its aggregate.
    pub sub: u32,
    /// Its place among what the extractor finds; all of that when it is not known.
    pub part: Option<u32>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "Records", borrow)]
    records: Vec<&'a RawValue>,
}

/// What an event of a tumbling window has.
const WINDOW: &[u8] = b"\"window\"";

/// What all records have, whatever their source.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "eventSource", alias = "EventSource")]
    source: Option<String>,
}

impl Event {
    /// Reads an event.
    ///
    /// # Errors
    /// When it is not a list of records at all. A record that is malformed is no error of the event.
    pub fn parse(bytes: &[u8]) -> Result<Self, EventError> {
        let too_large = |size, unit, limit| EventError::TooLarge { size, unit, limit };
        if bytes.len() > EVENT_BYTES_MAX {
            return Err(too_large(bytes.len(), "bytes", EVENT_BYTES_MAX));
        }
        let envelope: Envelope<'_> = serde_json::from_slice(bytes)
            .map_err(|error| EventError::NotAnEvent(error.to_string()))?;
        if envelope.records.len() > EVENT_RECORDS_MAX {
            return Err(too_large(envelope.records.len(), "records", EVENT_RECORDS_MAX));
        }
        let mut scopes = Scopes::default();
        let records = envelope.records.into_iter().map(|raw| scopes.read(raw)).collect();
        Ok(Self { records, window: Self::window_of(bytes), only: None })
    }

    /// The window of an event, also when the rest of it cannot be read.
    pub(crate) fn window_of(bytes: &[u8]) -> Option<Window> {
        // Most events are of none; those are not read twice.
        let named = bytes.windows(WINDOW.len()).any(|part| part == WINDOW);
        named.then(|| serde_json::from_slice::<Around<'_>>(bytes).ok()?.window())?
    }
}

/// How a source reads the text of one record. What it finds out before it fails, it puts down.
type Parse = fn(&mut Scopes, &str, &Bytes, &mut Unusable) -> Result<Record, String>;

/// The scopes of a batch: thousands of records share one.
#[derive(Debug, Default)]
pub(super) struct Scopes(BTreeMap<Scope, Arc<Scope>>);

impl Scopes {
    fn read(&mut self, raw: &RawValue) -> Result<Record, Box<Unusable>> {
        let bytes = Bytes::copy_from_slice(raw.get().as_bytes());
        let unusable = |reason: String| Box::new(Unusable::new(bytes.clone(), reason));
        let head: Head = serde_json::from_str(raw.get())
            .map_err(|error| unusable(format!("the record is not an object: {error}")))?;
        match head.source.as_deref() {
            Some("aws:kinesis") => self.read_by(kinesis::parse, raw.get(), &bytes),
            Some("aws:dynamodb") => self.read_by(dynamodb::parse, raw.get(), &bytes),
            Some("aws:sqs") => self.read_by(sqs::parse, raw.get(), &bytes),
            Some(other) => {
                let other: String = other.chars().take(64).collect();
                Err(unusable(format!("the source {other:?} is none that can be consumed")))
            }
            None => Err(unusable("the record has no eventSource".into())),
        }
    }

    /// Reads one record, or says what is wrong with it and what is known of it all the same.
    fn read_by(&mut self, parse: Parse, text: &str, raw: &Bytes) -> Result<Record, Box<Unusable>> {
        let mut known = Unusable::new(raw.clone(), String::new());
        match parse(self, text, raw, &mut known) {
            Ok(record) => Ok(record),
            Err(reason) => Err(Box::new(Unusable { reason, ..known })),
        }
    }

    /// The scope with these parts, or what is wrong with them.
    pub(super) fn of(
        &mut self,
        kind: SourceKind,
        arn: Option<String>,
        shard: &str,
    ) -> Result<Arc<Scope>, String> {
        let arn = match arn {
            Some(arn) if arn.starts_with("arn:") && arn.len() <= ARN_BYTES_MAX => arn,
            Some(arn) if arn.len() > ARN_BYTES_MAX => {
                return Err(format!("the eventSourceARN has over {ARN_BYTES_MAX} bytes"));
            }
            Some(_) => return Err("the eventSourceARN is not an ARN".into()),
            None => return Err("the record has no eventSourceARN".into()),
        };
        if shard.len() > SHARD_BYTES_MAX {
            return Err(format!("the shard's id has over {SHARD_BYTES_MAX} bytes"));
        }
        // It would not be told from what follows it in the key of the state.
        if shard.contains('/') {
            return Err("the shard's id has a slash".into());
        }
        let scope = Scope { kind, arn, shard: shard.to_owned() };
        if let Some(known) = self.0.get(&scope) {
            return Ok(Arc::clone(known));
        }
        let shared = Arc::new(scope.clone());
        self.0.insert(scope, Arc::clone(&shared));
        Ok(shared)
    }
}
