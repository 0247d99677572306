//! PurgeQueue.

use millpond_store::Timestamp;
use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::QUIET_PERIOD;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let now = call.now;
    let changed = call.inner.registry.change(&known.place, |record| {
        let last = record.purged_ms.map(Timestamp::from_millis);
        let recent = last.is_some_and(|last| last <= now && now.since(last) < QUIET_PERIOD);
        if call.inner.options.quiet_periods && recent {
            let text = format!(
                "Only one PurgeQueue operation on {} is allowed every 60 seconds.",
                known.place.name
            );
            return Err(Failure::new(Code::PurgeQueueInProgress, text));
        }
        record.purged_ms = Some(now.as_millis());
        Ok(())
    });
    changed.await?;
    client.purge().await?;
    known.live.flight().clear();
    Ok(Done {})
}
