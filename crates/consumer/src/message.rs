//! A message as a handler gets it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use millpond_store::{Clock, Monotonic, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::identity::{Rank, digest};
use crate::limits::{STEPS_MAX, TASK_BYTES_MAX};
use crate::outcome::Outcome;
use crate::position::{Position, Sequence};
use crate::source::Scope;

/// All that is known of a message but its state.
#[derive(Debug)]
pub(crate) struct Content {
    pub consumer: Arc<str>,
    pub scope: Arc<Scope>,
    pub position: Position,
    pub sequence: Option<Sequence>,
    /// The place of its record in the event.
    pub index: usize,
    pub item: String,
    pub id: Option<String>,
    pub key: Option<String>,
    pub partition_key: Option<String>,
    pub ranks: Vec<Rank>,
    pub payload: Bytes,
    pub value: Option<Value>,
    pub raw: RawRecord,
    pub arrived: Option<Timestamp>,
    pub receives: Option<u32>,
}

/// A record as it came.
#[derive(Debug, Clone)]
pub(crate) enum RawRecord {
    Whole(Bytes),
    /// A user record of an aggregate: its record without data, shared by all, and its own data.
    User(Arc<Value>, Bytes),
}

impl RawRecord {
    /// The record's bytes. Of an aggregate, a record that carries this user record alone.
    pub fn bytes(&self, partition_key: Option<&str>) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.clone(),
            Self::User(template, data) => {
                let mut record = Value::clone(template);
                if let Some(kinesis) = record.get_mut("kinesis").and_then(Value::as_object_mut) {
                    kinesis.insert("data".into(), STANDARD.encode(data).into());
                    if let Some(key) = partition_key {
                        kinesis.insert("partitionKey".into(), key.into());
                    }
                }
                record.to_string().into()
            }
        }
    }
}

impl Content {
    /// The order within a chain: by the message's own sequence properties, then as the source has it.
    pub fn order(&self, other: &Self) -> Ordering {
        self.ranks
            .cmp(&other.ranks)
            .then_with(|| self.sequence.cmp(&other.sequence))
            .then_with(|| self.index.cmp(&other.index))
            .then_with(|| self.position.sub.cmp(&other.position.sub))
            .then_with(|| self.position.part.cmp(&other.position.part))
    }

    /// The same for the same message, however often it is delivered.
    pub fn dedupe_id(&self) -> String {
        dedupe_id(&self.consumer, &self.scope, &self.position)
    }
}

/// Names what stands somewhere, for one consumer: the SHA-256 of consumer, ARN, shard and the key of the state's row.
pub(crate) fn dedupe_id(consumer: &str, scope: &Scope, position: &Position) -> String {
    let mut named = Vec::new();
    for part in [consumer, &scope.arn, &scope.shard] {
        named.extend_from_slice(part.as_bytes());
        named.push(0);
    }
    match position.sort_key() {
        Ok(sort) => named.extend_from_slice(sort.as_bytes()),
        Err(_) => named.extend_from_slice(position.to_string().as_bytes()),
    }
    digest(&named)
}

/// A message, for one call of a handler. Cheap to clone.
#[derive(Clone)]
pub struct Message {
    content: Arc<Content>,
    attempt: Arc<Attempt>,
}

impl Message {
    pub(crate) const fn new(content: Arc<Content>, attempt: Arc<Attempt>) -> Self {
        Self { content, attempt }
    }

