//! Topics as a whole.

use std::time::Duration;

use millpond_log::{TopicConfig, TopicDescription};
use millpond_store::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::Api;
use super::super::admin::SweepOutput;
use super::super::error::ApiError;
use super::super::queue::{Done, merge};
use super::failed;

/// How a topic keeps its records; what is not given is as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicSettings {
    /// How many partitions. Default: 4.
    pub partitions: Option<u32>,
    /// Records older than this are removed by a trim. Default: kept for ever.
    pub retention_age_ms: Option<u64>,
    /// What is over this many bytes in a partition is removed by a trim. Default: no bound.
    pub retention_bytes: Option<u64>,
    /// How long a producer waits for more records before it flushes. Default: 5.
    pub linger_ms: Option<u64>,
    /// A flush of this many bytes goes to the object store, when there is one. Default: 8,192.
    pub object_bytes_min: Option<usize>,
    /// A segment is closed once it has this many bytes. Default: 1,048,576.
    pub segment_bytes_max: Option<usize>,
}

impl TopicSettings {
    fn config(&self) -> TopicConfig {
        let usual = TopicConfig::default();
        TopicConfig {
            partitions: self.partitions.unwrap_or(usual.partitions),
            retention_age: self.retention_age_ms.map(Duration::from_millis),
            retention_bytes: self.retention_bytes,
            linger: self.linger_ms.map_or(usual.linger, Duration::from_millis),
            object_bytes_min: self.object_bytes_min.unwrap_or(usual.object_bytes_min),
            segment_bytes_max: self.segment_bytes_max.unwrap_or(usual.segment_bytes_max),
        }
    }
}

impl From<TopicConfig> for TopicSettings {
    fn from(config: TopicConfig) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            partitions: Some(config.partitions),
            retention_age_ms: config.retention_age.map(millis),
            retention_bytes: config.retention_bytes,
            linger_ms: Some(millis(config.linger)),
            object_bytes_min: Some(config.object_bytes_min),
            segment_bytes_max: Some(config.segment_bytes_max),
        }
    }
}

/// Nothing to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// Names of topics.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TopicNames {
    /// The names, in order.
    pub topics: Vec<String>,
}

/// The names of topics.
pub async fn list(api: Api, _: NoInput) -> Result<TopicNames, ApiError> {
    Ok(TopicNames { topics: api.handles().log().list().await? })
}

/// A topic to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInput {
    topic: String,
    /// How it keeps its records.
    #[serde(default)]
    settings: TopicSettings,
}

/// A topic, and what is in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TopicOutput {
    /// Its name.
    pub name: String,
    /// How it keeps its records.
    pub settings: TopicSettings,
    /// How many partitions it had before it grew, oldest first.
    pub grown_from: Vec<u32>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its partitions, in order.
    pub partitions: Vec<PartitionOutput>,
}

/// What is in a partition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PartitionOutput {
    /// Its number.
    pub partition: u32,
    /// The first record that is still there.
    pub earliest: u64,
    /// The offset that the next record will have.
    pub latest: u64,
    /// Bytes stored for the records that are there.
    pub bytes: u64,
    /// When the first of them was appended, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<u64>,
    /// The greatest fence token; 0 while there was none.
    pub fence: u64,
}

impl From<TopicDescription> for TopicOutput {
    fn from(topic: TopicDescription) -> Self {
        let partitions = topic.partitions.into_iter().map(|partition| PartitionOutput {
            partition: partition.partition,
            earliest: partition.earliest,
            latest: partition.latest,
            bytes: partition.bytes,
            oldest_ms: partition.oldest.map(Timestamp::as_millis),
            fence: partition.fence,
        });
        Self {
            name: topic.name,
            settings: topic.config.into(),
            grown_from: topic.grown_from,
            created_ms: topic.created.as_millis(),
            partitions: partitions.collect(),
        }
    }
}

/// Creates a topic.
pub async fn create(api: Api, input: CreateInput) -> Result<TopicOutput, ApiError> {
    let config = input.settings.config();
    let topic = Box::pin(api.handles().log().create(&input.topic, config)).await?;
    Ok(Box::pin(topic.describe()).await?.into())
}

/// Which topic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicInput {
    topic: String,
}

/// A topic's settings and partitions.
pub async fn describe(api: Api, input: TopicInput) -> Result<TopicOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let described = Box::pin(topic.describe()).await;
    Ok(described.map_err(|error| failed(&api, &input.topic, error))?.into())
}

/// What to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureInput {
    topic: String,
    /// What changes of the settings, as a JSON merge patch: a bound that is null is taken away.
    #[schemars(with = "TopicSettings")]
    settings: Value,
}

/// Changes a topic's settings.
pub async fn configure(api: Api, input: ConfigureInput) -> Result<TopicOutput, ApiError> {
    let before = api.handles().log().topic(&input.topic).await?.config();
    let mut value = serde_json::to_value(TopicSettings::from(before)).unwrap_or_default();
    merge(&mut value, &input.settings);
    let settings: TopicSettings = serde_path_to_error::deserialize(value).map_err(|error| {
        let field = format!("settings.{}", error.path());
        ApiError::invalid(&field, format!("is not valid: {}", error.inner()))
    })?;
    api.handles().log().configure(&input.topic, settings.config()).await?;
    api.handles().forget_topic(&input.topic);
    describe(api, TopicInput { topic: input.topic }).await
}

/// Deletes a topic.
pub async fn delete(api: Api, input: TopicInput) -> Result<Done, ApiError> {
    api.handles().forget_topic(&input.topic);
    Box::pin(api.handles().log().delete(&input.topic)).await?;
    api.members().forget(&input.topic, None);
    Ok(Done {})
}

/// How far to grow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrowInput {
    topic: String,
    /// How many partitions there are to be.
    partitions: u32,
}

/// Gives a topic more partitions.
pub async fn grow(api: Api, input: GrowInput) -> Result<TopicOutput, ApiError> {
    api.handles().log().grow(&input.topic, input.partitions).await?;
    api.handles().forget_topic(&input.topic);
    describe(api, TopicInput { topic: input.topic }).await
}

/// What was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrimOutput {
    /// Segments.
    pub segments: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes stored for them.
    pub bytes: u64,
    /// Whether there is more to remove: call it again.
    pub more: bool,
}

/// Removes what retention says.
pub async fn trim(api: Api, input: TopicInput) -> Result<TrimOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let trimmed = Box::pin(topic.trim()).await;
    let trimmed = trimmed.map_err(|error| failed(&api, &input.topic, error))?;
    let millpond_log::Trimmed { segments, records, bytes, more } = trimmed;
    Ok(TrimOutput { segments, records, bytes, more })
}

/// Whether to remove what is found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepInput {
    topic: String,
    /// Only count. Default: yes.
    dry_run: Option<bool>,
}

/// Finds objects that no record is in.
pub async fn sweep(api: Api, input: SweepInput) -> Result<SweepOutput, ApiError> {
    let topic = api.handles().topic(&input.topic).await?;
    let report = Box::pin(topic.sweep(input.dry_run.unwrap_or(true))).await;
    Ok(report.map_err(|error| failed(&api, &input.topic, error))?.into())
}
