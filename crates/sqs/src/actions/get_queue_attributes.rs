//! GetQueueAttributes.

use serde::{Deserialize, Serialize};

use crate::attributes::{Texts, show, wants_counts};
use crate::call::Call;
use crate::error::Result;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    attribute_names: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Texts::is_empty")]
    attributes: Texts,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let names = request.attribute_names.unwrap_or_default();
    let counts = if wants_counts(&names) { Some(client.count().await?) } else { None };
    let prefix = &call.inner.registry.prefix;
    Ok(Answer { attributes: show(&known.place, &known.record, counts, &names, prefix)? })
}
