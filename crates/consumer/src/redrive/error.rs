//! What can go wrong with dead letters.

use millpond_log::LogError;
use millpond_queue::QueueError;

use crate::sink::{LetterError, SpillError};

/// Why dead letters could not be listed or brought back.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// The queue of dead letters failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The topic of dead letters failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A letter's object could not be read.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// A letter was spilled, and nothing says where to. Give the consumer's spill.
    #[error("the letter {0} was spilled to an object store, and none is given")]
    NoSpill(String),
    /// A letter is damaged.
    #[error(transparent)]
    Letter(#[from] LetterError),
    /// The letter is about the end of a tumbling window: what is in it is no message, and only a consumer can do something
    /// with it. Redrive it with [`ToConsumer`](super::ToConsumer), or leave it out with [`Which::kind`](super::Which::kind).
    #[error(
        "the letter {0} is about the end of a tumbling window, which is no message: only a consumer can take it"
    )]
    Window(String),
    /// Where the letters are cannot be reached for now. Try again.
    #[error("{0}")]
    Unreachable(String),
    /// What was to take it did not.
    #[error("{0}")]
    Refused(String),
}
