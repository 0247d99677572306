//! What can go wrong, by what a caller does about it.

use millpond_store::{Certainty, StoreError};

/// A result of a sequencer.
pub type Result<T, E = SequencerError> = std::result::Result<T, E>;

/// Why a sequencer did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SequencerError {
    /// The number is taken by another message; nothing was changed. Find out which producer is wrong.
    #[error("{queue}: number {seq} was put before with another payload or other attributes")]
    Conflict {
        /// The queue.
        queue: String,
        /// The number.
        seq: u64,
    },
    /// The number is too far ahead of what the queue waits for; nothing was stored. Put what is missing first, or
    /// wait and try again.
    #[error(
        "{queue}: number {seq} is outside the window: the queue waits for {next}, and {held} {unit} of {limit} \
         would be ahead of it"
    )]
    WindowFull {
        /// The queue.
        queue: String,
        /// The number.
        seq: u64,
        /// The number that the queue waits for.
        next: u64,
        /// How much would be ahead of it.
        held: u64,
        /// What is counted: numbers, messages or bytes.
        unit: &'static str,
        /// The most that may be.
        limit: u64,
    },
    /// The number was skipped, or is before the queue's first, and the queue rejects late arrivals; nothing is
    /// stored. Let it go, or configure another policy.
    #[error(
        "{queue}: number {seq} came too late: the queue began with {start} and waits for {next}"
    )]
    Late {
        /// The queue.
        queue: String,
        /// The number.
        seq: u64,
        /// The queue's first number.
        start: u64,
        /// The number that the queue waits for.
        next: u64,
    },
    /// The queue has no stored start number, and the configuration asks for one. Call `reset` with its first
    /// number.
    #[error("{queue} has not been started: `reset` it to its first number")]
    NotStarted {
        /// The queue.
        queue: String,
    },
    /// A position is outside what exists; nothing was changed. Choose one within the range that is given.
    #[error("{queue}: {what} {asked} is outside what is there: {first} up to and without {next}")]
    OutOfRange {
        /// The queue.
        queue: String,
        /// What the position was for.
        what: &'static str,
        /// The position asked for.
        asked: u64,
        /// The first number that is there.
        first: u64,
        /// The number behind the last that is there.
        next: u64,
    },
    /// The queue is being reset by somebody. Try again; if that does not end, call `reset` again.
    #[error("{queue} is being reset to {start}")]
    Resetting {
        /// The queue.
        queue: String,
        /// Its number to be.
        start: u64,
    },
    /// The configuration does not allow it; nothing was changed. Configure it, or use `skip`.
    #[error("{queue}: {problem}")]
    NotAllowed {
        /// The queue.
        queue: String,
        /// What is not allowed.
        problem: &'static str,
    },
    /// Something is over a limit; nothing was written. Make it smaller.
    #[error("{what} is too large: {size} {unit}, the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        size: u64,
        /// What sizes are counted in.
        unit: &'static str,
        /// The largest that is accepted.
        limit: u64,
    },
    /// A parameter makes no sense; nothing was written. Correct it.
    #[error("{field} {problem}")]
    Invalid {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A subscription fell behind so far that changes were dropped. Subscribe anew, and look at the cursors of all
    /// queues.
    #[error("the subscription fell behind: more than {limit} queues have changed")]
    Lagged {
        /// How many it holds.
        limit: usize,
    },
    /// The store failed. Whether a message was stored is not known: put it again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SequencerError {
    /// Whether the message may have been stored, or the change made, all the same.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self {
            // A put is several requests: the message may be stored although a later one failed.
            Self::Store(_) => Certainty::Unknown,
            _ => Certainty::Definite,
        }
    }

    /// Whether the same call may succeed later, with nothing else changed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::Resetting { .. } | Self::WindowFull { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }

    pub(crate) fn check_size(what: &'static str, size: usize, limit: usize) -> Result<()> {
        if size <= limit {
            return Ok(());
        }
        Err(Self::TooLarge { what, size: size as u64, unit: "bytes", limit: limit as u64 })
    }

    /// Others were faster, time after time.
    pub(crate) fn contended(operation: &'static str) -> Self {
        let detail = "others changed the queue first, time after time".to_owned();
        Self::Store(StoreError::Throttled { operation, detail })
    }
}
