//! ChangeMessageVisibilityBatch.

use serde::Deserialize;

use super::batch;
use super::change_message_visibility::{change, seconds};
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::wire::Whole;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    entries: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    id: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<Whole>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<batch::Answer<batch::Entry>> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let entries = request.entries.unwrap_or_default();
    call.messages(entries.len());
    let name = "ChangeMessageVisibilityBatchRequestEntry";
    batch::check(name, entries.iter().map(|entry| entry.id.as_deref()))?;
    let mut outcomes: Vec<(String, Result<()>)> = Vec::with_capacity(entries.len());
    let mut changes = Vec::with_capacity(entries.len());
    let mut places = Vec::with_capacity(entries.len());
    for (number, entry) in entries.into_iter().enumerate() {
        let field = |field: &str| Failure::missing(&format!("{name}.{}.{field}", number + 1));
        let handle = entry.receipt_handle.ok_or_else(|| field("ReceiptHandle"))?;
        let timeout = entry.visibility_timeout.ok_or_else(|| field("VisibilityTimeout"))?;
        let id = entry.id.unwrap_or_default();
        match seconds(&timeout) {
            Ok(timeout) => {
                changes.push((handle, timeout));
                places.push(number);
                outcomes.push((id, Ok(())));
            }
            Err(failure) => outcomes.push((id, Err(failure))),
        }
    }
    for (place, changed) in places.into_iter().zip(change(call, &known, &client, changes).await?) {
        if let Some((_, outcome)) = outcomes.get_mut(place) {
            *outcome = changed;
        }
    }
    let each = outcomes.into_iter().map(|(id, outcome)| {
        let done = outcome.map(|()| batch::Entry { id: id.clone() });
        (id, done)
    });
    batch::Answer::of(each.collect())
}
