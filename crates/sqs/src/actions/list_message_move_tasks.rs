//! ListMessageMoveTasks.

use serde::{Deserialize, Serialize};

use super::start_message_move_task::place_of;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::limits::MOVES_LISTED_MAX;
use crate::moves::{Status, handle_of};
use crate::wire::Whole;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    source_arn: Option<String>,
    max_results: Option<Whole>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<Listed>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_handle: Option<String>,
    status: Status,
    source_arn: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_number_of_messages_per_second: Option<u64>,
    approximate_number_of_messages_moved: u64,
    approximate_number_of_messages_to_move: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    started_timestamp: u64,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let arn = request.source_arn.ok_or_else(|| Failure::missing("SourceArn"))?;
    let reason = "Must be between 1 and 10.";
    let most = match &request.max_results {
        Some(most) => most.within("MaxResults", 1, MOVES_LISTED_MAX, reason)?,
        None => 1,
    };
    let source = place_of(call, &arn).await?;
    let tasks = call.inner.moves.list(&source, most).await?;
    let shown = tasks.into_iter().map(|(task, _)| Listed {
        // There is nothing to cancel in one that has ended.
        task_handle: (task.status == Status::Running).then(|| handle_of(&source, &task)),
        status: task.status,
        source_arn: source.arn(),
        destination_arn: task.destination,
        max_number_of_messages_per_second: task.rate,
        approximate_number_of_messages_moved: task.moved,
        approximate_number_of_messages_to_move: task.to_move,
        failure_reason: task.failure,
        started_timestamp: task.started_ms,
    });
    Ok(Answer { results: shown.collect() })
}
