//! ChangeMessageVisibility.

use std::time::Duration;

use millpond_queue::{Client, Extension, Lost, QueueError, Receipt};
use serde::Deserialize;

use super::Done;
use super::delete_message::{expired, no_handle};
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::limits::VISIBILITY_SECONDS_MAX;
use crate::registry::Known;
use crate::wire::Whole;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<Whole>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let handle = request.receipt_handle.ok_or_else(|| Failure::missing("ReceiptHandle"))?;
    let timeout = request.visibility_timeout;
    let timeout = seconds(&timeout.ok_or_else(|| Failure::missing("VisibilityTimeout"))?)?;
    let mut outcomes = change(call, &known, &client, vec![(handle, timeout)]).await?;
    outcomes.pop().unwrap_or(Ok(()))?;
    Ok(Done {})
}

/// A visibility timeout as it is given.
pub fn seconds(given: &Whole) -> Result<u64> {
    let reason = format!("Must be >= 0 and <= {VISIBILITY_SECONDS_MAX}, if provided.");
    given.within("VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX, &reason)
}

/// Changes how long messages are invisible, with an outcome for each.
pub async fn change(
    call: &Call<'_>,
    known: &Known,
    client: &Client,
    changes: Vec<(String, u64)>,
) -> Result<Vec<Result<()>>> {
    let fifo = known.settings.fifo.is_some();
    let terms =
        Extension { in_time: fifo, total_max: Some(Duration::from_secs(VISIBILITY_SECONDS_MAX)) };
    let changes: Vec<(Receipt, Duration)> = changes
        .into_iter()
        .map(|(handle, timeout)| (Receipt::from_text(handle), Duration::from_secs(timeout)))
        .collect();
    let outcomes = client.extend_each(&changes, terms).await?;
    let mut answers = Vec::with_capacity(outcomes.len());
    for ((receipt, timeout), outcome) in changes.iter().zip(outcomes) {
        answers.push(match outcome {
            Ok(_) => {
                if let Ok(id) = client.message_of(receipt) {
                    known.live.flight().changed(&id, call.now.plus(*timeout));
                }
                Ok(())
            }
            Err(QueueError::ReceiptInvalid { .. }) => Err(no_handle(receipt)),
            Err(QueueError::LeaseLost { reason, .. }) => {
                lost(reason, receipt, timeout.as_secs(), fifo)
            }
            Err(other) => Err(other.into()),
        });
    }
    Ok(answers)
}

fn lost(reason: Lost, receipt: &Receipt, timeout: u64, fifo: bool) -> Result<()> {
    match reason {
        Lost::Unknown => Err(no_handle(receipt)),
        Lost::Finished => Err(Failure::value(
            "ReceiptHandle",
            receipt,
            "Message does not exist or is not available for visibility timeout change.",
        )),
        Lost::TooLong => Err(Failure::value(
            "VisibilityTimeout",
            timeout,
            "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].",
        )),
        Lost::Taken | Lost::GivenBack | Lost::RunOut if fifo => Err(expired(receipt)),
        // Somebody else has it by now: as with the service, nothing happens, and nothing is said.
        Lost::Taken | Lost::GivenBack | Lost::RunOut => Ok(()),
    }
}
