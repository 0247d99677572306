//! Where dead messages and dead records go.

mod envelope;
mod log;
mod memory;
mod queue;
mod reason;
mod spill;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

pub(crate) use envelope::WINDOW_END;
pub use envelope::{Body, DeadLetter, Kind, LetterError, SourceName, TaskHistory};
pub use log::LogSink;
pub use memory::MemorySink;
pub use queue::QueueSink;
pub use reason::Reason;
pub use spill::{Spill, SpillError, Spilled};

/// A dead letter on its way to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The same for the same message or record, however often it is sent.
    pub dedupe_id: String,
    /// The source's own key of the message, for sinks that keep order.
    pub group: Option<String>,
    /// The letter: a [`DeadLetter`] in JSON.
    pub body: Bytes,
}

/// A sink's word that it has a letter for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkReceipt(pub String);

/// Why a sink does not have a letter. The message stays unfinished and comes again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The sink cannot be reached, or may or may not have it. It is sent again, with the same deduplication id.
    #[error("the sink cannot be reached: {0}")]
    Unavailable(String),
    /// The letter is too large and there is no object store to spill it to. Configure one.
    #[error(
        "the letter has {size} bytes, the sink takes at most {limit}, and nothing is set to spill to"
    )]
    TooLarge {
        /// How large it is.
        size: usize,
        /// The most that the sink takes.
        limit: usize,
    },
    /// The sink is not there, or may not be written to. Do what the remedy says.
    #[error("{problem}; {remedy}")]
    Misconfigured {
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

impl SinkError {
    /// Whether it stays until somebody corrects the set-up: what a [breaker](crate::Breaker) is for.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Misconfigured { .. })
    }
}

/// Takes dead letters. A message counts as finished only once the sink has given its receipt.
#[async_trait]
pub trait Sink: fmt::Debug + Send + Sync + 'static {
    /// The largest body that it takes, in bytes.
    fn bytes_max(&self) -> usize;

    /// Keeps letters for good: one outcome for each, in order.
    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>>;
}
