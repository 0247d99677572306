//! PurgeQueue.

use millpond_store::Timestamp;
use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::QUIET_PERIOD;
use crate::place::Place;
use crate::record::Record;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let registry = &call.inner.registry;
    if call.inner.options.quiet_periods {
        // Another node may have purged it since the row was last read.
        let row = registry.row(&known.place).await?;
        check_quiet(call, &row.map(|(record, _)| record).unwrap_or_default(), &known.place)?;
    }
    client.purge().await?;
    known.live.flight().clear();
    // Last, so that a purge that was cut off can be made again at once.
    let purged = registry.change(&known.place, |record| {
        record.purged_ms = Some(call.now.as_millis());
        Ok(())
    });
    purged.await?;
    Ok(Done {})
}

/// A queue that was purged a moment ago cannot be purged again yet.
fn check_quiet(call: &Call<'_>, record: &Record, place: &Place) -> Result<()> {
    let last = record.purged_ms.map(Timestamp::from_millis);
    if last.is_some_and(|last| last <= call.now && call.now.since(last) < QUIET_PERIOD) {
        let text =
            format!("Only one PurgeQueue operation on {} is allowed every 60 seconds.", place.name);
        return Err(Failure::new(Code::PurgeQueueInProgress, text));
    }
    Ok(())
}
