//! CancelMessageMoveTask.

use serde::{Deserialize, Serialize};

use super::start_message_move_task::place_of;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::moves::place_of_handle;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    task_handle: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    approximate_number_of_messages_moved: u64,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let handle = request.task_handle.ok_or_else(|| Failure::missing("TaskHandle"))?;
    let (source, started_ms, chance) = place_of_handle(&handle).ok_or_else(|| {
        let shown: String = handle.chars().take(256).collect();
        Failure::value("TaskHandle", shown, "The task handle is not valid.")
    })?;
    let source = place_of(call, &source.arn()).await?;
    let moved = call.inner.moves.cancel(&source, started_ms, chance).await?;
    Ok(Answer { approximate_number_of_messages_moved: moved })
}
