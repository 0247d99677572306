//! Reads the state that `aws-stream-consumer-core` kept, with `kinesis-stream-consumer` and `dynamodb-stream-consumer`, so
//! that a running consumer can move over without repeating its work.
//!
//! Those libraries keep one item for each batch in a table whose key is `streamConsumerId` (`K|STREAM|CONSUMER` or
//! `D|…`) and `shardOrEventID` (`S|SHARD` or `E|EVENT`), with lists `messageStates`, `rejectedMessageStates` and
//! `unusableRecordStates`. Each entry names its record (`eventID`, `eventSeqNo`, `eventSubSeqNo`) and its tasks (`ones`,
//! `alls`, `discards`), each with `state.type`, `attempts` and sub-tasks. Give this module the item as JSON, plain or in
//! DynamoDB's typed form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::message::{MessageState, Status, TaskState};
use super::{Address, Change, State, StateError, Stored};
use crate::limits::{ATTEMPTS_MAX, SHARD_BYTES_MAX, STEPS_MAX, TASK_BYTES_MAX, TASKS_MAX};
use crate::outcome::cut;
use crate::position::{Position, RecordKey, Sequence};
use crate::sink::Reason;
use crate::source::{Scope, SourceKind};

/// Why an item is not one of those libraries'.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LegacyError {
    /// It is not JSON.
    #[error("the item is not JSON: {0}")]
    NotJson(String),
    /// A part of it is missing or of another type.
    #[error("the item has no usable {0}")]
    Missing(&'static str),
}

/// The state of a batch, as those libraries kept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyBatch {
    /// Kinesis or DynamoDB Streams.
    pub kind: SourceKind,
    /// The stream's name, without account or region.
    pub stream: String,
    /// The consumer, as the old function called it.
    pub consumer: String,
    /// The messages that can be told by their sequence numbers.
    pub messages: Vec<LegacyMessage>,
    /// How many cannot, and will run again.
    pub unnamed: usize,
}

/// The state of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyMessage {
    /// The shard; empty for DynamoDB.
    pub shard: String,
    /// Which message.
    pub position: Position,
    /// What is known of it.
    pub state: MessageState,
}

impl LegacyBatch {
    /// Reads an item.
    ///
    /// # Errors
    /// When it is not one of those libraries'. Single messages without a sequence number are counted instead.
    pub fn parse(item: &[u8]) -> Result<Self, LegacyError> {
        let item: Value = serde_json::from_slice(item)
            .map_err(|error| LegacyError::NotJson(error.to_string()))?;
        let item = untyped(item);
        let id = item.get("streamConsumerId").and_then(Value::as_str);
        let mut parts = id.ok_or(LegacyError::Missing("streamConsumerId"))?.splitn(3, '|');
        let kind = match parts.next() {
            Some("K") => SourceKind::Kinesis,
            Some("D") => SourceKind::DynamoDb,
            _ => return Err(LegacyError::Missing("streamConsumerId")),
        };
        let mut next = || parts.next().map(str::to_owned);
        let stream = next().ok_or(LegacyError::Missing("streamConsumerId"))?;
        let consumer = next().ok_or(LegacyError::Missing("streamConsumerId"))?;
        let mut batch = Self { kind, stream, consumer, messages: Vec::new(), unnamed: 0 };
        let mut found = BTreeMap::new();
        for (list, dead) in [
            ("messageStates", None),
            ("rejectedMessageStates", Some(Reason::Rejected)),
            ("unusableRecordStates", Some(Reason::Unusable)),
        ] {
            for entry in item.get(list).and_then(Value::as_array).into_iter().flatten() {
                match message(kind, entry, dead) {
                    Some(message) => add(&mut found, message),
                    None => batch.unnamed += 1,
                }
            }
        }
        let message = |((shard, position), state)| LegacyMessage { shard, position, state };
        batch.messages = found.into_iter().map(message).collect();
        Ok(batch)
    }

    /// Writes the state of all messages for a consumer of the stream with this ARN. State that is there already is not
    /// undone, and what it counts is not counted again. Returns how many were written.
    ///
    /// # Errors
    /// When something could not be written: import again.
    pub async fn import(
        &self,
        state: &dyn State,
        consumer: &str,
        arn: &str,
    ) -> Result<usize, StateError> {
        let mut shards: BTreeMap<&str, Vec<&LegacyMessage>> = BTreeMap::new();
        for message in &self.messages {
            shards.entry(&message.shard).or_default().push(message);
        }
        let mut written = 0;
        for (shard, messages) in shards {
            let scope = Scope { kind: self.kind, arn: arn.to_owned(), shard: shard.to_owned() };
            let address = Address { consumer: consumer.into(), scope: Arc::new(scope) };
            let positions: Vec<_> = messages.iter().map(|one| one.position.clone()).collect();
            let known = state.load(&address, &positions).await?;
            let changes =
                messages.into_iter().zip(known).filter_map(|(one, known)| one.onto(known));
            for saved in state.save(&address, changes.collect()).await {
                saved?;
                written += 1;
            }
        }
        Ok(written)
    }
}

impl LegacyMessage {
    /// What is to be written over what is known already; nothing when that says all of it.
    fn onto(&self, known: Option<Stored>) -> Option<Change> {
        let (position, state) = (self.position.clone(), &self.state);
        let Some(known) = known else {
            return Some(Change { position, base: None, now: state.clone() });
        };
        // Started from what is known, so that only attempts beyond those add to it.
        let (running, lost) = (known.state.running.clone(), known.state.lost);
        let merged = MessageState::merge(&known.state, &known.state, state);
        let now = MessageState { running, lost, ..merged };
        (now != known.state).then_some(Change { position, base: Some(known), now })
    }
}

