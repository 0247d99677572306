//! Dead letters in a Millpond log.

use millpond_log::Topic;

use super::error::RedriveError;
use super::one::{Fate, Redriven, redrive_one};
use super::to::Destination;
use super::which::Which;
use crate::sink::{DeadLetter, LetterError, Spill};

/// The letters in a partition of a topic, from an offset on, up to `max` looked at, with their offsets.
///
/// # Errors
/// When the topic cannot be reached.
pub async fn list_log(
    dead: &Topic,
    partition: u32,
    from: u64,
    which: &Which,
    max: usize,
) -> Result<Vec<(u64, Result<DeadLetter, LetterError>)>, RedriveError> {
    let batch = dead.read(partition, from, max).await?;
    let letters =
        batch.records.iter().map(|record| (record.offset, DeadLetter::decode(&record.payload)));
    Ok(letters.filter(|(_, letter)| which.lists(letter)).collect())
}

/// Brings letters of a topic's partition back, from an offset on, up to `max` looked at. A log keeps its records: remember
/// the offset that it returns, the first one not looked at.
///
/// # Errors
/// When the topic cannot be reached.
pub async fn redrive_log(
    dead: &Topic,
    (partition, from): (u32, u64),
    to: &dyn Destination,
    which: &Which,
    spill: Option<&Spill>,
    max: usize,
) -> Result<(Redriven, u64), RedriveError> {
    let batch = dead.read(partition, from, max).await?;
    let mut redriven = Redriven::default();
    for record in &batch.records {
        match redrive_one(&record.payload, to, which, spill).await {
            Fate::Sent => redriven.sent += 1,
            Fate::Skipped => redriven.skipped += 1,
            Fate::Failed(error) => {
                redriven.failed.push(format!("offset {}: {error}", record.offset));
            }
        }
    }
    Ok((redriven, batch.next))
}
