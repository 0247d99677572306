//! Working in a group over HTTP: join, poll, checkpoint, leave.
//!
//! What a worker holds is in the store; what it has read and when it was last heard of is in this process, and goes when
//! it is silent for a lease. A worker stays with the server that it joined at.

use std::time::Duration;

use http::{Method, StatusCode};
use millpond_log::{
    Assignment, Batch, ConsumerOptions, GroupConfig, LogError, Poison, Pull, Pulled, Puller,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::limits::{LISTED_DEFAULT, LISTED_MAX};
use super::super::members;
use super::super::queue::{Done, check_wait};
use super::super::route::Route;
use super::failed;
use super::groups::StartName;
use super::records::{RecordOutput, RemovedOffsets};

/// The routes of workers.
pub fn routes() -> Vec<Route> {
    let post = Method::POST;
    vec![
        Route::new(
            post.clone(),
            "/v1/topics/{topic}/groups/{group}/join",
            "join_group",
            "Joins a group as a worker, and makes the group if it is not there.",
            join,
        ),
        Route::new(
            post.clone(),
            "/v1/topics/{topic}/groups/{group}/poll",
            "poll_group",
            "The next records of the partitions that a worker holds; each poll is a sign of life.",
            poll,
        ),
        Route::new(
            post.clone(),
            "/v1/topics/{topic}/groups/{group}/checkpoint",
            "checkpoint_group",
            "Says how far a worker has come in a partition; refused when another has the partition.",
            checkpoint,
        ),
        Route::new(
            post,
            "/v1/topics/{topic}/groups/{group}/leave",
            "leave_group",
            "Gives up what a worker holds, so that others need not wait for its lease to end.",
            leave,
        ),
    ]
}

/// Who joins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinInput {
    topic: String,
    group: String,
    /// What the worker's id begins with, for people. Default: nothing.
    worker: Option<String>,
    /// How long the worker may be silent before others take its partitions, 1,000 to 3,600,000. All workers of a group
    /// should agree on it. Default: 30,000.
    lease_ms: Option<u64>,
    /// Where the group begins, if it is not there yet. Default: earliest.
    #[serde(default)]
    start: StartName,
}

/// A worker that joined.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Joined {
    /// The worker's id, which it says in all that it asks.
    pub worker: String,
    /// How long it may be silent.
    pub lease_ms: u64,
    /// What it holds.
    pub held: Vec<HeldPartition>,
    /// Partitions that other workers hold.
    pub others: Vec<u32>,
}

/// The right to read a partition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeldPartition {
    /// The partition.
    pub partition: u32,
    /// The fencing token: whoever holds the partition later has a greater one.
    pub token: u64,
}

impl From<Assignment> for HeldPartition {
    fn from(assignment: Assignment) -> Self {
        Self { partition: assignment.partition, token: assignment.epoch }
    }
}

fn held(pulled: &Pulled) -> Vec<HeldPartition> {
    pulled.held.iter().copied().map(Into::into).collect()
}

/// Joins a group.
pub async fn join(api: Api, input: JoinInput) -> Result<Joined, ApiError> {
    let error = |error| failed(&api, &input.topic, error);
    let usual = ConsumerOptions::default();
    let options = ConsumerOptions {
        lease: input.lease_ms.map_or(usual.lease, Duration::from_millis),
        group: GroupConfig { start: input.start.into(), poison: Poison::Block },
        name: input.worker,
    };
    // Who is gone makes room.
    members::leave(api.members().take_silent()).await;
    api.members().check_room()?;
    let topic = api.handles().topic(&input.topic).await?;
    let consumer = Box::pin(topic.consumer(&input.group, options)).await.map_err(error)?;
    let puller = api.members().keep(&input.topic, &input.group, Puller::new(consumer))?;
    let pulled = Box::pin(puller.pull(Pull::default())).await.map_err(error)?;
    Ok(Joined {
        worker: puller.worker().to_string(),
        lease_ms: u64::try_from(puller.lease().as_millis()).unwrap_or(u64::MAX),
        held: held(&pulled),
        others: pulled.others,
    })
}

