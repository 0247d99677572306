//! What a consumer remembers.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use millpond_consumer::source::{Scope, SourceKind};
use millpond_consumer::state::{Address, KnownSource, StateError, StateRow, StoreState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::queue::check_max;

/// Whose sources.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourcesInput {
    consumer: String,
}

/// Sources of a consumer.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConsumerSources")]
pub struct Sources {
    /// The sources, in order; none for a consumer that never kept state.
    pub sources: Vec<SourceOutput>,
}

/// A source, or one shard of it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConsumerSource")]
pub struct SourceOutput {
    /// Its full ARN.
    pub arn: String,
    /// Its shard; empty when it has none.
    pub shard: String,
}

pub(super) fn state(api: &Api) -> StoreState {
    StoreState::new(Arc::clone(&api.ground().store), api.environment())
}

/// Lists sources.
pub async fn sources(api: Api, input: SourcesInput) -> Result<Sources, ApiError> {
    let known = state(&api).sources(&input.consumer).await?;
    let source = |known: KnownSource| SourceOutput { arn: known.arn, shard: known.shard };
    Ok(Sources { sources: known.into_iter().map(source).collect() })
}

/// Whose state, and of what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateInput {
    consumer: String,
    /// Only of this source, by its full ARN.
    arn: Option<String>,
    /// Only of this shard.
    shard: Option<String>,
    /// Only of messages that are not finished. Default: of all.
    #[serde(default)]
    unfinished: bool,
    /// Most messages, up to 10,000. Default: 100.
    max: Option<usize>,
}

/// What a consumer remembers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConsumerState")]
pub struct StateOutput {
    /// Messages, by source, shard and place.
    pub messages: Vec<MessageOutput>,
    /// Whether there are more.
    pub more: bool,
}

/// What a consumer remembers of a message.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConsumedMessage")]
pub struct MessageOutput {
    /// The source's full ARN.
    pub arn: String,
    /// The shard; empty when there is none.
    pub shard: String,
    /// The message's place in its shard, or its id.
    pub message: String,
    /// Why it is with the dead letters; missing when it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
    /// The task that was about to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// Its tasks, by name.
    pub tasks: BTreeMap<String, TaskOutput>,
    /// Why its row cannot be read; missing when it can. Nothing of its batch runs until it is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How far a task has come for a message.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConsumerTask")]
pub struct TaskOutput {
    /// pending, done, rejected, exhausted or abandoned.
    pub status: String,
    /// How often it was tried in vain.
    pub attempts: u32,
    /// The last error, or why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Steps that are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Not tried before this time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
}

/// Shows state.
pub async fn show(api: Api, input: StateInput) -> Result<StateOutput, ApiError> {
    let max = check_max(input.max)?;
    let state = state(&api);
    let is_meant = |known: &KnownSource| {
        input.arn.as_ref().is_none_or(|arn| *arn == known.arn)
            && input.shard.as_ref().is_none_or(|shard| *shard == known.shard)
    };
    let mut messages = Vec::new();
    for known in state.sources(&input.consumer).await?.into_iter().filter(is_meant) {
        let found = state.rows(&address(&input.consumer, &known)).await?;
        let wanted = found.iter().filter(|row| !input.unfinished || is_unfinished(row));
        messages.extend(wanted.map(|row| described(&known, row)));
        if messages.len() > max {
            break;
        }
    }
    let more = messages.len() > max;
    messages.truncate(max);
    Ok(StateOutput { messages, more })
}

/// Where the state of a source is. What delivers is not part of that.
fn address(consumer: &str, known: &KnownSource) -> Address {
    let kind = SourceKind::Kinesis;
    let scope = Scope { kind, arn: known.arn.clone(), shard: known.shard.clone() };
    Address { consumer: consumer.into(), scope: Arc::new(scope) }
}

/// What cannot be read keeps its batch from being finished.
fn is_unfinished(row: &Result<StateRow, StateError>) -> bool {
    let pending = |row: &StateRow| row.state.tasks.values().any(|task| !task.status.is_ended());
    row.as_ref().map_or(true, |row| row.state.dead.is_none() && pending(row))
}

fn described(known: &KnownSource, row: &Result<StateRow, StateError>) -> MessageOutput {
    let row = match row {
        Ok(row) => row,
        Err(error) => {
            let (message, problem) = match error {
                StateError::Unreadable { position, problem } => (position.clone(), problem.clone()),
                other => (String::new(), other.to_string()),
            };
            return MessageOutput {
                arn: known.arn.clone(),
                shard: known.shard.clone(),
                message,
                dead: None,
                running: None,
                tasks: BTreeMap::new(),
                problem: Some(problem),
            };
        }
    };
    let task = |(name, task): (&String, &millpond_consumer::state::TaskState)| {
        let described = TaskOutput {
            status: format!("{:?}", task.status).to_lowercase(),
            attempts: task.attempts,
            error: task.error.clone(),
            steps: task.steps.iter().cloned().collect(),
            not_before_ms: task.due_ms,
        };
        (name.clone(), described)
    };
    MessageOutput {
        arn: known.arn.clone(),
        shard: known.shard.clone(),
        message: row.position.to_string(),
        dead: row.state.dead.map(|reason| reason.name().to_owned()),
        running: row.state.running.clone(),
        tasks: row.state.tasks.iter().map(task).collect(),
        problem: None,
    }
}

/// Which message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetInput {
    consumer: String,
    /// The source's full ARN.
    arn: String,
    /// The shard. Default: none, for sources that have none.
    #[serde(default)]
    shard: String,
    /// The message, as its state is shown.
    message: String,
}

/// What was forgotten.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ForgottenState")]
pub struct ForgetOutput {
    /// How many rows had that name.
    pub forgotten: usize,
}

/// Forgets a message.
pub async fn forget(api: Api, input: ForgetInput) -> Result<ForgetOutput, ApiError> {
    let ForgetInput { consumer, arn, shard, message } = input;
    let address = address(&consumer, &KnownSource { arn, shard });
    match state(&api).forget(&address, &message).await? {
        0 => {
            let known = format!("{consumer} remembers no message {message:?} of that source");
            Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", known))
        }
        forgotten => Ok(ForgetOutput { forgotten }),
    }
}
