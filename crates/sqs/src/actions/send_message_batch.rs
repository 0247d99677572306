//! SendMessageBatch.

use serde::{Deserialize, Serialize};

use super::batch;
use super::send_message::{self, Ready};
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::BATCH_BYTES_MAX;
use crate::watch::Part;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    entries: Option<Vec<send_message::Request>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Sent {
    id: String,
    #[serde(flatten)]
    answer: send_message::Answer,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<batch::Answer<Sent>> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let entries = request.entries.unwrap_or_default();
    call.messages(entries.len());
    batch::check("SendMessageBatchRequestEntry", entries.iter().map(|entry| entry.id.as_deref()))?;
    let bytes: usize = entries.iter().map(send_message::Request::size).sum();
    if bytes > BATCH_BYTES_MAX {
        let text = format!(
            "Batch requests cannot be longer than {BATCH_BYTES_MAX} bytes. You have sent {bytes} bytes."
        );
        return Err(Failure::new(Code::BatchRequestTooLong, text));
    }
    let mut outcomes: Vec<(String, Option<Result<Sent>>)> = Vec::with_capacity(entries.len());
    let mut ready: Vec<(usize, Ready)> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        outcomes.push((entry.id.clone().unwrap_or_default(), None));
        match entry.ready(&known, &call.inner.registry.prefix) {
            Ok(message) => ready.push((index, message)),
            Err(failure) => set(&mut outcomes, index, Err(failure)),
        }
    }
    let mut rest = Vec::with_capacity(ready.len());
    let mut messages = Vec::with_capacity(ready.len());
    for (index, Ready { message, digests }) in ready {
        rest.push((index, message.group.clone(), digests));
        messages.push(message);
    }
    let sent = call.part(Part::Commit, client.send_batch(messages)).await?;
    for ((index, group, digests), outcome) in rest.into_iter().zip(sent) {
        let outcome = match outcome {
            Ok(sent) => {
                let group = group.as_deref();
                let answer = send_message::answer(call, &known, &client, &sent, group, digests);
                let id = outcomes.get(index).map(|(id, _)| id.clone()).unwrap_or_default();
                Ok(Sent { id, answer })
            }
            Err(error) => Err(send_message::refused(error, &known)),
        };
        set(&mut outcomes, index, outcome);
    }
    let whole = outcomes.into_iter().filter_map(|(id, outcome)| Some((id, outcome?)));
    batch::Answer::of(whole.collect())
}

fn set(outcomes: &mut [(String, Option<Result<Sent>>)], index: usize, outcome: Result<Sent>) {
    if let Some((_, place)) = outcomes.get_mut(index) {
        *place = Some(outcome);
    }
}
