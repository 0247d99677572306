//! What can end a measurement.

use std::path::{Path, PathBuf};

use millpond_log::LogError;
use millpond_queue::QueueError;
use millpond_sequencer::SequencerError;
use millpond_store::StoreError;

pub type Result<T, E = BenchError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Sequencer(#[from] SequencerError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{}: {cause}", place.display())]
    File { place: PathBuf, cause: std::io::Error },
    #[error("{0}")]
    Wrong(String),
}

impl BenchError {
    /// What to make of an I/O error at `place`.
    pub fn file(place: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let place = place.as_ref().to_owned();
        move |cause| Self::File { place, cause }
    }
}

impl From<tokio::task::JoinError> for BenchError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Wrong(error.to_string())
    }
}
