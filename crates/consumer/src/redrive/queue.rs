//! Dead letters in a Millpond queue.

use millpond_queue::{Client, Receive};

use super::error::RedriveError;
use super::one::{Fate, Redriven, redrive_one};
use super::to::Destination;
use super::which::Which;
use crate::sink::{DeadLetter, LetterError, Spill};

/// The letters in a queue, oldest first, up to `max` looked at; those that are not letters are named.
///
/// # Errors
/// When the queue cannot be reached.
pub async fn list_queue(
    dead: &Client,
    which: &Which,
    max: usize,
) -> Result<Vec<Result<DeadLetter, LetterError>>, RedriveError> {
    let peeked = dead.peek(max).await?;
    let letters = peeked.into_iter().map(|peeked| DeadLetter::decode(&peeked.message.body));
    Ok(letters.filter(|letter| which.lists(letter)).collect())
}

/// Brings letters of a queue back, up to `max` of them. A letter is acknowledged only when its destination has it.
///
/// # Errors
/// When the queue cannot be reached.
pub async fn redrive_queue(
    dead: &Client,
    to: &dyn Destination,
    which: &Which,
    spill: Option<&Spill>,
    max: usize,
) -> Result<Redriven, RedriveError> {
    let mut redriven = Redriven::default();
    let mut kept = Vec::new();
    for _ in 0..max {
        let Some(delivery) = dead.receive(&Receive::up_to(1)).await?.pop() else { break };
        match redrive_one(&delivery.body, to, which, spill).await {
            Fate::Sent => {
                dead.ack(&delivery.receipt).await?;
                redriven.sent += 1;
            }
            Fate::Skipped => {
                redriven.skipped += 1;
                kept.push(delivery.receipt);
            }
            Fate::Failed(error) => {
                redriven.failed.push(error.to_string());
                kept.push(delivery.receipt);
            }
        }
    }
    for receipt in kept {
        // Its loan ends by itself too.
        if let Err(error) = dead.release(&receipt).await {
            tracing::warn!(%error, "a dead letter could not be given back before its loan ends");
        }
    }
    Ok(redriven)
}