/// Who asks, and for how much.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollInput {
    topic: String,
    group: String,
    /// The worker's id.
    worker: String,
    /// Most records, up to 10,000; 0 is a sign of life and nothing else. Default: 100.
    max: Option<usize>,
    /// The `poll` of the last answer that arrived: records behind those come. Without it, or when another answer was
    /// given since, everything behind the checkpoints comes again, so that nothing is lost with an answer.
    after: Option<u64>,
    /// How long to wait when there is nothing, up to 60,000. Default: not at all.
    #[serde(default)]
    wait_ms: u64,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Polled {
    /// The number of this answer, for `after`.
    pub poll: u64,
    /// Records, of one partition each.
    pub batches: Vec<PolledBatch>,
    /// What the worker holds.
    pub held: Vec<HeldPartition>,
    /// Of that, what it should finish: nothing new comes from there, and once all of it is checkpointed, or a lease
    /// later, another worker gets it.
    pub leaving: Vec<u32>,
    /// Partitions that other workers hold.
    pub others: Vec<u32>,
}

/// Records of a partition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolledBatch {
    /// The partition.
    pub partition: u32,
    /// The fencing token, for the checkpoint, and for what the worker does elsewhere.
    pub token: u64,
    /// The records, by rising offset.
    pub records: Vec<RecordOutput>,
    /// Before them, what retention has removed before it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<RemovedOffsets>,
    /// What to checkpoint once all of them are done.
    pub next: u64,
    /// Whether there was more at the time.
    pub more: bool,
}

impl From<(Assignment, Batch)> for PolledBatch {
    fn from((assignment, batch): (Assignment, Batch)) -> Self {
        Self {
            partition: assignment.partition,
            token: assignment.epoch,
            records: batch.records.into_iter().map(Into::into).collect(),
            gap: batch.gap.map(|gap| RemovedOffsets { from: gap.from, to: gap.to }),
            next: batch.next,
            more: batch.more,
        }
    }
}

/// The next records of a worker.
pub async fn poll(api: Api, input: PollInput) -> Result<Polled, ApiError> {
    let max = input.max.unwrap_or(LISTED_DEFAULT);
    if max > LISTED_MAX {
        return Err(ApiError::invalid("max", format!("is {max}: up to {LISTED_MAX}")));
    }
    let pull = Pull { max, after: input.after, wait: check_wait(input.wait_ms)? };
    let puller = api.members().find(&input.topic, &input.group, &input.worker)?;
    let mut pulling = Box::pin(puller.pull(pull));
    let pulled = tokio::select! {
        biased;
        pulled = &mut pulling => pulled,
        () = api.until_closed() => {
            puller.interrupt();
            pulling.await
        }
    };
    let pulled = pulled.map_err(|error| {
        if matches!(error, LogError::UnknownTopic { .. } | LogError::UnknownGroup { .. }) {
            api.members().remove(&input.topic, &input.group, &input.worker);
        }
        failed(&api, &input.topic, error)
    })?;
    let (poll, held) = (pulled.answer, held(&pulled));
    let batches = pulled.batches.into_iter().map(Into::into).collect();
    Ok(Polled { poll, batches, held, leaving: pulled.leaving, others: pulled.others })
}

/// How far a worker has come.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointInput {
    topic: String,
    group: String,
    /// The worker's id.
    worker: String,
    /// The partition.
    partition: u32,
    /// The token that came with the records.
    token: u64,
    /// The first offset that is not done.
    next: u64,
}

/// Says how far a worker has come.
pub async fn checkpoint(api: Api, input: CheckpointInput) -> Result<Done, ApiError> {
    let puller = api.members().find(&input.topic, &input.group, &input.worker)?;
    let assignment = Assignment { partition: input.partition, epoch: input.token };
    let done = Box::pin(puller.checkpoint(assignment, input.next)).await;
    match done {
        Ok(()) => Ok(Done {}),
        Err(LogError::LeaseLost { partition, epoch }) => {
            let message = format!(
                "token {epoch} of partition {partition} is stale: the partition was given to another worker, or \
                 anew; drop what was not checkpointed, it comes again to whoever has it now"
            );
            Err(ApiError::new(StatusCode::CONFLICT, "lease_lost", message).field("token"))
        }
        Err(error) => Err(failed(&api, &input.topic, error)),
    }
}

/// Who leaves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaveInput {
    topic: String,
    group: String,
    /// The worker's id.
    worker: String,
}

/// Leaves a group. Who has left already may do so again.
pub async fn leave(api: Api, input: LeaveInput) -> Result<Done, ApiError> {
    if let Some(puller) = api.members().remove(&input.topic, &input.group, &input.worker) {
        let left = Box::pin(puller.leave()).await;
        left.map_err(|error| failed(&api, &input.topic, error))?;
    }
    Ok(Done {})
}
