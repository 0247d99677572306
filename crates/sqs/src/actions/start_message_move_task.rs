//! StartMessageMoveTask.

use serde::{Deserialize, Serialize};

use super::list_dead_letter_source_queues::sources;
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::MOVE_RATE_MAX;
use crate::moves::handle_of;
use crate::place::Place;
use crate::wire::Whole;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    source_arn: Option<String>,
    destination_arn: Option<String>,
    max_number_of_messages_per_second: Option<Whole>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    task_handle: String,
}

/// The queue that an ARN names, which must exist.
pub async fn place_of(call: &Call<'_>, arn: &str) -> Result<Place> {
    let missing = || {
        let text = "The resource that you specified for the SourceArn parameter doesn't exist.";
        Failure::new(Code::ResourceNotFound, text)
    };
    let place = Place::of_arn(arn).ok_or_else(missing)?;
    call.check(&place)?;
    match call.inner.registry.get(&place).await {
        Ok(_) => Ok(place),
        Err(failure) if failure.code == Code::QueueDoesNotExist => Err(missing()),
        Err(failure) => Err(failure),
    }
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let arn = request.source_arn.ok_or_else(|| Failure::missing("SourceArn"))?;
    let reason = "Must be between 1 and 500.";
    let rate = request
        .max_number_of_messages_per_second
        .as_ref()
        .map(|rate| rate.within("MaxNumberOfMessagesPerSecond", 1, MOVE_RATE_MAX, reason));
    let rate = rate.transpose()?;
    let source = place_of(call, &arn).await?;
    if sources(&call.inner.registry, &source).await?.is_empty() {
        let text = "Source queue must be configured as a Dead Letter Queue.";
        return Err(Failure::parameter(text));
    }
    if let Some(destination) = &request.destination_arn {
        let place = place_of(call, destination).await.map_err(|failure| match failure.code {
            Code::ResourceNotFound => Failure::new(
                Code::ResourceNotFound,
                "The resource that you specified for the DestinationArn parameter doesn't exist.",
            ),
            _ => failure,
        })?;
        if place == source {
            let text = "Source queue arn and destination queue arn cannot be the same.";
            return Err(Failure::parameter(text));
        }
        if place.is_fifo() != source.is_fifo() {
            let text = "The destination queue must be of the same type as the source queue.";
            return Err(Failure::parameter(text));
        }
    }
    let known = call.inner.registry.get(&source).await?;
    let mut to_move = 0;
    for id in known.live.queue.clients().await? {
        to_move += known.live.queue.client(id.as_str())?.count().await?.available;
    }
    let task = call.inner.moves.start(&source, request.destination_arn, rate, to_move).await?;
    Ok(Answer { task_handle: handle_of(&source, &task) })
}
