//! DeleteQueue.

use std::sync::Arc;

use millpond_queue::{QueueError, Remains};
use millpond_store::{Expect, Version, Write};
use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::limits::{QUIET_PERIOD, ROW_CONFLICTS_MAX};
use crate::maintenance::remove;
use crate::place::Place;
use crate::record::{Record, key};
use crate::registry::Registry;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let registry = &call.inner.registry;
    for _ in 0..ROW_CONFLICTS_MAX {
        let row = registry.row(&place).await?;
        let Some((record, version)) = row.filter(|(row, _)| row.deleted_ms.is_none()) else {
            registry.forget(&place);
            return Err(Failure::no_queue());
        };
        match unlink(registry, &place, last(call, &place, record, version)?).await {
            Ok(remains) => {
                registry.forget(&place);
                remove_soon(call, remains);
                return Ok(Done {});
            }
            // The row, or the queue below, was changed meanwhile.
            Err(QueueError::Store(error)) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::too_many_changes())
}

/// What becomes of the row.
fn last(call: &Call<'_>, place: &Place, record: Record, version: Version) -> Result<Write> {
    let expect = Expect::Version(version);
    if !call.inner.options.quiet_periods {
        return Ok(Write::delete(key(place)?, expect));
    }
    let gone = Record { deleted_ms: Some(call.now.as_millis()), ..record };
    let next = call.inner.registry.ground.environment.version();
    Ok(gone.put_until(place, expect, next, call.now.plus(QUIET_PERIOD))?)
}

/// Deletes the row and the queue below in one step.
async fn unlink(
    registry: &Registry,
    place: &Place,
    last: Write,
) -> Result<Option<Remains>, QueueError> {
    let unlinked = match registry.queues.open(&place.stored_name()).await {
        Ok(queue) => queue.unlink(vec![last.clone()]).await,
        Err(error) => Err(error),
    };
    match unlinked {
        // A node died before it made the queue.
        Err(QueueError::NotFound { .. }) => {
            registry.ground.store.write(last).await?;
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Removes what was in the queue, however long that takes and whether or not the client waits for the answer.
fn remove_soon(call: &Call<'_>, remains: Option<Remains>) {
    let Some(remains) = remains else { return };
    let inner = Arc::clone(call.inner);
    tokio::spawn(async move {
        tokio::select! {
            biased;
            // Whoever opens the store next carries on.
            () = inner.until_closed() => {}
            () = remove(&remains) => {}
        }
    });
}
