//! RemovePermission.

use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::policy;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    label: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let label = request.label.ok_or_else(|| Failure::missing("Label"))?;
    let registry = &call.inner.registry;
    let changed = registry.change(&place, |record| {
        let policy = record.attributes.get("Policy").map(String::as_str);
        match policy::remove(&place, policy, &label)? {
            Some(policy) => record.attributes.insert("Policy".to_owned(), policy),
            None => record.attributes.remove("Policy"),
        };
        record.modified_ms = call.now.as_millis();
        Ok(())
    });
    registry.learn(&place, changed.await?).await?;
    Ok(Done {})
}