    /// Its bytes. For a DynamoDB stream: its images and keys as plain JSON.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.content.payload
    }

    /// What its bytes say, when the extractor read them.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.content.value.as_ref()
    }

    /// Its bytes, read as a type of your own.
    ///
    /// # Errors
    /// When they are not JSON of that type. Return [`Outcome::reject`] then: it will not get better.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.content.payload)
    }

    /// Where it is from.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.content.scope
    }

    /// Where it stands there.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.content.position
    }

    /// Its id, by the consumer's settings.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.content.id.as_deref()
    }

    /// Its business key, by the consumer's settings: a JSON list of the key properties' values.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.content.key.as_deref()
    }

    /// The source's own key: partition key, message group, or a table's keys as JSON.
    #[must_use]
    pub fn partition_key(&self) -> Option<&str> {
        self.content.partition_key.as_deref()
    }

    /// When it came to its source.
    #[must_use]
    pub fn arrived(&self) -> Option<Timestamp> {
        self.content.arrived
    }

    /// The SHA-256 of its bytes, hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.content.payload)
    }

    /// The same for every attempt of this task at this message, and for no other: give it to services that know what
    /// they have done already.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}", self.content.dedupe_id(), self.attempt.task)
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt.number
    }

    /// How long the handler may still take before it is cut off.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.attempt.time.remaining()
    }

    /// Does a step of the work, unless an earlier attempt has done it.
    ///
    /// Its end is saved with the task's; before that, when the task still runs at the next save of steps
    /// ([`STEPS_SAVED_EVERY`](crate::limits::STEPS_SAVED_EVERY)); and at once after a kill, when messages run one by one. A kill
    /// repeats what was not saved by then.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn step<E>(
        &self,
        name: &str,
        work: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        if self.attempt.cell().steps.contains(name) {
            return Ok(());
        }
        work.await?;
        let kept = self.attempt.keep(name);
        if !kept {
            tracing::warn!(
                step = name,
                "a step is not remembered: too many, or its name is too long"
            );
        }
        if let Some(saves) = self.attempt.saves.as_ref().filter(|_| kept) {
            let (saved, done) = oneshot::channel();
            // Nobody there to save it: the batch is over, and so is this call.
            if saves.send(saved).await.is_ok() {
                let _ = done.await;
            }
        }
        Ok(())
    }

    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.content.order(&other.content)
    }

    /// Says what became of this message at once. It holds whatever the handler returns, or whether it returns at all.
    pub fn settle(&self, outcome: Outcome) {
        self.attempt.cell().settled = Some(outcome);
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Content { scope, position, payload, .. } = &*self.content;
        f.debug_struct("Message")
            .field("source", &scope.arn)
            .field("position", position)
            .field("bytes", &payload.len())
            .field("attempt", &self.attempt.number)
            .finish_non_exhaustive()
    }
}

/// When handlers are cut off.
#[derive(Debug, Clone)]
pub(crate) struct Time {
    pub clock: Arc<dyn Clock>,
    pub start: Monotonic,
    pub cut: Duration,
}

impl Time {
    fn remaining(&self) -> Duration {
        self.cut.saturating_sub(self.clock.monotonic().since(self.start))
    }
}

/// One attempt of a task at a message: what the handler says of it while it runs.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub task: Arc<str>,
    number: u32,
    time: Time,
    saves: Option<Saves>,
    cell: Mutex<Cell>,
}

/// Asks that the steps of a call be saved now; answered when they are.
pub(crate) type Saves = mpsc::Sender<oneshot::Sender<()>>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub settled: Option<Outcome>,
    pub steps: BTreeSet<String>,
}

impl Attempt {
    pub fn new(task: &Arc<str>, number: u32, time: &Time, steps: BTreeSet<String>) -> Arc<Self> {
        Arc::new(Self::of(task, number, time, steps, None))
    }

    /// The same for a call whose steps are saved as they end.
    pub fn saving(
        task: &Arc<str>,
        number: u32,
        time: &Time,
        steps: BTreeSet<String>,
        saves: Option<Saves>,
    ) -> Arc<Self> {
        Arc::new(Self::of(task, number, time, steps, saves))
    }

    fn of(
        task: &Arc<str>,
        number: u32,
        time: &Time,
        steps: BTreeSet<String>,
        saves: Option<Saves>,
    ) -> Self {
        let cell = Mutex::new(Cell { settled: None, steps });
        Self { task: Arc::clone(task), number, time: time.clone(), saves, cell }
    }

    /// Remembers that a step is done; `false` when it has no room for it.
    fn keep(&self, step: &str) -> bool {
        let mut cell = self.cell();
        let fits = cell.steps.len() < STEPS_MAX && step.len() <= TASK_BYTES_MAX;
        if fits {
            cell.steps.insert(step.to_owned());
        }
        fits
    }

    fn cell(&self) -> std::sync::MutexGuard<'_, Cell> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said up to now; what is said later is not heard.
    pub fn heard(&self) -> Cell {
        self.cell().clone()
    }
}