/// A message may be in several lists, or twice in one: what is done in any of them is done.
fn add(found: &mut BTreeMap<(String, Position), MessageState>, message: LegacyMessage) {
    let LegacyMessage { shard, position, state } = message;
    let known = found.entry((shard, position)).or_default();
    *known = MessageState::merge(known, &MessageState::default(), &state);
}

fn message(kind: SourceKind, entry: &Value, dead: Option<Reason>) -> Option<LegacyMessage> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let event = text("eventID")?;
    let (shard, number) = match kind {
        SourceKind::Kinesis => {
            let (shard, number) = event.split_once(':')?;
            // No record that comes has such a shard.
            if shard.contains('/') || shard.len() > SHARD_BYTES_MAX {
                return None;
            }
            (shard, text("eventSeqNo").unwrap_or(number))
        }
        _ => ("", text("eventSeqNo")?),
    };
    let tie = match kind {
        SourceKind::Kinesis => None,
        _ => Sha256::digest(event.as_bytes()).first_chunk::<8>().copied(),
    };
    let sub = match entry.get("eventSubSeqNo") {
        None | Some(Value::Null) => 0,
        Some(Value::String(text)) => text.parse().ok()?,
        Some(other) => u32::try_from(other.as_u64()?).ok()?,
    };
    let record = RecordKey::Sequence(Sequence::new(number)?, tie);
    let tasks = |map: &str| entry.get(map).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut state = MessageState::default();
    for (name, task) in tasks("ones").into_iter().chain(tasks("alls")).take(TASKS_MAX) {
        if name.len() <= TASK_BYTES_MAX {
            state.tasks.insert(name, task_state(&task));
        }
    }
    // It is with the dead letters when the old consumer got it there.
    let discarded = tasks("discards").values().any(|task| status(task) == Status::Done);
    if discarded {
        state.dead = dead.or(Some(Reason::Rejected));
    }
    let position = Position { record, sub, part: 0 };
    Some(LegacyMessage { shard: shard.to_owned(), position, state })
}

/// What the old libraries call a state, by what it means.
fn status(task: &Value) -> Status {
    let state = task.get("state");
    let text = |name| state.and_then(|state| state.get(name)).and_then(Value::as_str);
    match (text("type"), text("name")) {
        (Some("Completed" | "Succeeded"), _) => Status::Done,
        (Some("Rejected"), Some("Discarded")) | (Some("Discarded"), _) => Status::Exhausted,
        (Some("Rejected"), Some("Abandoned")) | (Some("Abandoned"), _) => Status::Abandoned,
        (Some("Rejected"), _) => Status::Rejected,
        // Unstarted, Started, Failed, TimedOut: not done.
        _ => Status::Pending,
    }
}

fn task_state(task: &Value) -> TaskState {
    let status = status(task);
    let attempts = task.get("attempts").and_then(Value::as_u64).unwrap_or(0);
    let attempts = u32::try_from(attempts).unwrap_or(ATTEMPTS_MAX).min(ATTEMPTS_MAX);
    let state = task.get("state");
    let text = |name| state.and_then(|state| state.get(name)).and_then(Value::as_str);
    let error = text("error").or_else(|| text("reason"));
    let subs = task.get("subTasks").and_then(Value::as_array).into_iter().flatten();
    let done = subs.filter(|sub| self::status(sub) == Status::Done);
    let names = done
        .filter_map(|sub| sub.get("name")?.as_str())
        .filter(|name| name.len() <= TASK_BYTES_MAX);
    let steps: BTreeSet<String> = names.map(str::to_owned).take(STEPS_MAX).collect();
    // Their attempts count the successful one too; ours are those in vain.
    let attempts = if status == Status::Done { attempts.saturating_sub(1) } else { attempts };
    TaskState { status, attempts, error: error.map(cut), steps, due_ms: None }
}

/// The same value without DynamoDB's types, if it has them.
fn untyped(value: Value) -> Value {
    let typed = |value: &Value| {
        let map = value.as_object().filter(|map| map.len() == 1)?;
        let kind = map.keys().next()?.as_str();
        matches!(kind, "S" | "N" | "BOOL" | "NULL" | "M" | "L").then_some(())
    };
    let Value::Object(map) = &value else { return value };
    let attributes = map.get("Item").and_then(Value::as_object).unwrap_or(map).clone();
    if attributes.values().all(|value| typed(value).is_some()) {
        return Value::Object(
            attributes.into_iter().map(|(name, value)| (name, plain(value))).collect(),
        );
    }
    Value::Object(attributes)
}

fn plain(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    let Some((kind, inner)) = map.into_iter().next() else { return Value::Null };
    match (kind.as_str(), inner) {
        ("M", Value::Object(map)) => {
            let inner: Map<_, _> =
                map.into_iter().map(|(name, value)| (name, plain(value))).collect();
            Value::Object(inner)
        }
        ("L", Value::Array(list)) => Value::Array(list.into_iter().map(plain).collect()),
        ("N", Value::String(text)) => text.parse::<i64>().map_or(Value::String(text), Value::from),
        ("NULL", _) => Value::Null,
        (_, inner) => inner,
    }
}
