//! DeleteQueue.

use millpond_queue::QueueError;
use millpond_store::{Expect, Write};
use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::limits::QUIET_PERIOD;
use crate::record::{Record, key};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let registry = &call.inner.registry;
    let environment = &registry.ground.environment;
    let Some((record, version)) = registry.row(&place).await? else {
        registry.forget(&place);
        return Err(Failure::no_queue());
    };
    if record.deleted_ms.is_some() {
        registry.forget(&place);
        return Err(Failure::no_queue());
    }
    // First the row, so that nobody finds the queue any more; what is in it is removed after that, by whoever creates
    // the queue again if not here.
    let deleted_ms = Some(call.now.as_millis());
    let mut gone = Record { deleted_ms, ..record };
    let marked = environment.version();
    registry.ground.store.write(gone.put(&place, Expect::Version(version), marked)?).await?;
    registry.forget(&place);
    match registry.queues.open(&place.stored_name()).await {
        Ok(queue) => match queue.delete().await {
            Err(QueueError::NotFound { .. }) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        },
        Err(QueueError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    gone.removed = true;
    let expect = Expect::Version(marked);
    let last = if call.inner.options.quiet_periods {
        let until = call.now.plus(QUIET_PERIOD);
        gone.put_until(&place, expect, environment.version(), until)?
    } else {
        Write::delete(key(&place)?, expect)
    };
    match registry.ground.store.write(last).await {
        // Somebody has created it again.
        Err(error) if error.is_conflict() => {}
        other => other?,
    }
    Ok(Done {})
}
