//! TagQueue.

use serde::Deserialize;

use super::Done;
use crate::attributes::Texts;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::limits::TAGS_MAX;

/// Longest key, and longest value, of a tag.
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    tags: Option<Texts>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let tags = request.tags.filter(|tags| !tags.is_empty());
    let tags = tags.ok_or_else(|| Failure::missing("Tags"))?;
    for (key, value) in &tags {
        if key.is_empty() || key.chars().count() > KEY_CHARS_MAX {
            return Err(Failure::value("TagKey", key, "Must be 1 to 128 characters long."));
        }
        if value.chars().count() > VALUE_CHARS_MAX {
            return Err(Failure::value("TagValue", value, "Must be at most 256 characters long."));
        }
    }
    let registry = &call.inner.registry;
    let changed = registry.change(&place, |record| {
        record.tags.extend(tags.clone());
        if record.tags.len() > TAGS_MAX {
            let text = format!("Too many tags added for queue {}.", place.name);
            return Err(Failure::parameter(text));
        }
        Ok(())
    });
    registry.learn(&place, changed.await?).await?;
    Ok(Done {})
}
