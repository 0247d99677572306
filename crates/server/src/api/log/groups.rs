//! Consumer groups: how far they have come, and moving them.

use http::Method;
use millpond_log::{GroupConfig, GroupDescription, Poison, Start, Topic, TopicName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::queue::Done;
use super::super::route::Route;
use super::{failed, parse_place};

const GROUP: &str = "/v1/topics/{topic}/groups/{group}";

/// The routes of groups.
pub fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/v1/topics/{topic}/groups",
            "list_groups",
            "A topic's groups, each with how far it is behind.",
            list,
        ),
        Route::new(
            Method::PUT,
            GROUP,
            "create_group",
            "Makes a group; one that is there stays as it is.",
            create,
        ),
        Route::new(
            Method::GET,
            GROUP,
            "describe_group",
            "How far a group has come in each partition, and its workers.",
            describe,
        ),
        Route::new(
            Method::PATCH,
            GROUP,
            "configure_group",
            "Changes what a group does with records that cannot be handled.",
            configure,
        ),
        Route::new(Method::DELETE, GROUP, "delete_group", "Forgets a group.", delete),
        Route::new(
            Method::POST,
            "/v1/topics/{topic}/groups/{group}/reset",
            "reset_group",
            "Moves a group to a place, in one partition or in all.",
            reset,
        ),
        Route::new(
            Method::POST,
            "/v1/topics/{topic}/groups/{group}/skip-to-end",
            "skip_group_to_end",
            "Moves a group behind everything that is there.",
            skip_to_end,
        ),
    ]
}

/// Which topic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupsInput {
    topic: String,
}

/// A topic's groups.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Groups {
    /// The groups, by name.
    pub groups: Vec<GroupSummary>,
}

/// A group in a line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// Records that are not done, in all partitions.
    pub lag: u64,
    /// Workers that have neither left nor been found dead.
    pub workers: usize,
}

/// The groups of a topic.
pub async fn list(api: Api, input: GroupsInput) -> Result<Groups, ApiError> {
    let error = |error| failed(&api, &input.topic, error);
    let topic = api.handles().topic(&input.topic).await?;
    let mut groups = Vec::new();
    for name in topic.groups().await.map_err(error)? {
        let group = Box::pin(topic.describe_group(&name)).await.map_err(error)?;
        let lag = group.partitions.iter().map(|partition| partition.lag).sum();
        groups.push(GroupSummary { name, lag, workers: group.workers.len() });
    }
    Ok(Groups { groups })
}

/// Where a group begins.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GroupStart")]
pub enum StartName {
    /// With the first record that is still there.
    #[default]
    Earliest,
    /// Behind what is there when the group is made.
    Latest,
}

impl From<StartName> for Start {
    fn from(name: StartName) -> Self {
        match name {
            StartName::Earliest => Self::Earliest,
            StartName::Latest => Self::Latest,
        }
    }
}

/// A group to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInput {
    topic: String,
    group: String,
    /// Where it begins. Default: earliest.
    #[serde(default)]
    start: StartName,
    /// Attempts at a record before it goes to the dead letters. Default: it blocks until it works.
    attempts_max: Option<u32>,
    /// The topic for dead letters; without one, the worker brings a sink.
    dead_letter_topic: Option<String>,
}

fn poison(attempts: Option<u32>, topic: Option<&String>) -> Result<Poison, ApiError> {
    match (attempts, topic) {
        (None, None) => Ok(Poison::Block),
        (None, Some(_)) => {
            Err(ApiError::invalid("attempts_max", "is needed with dead_letter_topic"))
        }
        (Some(attempts), topic) => {
            let topic = topic.map(|topic| TopicName::new(topic)).transpose()?;
            Ok(Poison::DeadLetter { attempts, topic })
        }
    }
}

/// Makes a group.
pub async fn create(api: Api, input: CreateInput) -> Result<GroupOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let poison = poison(input.attempts_max, input.dead_letter_topic.as_ref())?;
    let config = GroupConfig { start: input.start.into(), poison };
    let made = Box::pin(topic.create_group(&input.group, &config)).await;
    made.map_err(|error| failed(&api, &input.topic, error))?;
    described(&api, &topic, &input.topic, &input.group).await
}

/// Which group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupInput {
    topic: String,
    group: String,
}

