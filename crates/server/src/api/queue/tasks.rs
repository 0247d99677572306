//! The status of messages as tasks.

use millpond_queue::{Attempt, TaskState, TaskStatus};
use millpond_store::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::Api;
use super::super::content::encode_some;
use super::super::error::ApiError;
use super::inspect::{MessageInput, check_max};

/// Which tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TasksInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// The state that they are in.
    state: TaskStateName,
    /// The newest first. Default: the oldest.
    #[serde(default)]
    newest: bool,
    /// Most tasks, up to 10,000. Default: 100.
    max: Option<usize>,
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TaskState")]
pub enum TaskStateName {
    /// It waits.
    Pending,
    /// Somebody works on it.
    Taken,
    /// It ended well.
    Success,
    /// It ended badly.
    Failure,
}

/// What is known of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Task {
    /// Its message's id.
    pub id: String,
    /// Where it is in its life.
    pub state: TaskStateName,
    /// How often it was taken.
    pub attempts: u32,
    /// Who works on it, or did last, if said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When it was sent, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was first taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_taken_ms: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Its result, when that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Its result, in base64, when that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
    /// Its last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last attempts, oldest first: at_ms and ended (open, lapsed, released or failed).
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub history: Vec<Attempt>,
}

impl From<TaskStatus> for Task {
    fn from(status: TaskStatus) -> Self {
        let (result, result_base64) = encode_some(status.result.as_ref());
        Self {
            id: status.id.to_string(),
            state: match status.state {
                TaskState::Pending => TaskStateName::Pending,
                TaskState::Taken => TaskStateName::Taken,
                TaskState::Success => TaskStateName::Success,
                TaskState::Failure => TaskStateName::Failure,
            },
            attempts: status.attempts,
            worker: status.worker,
            created_ms: status.created.as_millis(),
            first_taken_ms: status.first_taken.map(Timestamp::as_millis),
            ended_ms: status.ended.map(Timestamp::as_millis),
            result,
            result_base64,
            error: status.error,
            history: status.history,
        }
    }
}

/// Tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tasks {
    /// The tasks, by age.
    pub tasks: Vec<Task>,
}

/// Tasks in a state.
pub async fn list(api: Api, input: TasksInput) -> Result<Tasks, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let state = match input.state {
        TaskStateName::Pending => TaskState::Pending,
        TaskStateName::Taken => TaskState::Taken,
        TaskStateName::Success => TaskState::Success,
        TaskStateName::Failure => TaskState::Failure,
    };
    let found = Box::pin(client.tasks(state, input.newest, check_max(input.max)?)).await?;
    Ok(Tasks { tasks: found.into_iter().map(Into::into).collect() })
}

/// One task.
pub async fn get(api: Api, input: MessageInput) -> Result<Task, ApiError> {
    let (queue, client, id) = input.parts()?;
    let client = api.handles().client(queue, client).await?;
    let found = Box::pin(client.status(&id)).await?;
    found.map(Into::into).ok_or_else(|| input.missing("task"))
}
