//! DeleteMessageBatch.

use serde::Deserialize;

use super::batch;
use super::delete_message::delete;
use crate::call::Call;
use crate::error::{Failure, Result};

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
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<batch::Answer<batch::Entry>> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let entries = request.entries.unwrap_or_default();
    call.messages(entries.len());
    let name = "DeleteMessageBatchRequestEntry";
    batch::check(name, entries.iter().map(|entry| entry.id.as_deref()))?;
    let mut handles = Vec::with_capacity(entries.len());
    for (number, entry) in entries.iter().enumerate() {
        let missing = || Failure::missing(&format!("{name}.{}.ReceiptHandle", number + 1));
        handles.push(entry.receipt_handle.clone().ok_or_else(missing)?);
    }
    let outcomes = delete(call, &known, &client, handles).await?;
    let ids = entries.into_iter().map(|entry| entry.id.unwrap_or_default());
    let each = ids.zip(outcomes).map(|(id, outcome)| {
        let done = outcome.map(|()| batch::Entry { id: id.clone() });
        (id, done)
    });
    batch::Answer::of(each.collect())
}
