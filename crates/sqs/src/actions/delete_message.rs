//! DeleteMessage.

use std::sync::atomic::Ordering;

use millpond_queue::{Client, Lost, QueueError, Receipt, Settled};
use serde::Deserialize;

use super::Done;
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::registry::Known;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    receipt_handle: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let handle = request.receipt_handle.ok_or_else(|| Failure::missing("ReceiptHandle"))?;
    let mut outcomes = delete(call, &known, &client, vec![handle]).await?;
    outcomes.pop().unwrap_or(Ok(()))?;
    Ok(Done {})
}

/// Deletes messages, with an outcome for each.
pub async fn delete(
    call: &Call<'_>,
    known: &Known,
    client: &Client,
    handles: Vec<String>,
) -> Result<Vec<Result<()>>> {
    let receipts: Vec<Receipt> = handles.into_iter().map(Receipt::from_text).collect();
    let fifo = known.settings.fifo.is_some();
    let outcomes = if fifo {
        client.ack_batch_in_time(&receipts).await?
    } else {
        client.ack_batch(&receipts).await?
    };
    let mut answers = Vec::with_capacity(outcomes.len());
    for (receipt, outcome) in receipts.iter().zip(outcomes) {
        if let Ok(Settled::Now) = outcome {
            call.inner.counted.deleted.fetch_add(1, Ordering::Relaxed);
            if let Ok(id) = client.message_of(receipt) {
                known.live.flight().end(&id, call.now);
            }
        }
        answers.push(match outcome {
            Ok(_) => Ok(()),
            Err(QueueError::ReceiptInvalid { .. }) => Err(no_handle(receipt)),
            // In a standard queue, deleting with an old handle succeeds and may not delete.
            Err(QueueError::LeaseLost { reason: Lost::Unknown, .. }) => Err(no_handle(receipt)),
            Err(QueueError::LeaseLost { .. }) if !fifo => Ok(()),
            Err(QueueError::LeaseLost { .. }) => Err(expired(receipt)),
            Err(other) => Err(other.into()),
        });
    }
    Ok(answers)
}

/// What is not a handle of this queue.
pub fn no_handle(receipt: &Receipt) -> Failure {
    let shown: String = receipt.as_str().chars().take(256).collect();
    let text = format!("The input receipt handle \"{shown}\" is not a valid receipt handle.");
    Failure::new(Code::ReceiptHandleIsInvalid, text)
}

/// In a FIFO queue, a handle is good for as long as its message is invisible to others.
pub fn expired(receipt: &Receipt) -> Failure {
    Failure::value("ReceiptHandle", receipt, "The receipt handle has expired.")
}
