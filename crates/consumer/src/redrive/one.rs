//! One letter, wherever it is.

use super::error::RedriveError;
use super::to::Destination;
use super::which::Which;
use crate::sink::{DeadLetter, Spill};

/// What a redrive did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redriven {
    /// Letters that were brought back, and are gone from the dead letters.
    pub sent: usize,
    /// Letters that were not meant, and stay.
    pub skipped: usize,
    /// What could not be brought back, and stays.
    pub failed: Vec<String>,
}

/// What became of a letter.
#[derive(Debug)]
pub enum Fate {
    /// Its destination has it.
    Sent,
    /// It was not meant.
    Skipped,
    /// Its destination does not have it.
    Failed(RedriveError),
}

/// Brings one letter back, if it is meant; one that was spilled is fetched first.
pub async fn redrive_one(
    body: &[u8],
    to: &dyn Destination,
    which: &Which,
    spill: Option<&Spill>,
) -> Fate {
    let sent = match DeadLetter::decode(body) {
        Ok(letter) if !which.matches(&letter) => return Fate::Skipped,
        Ok(letter) => send_whole(letter, to, spill).await,
        Err(error) => Err(error.into()),
    };
    sent.map_or_else(Fate::Failed, |()| Fate::Sent)
}

async fn send_whole(
    letter: DeadLetter,
    to: &dyn Destination,
    spill: Option<&Spill>,
) -> Result<(), RedriveError> {
    let whole = match (spill, letter.spilled.is_some()) {
        (Some(spill), true) => spill.fetch(letter).await?,
        (None, true) => return Err(RedriveError::NoSpill(letter.dedupe_id)),
        (_, false) => letter,
    };
    to.send(&whole).await
}
