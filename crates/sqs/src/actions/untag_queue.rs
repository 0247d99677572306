//! UntagQueue.

use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Failure, Result};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    tag_keys: Option<Vec<String>>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let keys = request.tag_keys.filter(|keys| !keys.is_empty());
    let keys = keys.ok_or_else(|| Failure::missing("TagKeys"))?;
    let registry = &call.inner.registry;
    let changed = registry.change(&place, |record| {
        record.tags.retain(|key, _| !keys.contains(key));
        Ok(())
    });
    registry.learn(&place, changed.await?).await?;
    Ok(Done {})
}