/// A group, and how far it has come.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Group")]
pub struct GroupOutput {
    /// Its name.
    pub name: String,
    /// Where it began.
    pub start: StartName,
    /// Attempts at a record before it goes to the dead letters; missing when it blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_max: Option<u32>,
    /// The topic for dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_topic: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// Records that are not done, in all partitions.
    pub lag: u64,
    /// Its place in each partition.
    pub partitions: Vec<GroupPartitionOutput>,
    /// Workers that have neither left nor been found dead.
    pub workers: Vec<WorkerOutput>,
}

/// A group's place in a partition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupPartitionOutput {
    /// The partition.
    pub partition: u32,
    /// The first offset that is not done.
    pub checkpoint: u64,
    /// The offset that the next record will have.
    pub latest: u64,
    /// Records that are not done.
    pub lag: u64,
    /// The worker that holds it, dead or alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The epoch of the lease.
    pub epoch: u64,
    /// Failed attempts at the record at the checkpoint.
    pub fails: u32,
}

/// A worker of a group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkerOutput {
    /// Its id.
    pub id: String,
    /// How often its heart has beaten.
    pub beats: u64,
}

impl From<GroupDescription> for GroupOutput {
    fn from(group: GroupDescription) -> Self {
        let (attempts_max, dead_letter_topic) = match group.config.poison {
            Poison::Block => (None, None),
            Poison::DeadLetter { attempts, topic } => {
                (Some(attempts), topic.map(|topic| topic.to_string()))
            }
        };
        let partition = |partition: millpond_log::GroupPartition| GroupPartitionOutput {
            partition: partition.partition,
            checkpoint: partition.checkpoint,
            latest: partition.latest,
            lag: partition.lag,
            owner: partition.owner,
            epoch: partition.epoch,
            fails: partition.fails,
        };
        let worker = |worker: millpond_log::WorkerDescription| WorkerOutput {
            id: worker.id,
            beats: worker.beats,
        };
        Self {
            name: group.name,
            start: match group.config.start {
                Start::Earliest => StartName::Earliest,
                Start::Latest => StartName::Latest,
            },
            attempts_max,
            dead_letter_topic,
            made_ms: group.made.as_millis(),
            lag: group.partitions.iter().map(|partition| partition.lag).sum(),
            partitions: group.partitions.into_iter().map(partition).collect(),
            workers: group.workers.into_iter().map(worker).collect(),
        }
    }
}

async fn described(
    api: &Api,
    topic: &Topic,
    name: &str,
    group: &str,
) -> Result<GroupOutput, ApiError> {
    let group = Box::pin(topic.describe_group(group)).await;
    Ok(group.map_err(|error| failed(api, name, error))?.into())
}

/// How far a group has come.
pub async fn describe(api: Api, input: GroupInput) -> Result<GroupOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    described(&api, &topic, &input.topic, &input.group).await
}

/// What to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureInput {
    topic: String,
    group: String,
    /// Attempts at a record before it goes to the dead letters. Not given: it blocks until it works.
    attempts_max: Option<u32>,
    /// The topic for dead letters.
    dead_letter_topic: Option<String>,
}

/// Changes what a group does with poison.
pub async fn configure(api: Api, input: ConfigureInput) -> Result<GroupOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let poison = poison(input.attempts_max, input.dead_letter_topic.as_ref())?;
    let set = Box::pin(topic.set_poison(&input.group, poison)).await;
    set.map_err(|error| failed(&api, &input.topic, error))?;
    described(&api, &topic, &input.topic, &input.group).await
}

/// Forgets a group.
pub async fn delete(api: Api, input: GroupInput) -> Result<Done, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let gone = Box::pin(topic.delete_group(&input.group)).await;
    gone.map_err(|error| failed(&api, &input.topic, error))?;
    api.members().forget(&input.topic, Some(&input.group));
    Ok(Done {})
}

/// Where to move a group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetInput {
    topic: String,
    group: String,
    /// The place: an offset, earliest, latest, or @ and milliseconds since 1970.
    to: String,
    /// The partition. Default: all of them.
    partition: Option<u32>,
}

/// Moves a group.
pub async fn reset(api: Api, input: ResetInput) -> Result<GroupOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let place = parse_place("to", &input.to)?;
    let moved = Box::pin(topic.reset(&input.group, input.partition, place)).await;
    moved.map_err(|error| failed(&api, &input.topic, error))?;
    described(&api, &topic, &input.topic, &input.group).await
}

/// Moves a group behind everything.
pub async fn skip_to_end(api: Api, input: GroupInput) -> Result<GroupOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let moved = Box::pin(topic.skip_to_end(&input.group)).await;
    moved.map_err(|error| failed(&api, &input.topic, error))?;
    described(&api, &topic, &input.topic, &input.group).await
}
