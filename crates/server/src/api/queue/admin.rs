//! Queues as a whole.

use std::collections::BTreeSet;

use millpond_queue::{Client, QueueConfig, Redrive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::Api;
use super::super::error::ApiError;
use super::super::limits::{LISTED_DEFAULT, LISTED_MAX};
use super::inspect::{ClientInput, Counts, check_max};
use super::schema::{queue_config, queue_patch};

/// Which queues.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListInput {
    /// How their names begin. Default: any way.
    #[serde(default)]
    prefix: String,
}

/// Names of queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueNames {
    /// The names, in order.
    pub queues: Vec<String>,
}

/// The names of queues.
pub async fn list(api: Api, input: ListInput) -> Result<QueueNames, ApiError> {
    let names = api.handles().queues().list().await?;
    let names = names.iter().map(|name| name.as_str().to_owned());
    Ok(QueueNames { queues: names.filter(|name| name.starts_with(&input.prefix)).collect() })
}

/// A queue to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInput {
    queue: String,
    /// How it behaves; what is not given is as usual. Times are in milliseconds.
    #[serde(default)]
    #[schemars(schema_with = "queue_config")]
    config: Map<String, Value>,
}

/// A queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueOutput {
    /// Its name.
    pub name: String,
    /// How it behaves.
    #[schemars(schema_with = "queue_config")]
    pub config: QueueConfig,
    /// The first of its clients that were ever sent to; the main one's name is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<ClientOutput>>,
    /// How many clients there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_total: Option<usize>,
}

/// A client of a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClientOutput {
    /// Its id.
    pub client: String,
    /// How many messages it has.
    pub count: Counts,
}

fn parse_config(config: Value) -> Result<QueueConfig, ApiError> {
    serde_path_to_error::deserialize(config).map_err(|error| {
        let path = format!("config.{}", error.path());
        ApiError::invalid(path.trim_end_matches(".."), format!("is not valid: {}", error.inner()))
    })
}

/// Creates a queue.
pub async fn create(api: Api, input: CreateInput) -> Result<QueueOutput, ApiError> {
    let config = parse_config(Value::Object(input.config))?;
    let queue = Box::pin(api.handles().queues().create(&input.queue, config)).await?;
    let config = queue.config().await?.as_ref().clone();
    Ok(QueueOutput { name: input.queue, config, clients: None, clients_total: None })
}

/// Which queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueInput {
    queue: String,
}

/// Which queue, and how many of its clients.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribeInput {
    queue: String,
    /// Most clients, up to 10,000; each is counted. Default: 100.
    max: Option<usize>,
}

/// A queue's configuration and clients.
pub async fn describe(api: Api, input: DescribeInput) -> Result<QueueOutput, ApiError> {
    let max = check_max(input.max)?;
    let queue = api.handles().queue(&input.queue).await?;
    let ids = queue.clients().await?;
    let total = ids.len();
    let mut clients = Vec::new();
    for id in ids.iter().take(max) {
        let client = api.handles().client(&input.queue, id.as_str()).await?;
        let count = Box::pin(client.count()).await?.into();
        clients.push(ClientOutput { client: id.as_str().to_owned(), count });
    }
    let config = queue.config().await?.as_ref().clone();
    let clients_total = Some(total);
    Ok(QueueOutput { name: input.queue, config, clients: Some(clients), clients_total })
}

/// What to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureInput {
    queue: String,
    /// What changes of the configuration, as a JSON merge patch: what is null is taken away.
    #[schemars(schema_with = "queue_patch")]
    config: Value,
}

/// Changes a configuration.
pub async fn configure(api: Api, input: ConfigureInput) -> Result<QueueOutput, ApiError> {
    let queue = api.handles().queue(&input.queue).await?;
    let before = queue.config().await?;
    let mut value = serde_json::to_value(before.as_ref()).unwrap_or_default();
    merge(&mut value, &input.config);
    let config = parse_config(value)?;
    Box::pin(queue.update_config(config.clone())).await?;
    Ok(QueueOutput { name: input.queue, config, clients: None, clients_total: None })
}

/// A JSON merge patch (RFC 7396).
pub fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(object) = value else { return };
    for (name, part) in patch {
        if part.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), part);
        }
    }
}

/// Nothing to say.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Done {}

/// Deletes a queue.
pub async fn delete(api: Api, input: QueueInput) -> Result<Done, ApiError> {
    let queue = api.handles().queue(&input.queue).await?;
    Box::pin(queue.delete()).await?;
    api.handles().forget_queue(&input.queue);
    Ok(Done {})
}

/// How many were removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Purged {
    /// Messages that were removed.
    pub removed: usize,
}

/// Removes every message.
pub async fn purge(api: Api, input: ClientInput) -> Result<Purged, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    Ok(Purged { removed: Box::pin(client.purge()).await? })
}

/// What to bring back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// The queue that they go to. Default: the one that each came from.
    to: Option<String>,
    /// Most messages a second. Default: as fast as it goes.
    rate: Option<f64>,
    /// Most messages. Default: all that are there.
    max: Option<usize>,
}

/// What was brought back.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RedriveOutput {
    /// Messages that were brought back.
    pub moved: usize,
    /// Messages that stay, since they say no queue to go to.
    pub homeless: usize,
}

/// Brings dead letters back.
pub async fn redrive(api: Api, input: RedriveInput) -> Result<RedriveOutput, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let how = Redrive { to: input.to, rate: input.rate, max: input.max };
    let homes = homes(&client, &how).await?;
    let done = Box::pin(client.redrive(&how)).await?;
    // A handle of each keeps what is counted there until it is stored.
    for queue in homes {
        let _ = api.handles().client(&queue, &input.client).await;
    }
    Ok(RedriveOutput { moved: done.moved, homeless: done.homeless })
}

/// The queues that the first messages of a redrive go to.
async fn homes(client: &Client, how: &Redrive) -> Result<BTreeSet<String>, ApiError> {
    if let Some(to) = &how.to {
        return Ok(BTreeSet::from([to.clone()]));
    }
    let first = how.max.unwrap_or(LISTED_DEFAULT).clamp(1, LISTED_MAX);
    let letters = Box::pin(client.peek(first)).await?;
    Ok(letters.into_iter().filter_map(|letter| letter.message.origin).map(|o| o.queue).collect())
}

/// Which group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnblockInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// The group.
    group: String,
}

/// What was held.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unblocked {
    /// Messages that were held.
    pub held: usize,
}

/// Lets a group go on.
pub async fn unblock(api: Api, input: UnblockInput) -> Result<Unblocked, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    Ok(Unblocked { held: Box::pin(client.unblock(&input.group)).await? })
}

/// What was done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MaintainOutput {
    /// Messages that had expired and were removed.
    pub expired: usize,
    /// Messages that were shed.
    pub shed: usize,
    /// Whether there is more to do: call it again.
    pub more: bool,
}

/// Does what must be done now and then.
pub async fn maintain(api: Api, input: ClientInput) -> Result<MaintainOutput, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let done = Box::pin(client.maintain()).await?;
    Ok(MaintainOutput { expired: done.expired, shed: done.shed, more: done.more })
}
