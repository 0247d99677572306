//! ListQueueTags.

use serde::{Deserialize, Serialize};

use crate::attributes::Texts;
use crate::call::Call;
use crate::error::Result;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Texts::is_empty")]
    tags: Texts,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let (known, _) = call.queue_at(request.queue_url.as_deref()).await?;
    Ok(Answer { tags: known.record.tags.clone() })
}
