//! What can go wrong.

use millpond_store::{Certainty, StoreError};

/// The outcome of a queue operation.
pub type Result<T, E = QueueError> = std::result::Result<T, E>;

/// Why a queue operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueueError {
    /// There is no such queue or topic. Create it.
    #[error("there is no {what} called {name:?}")]
    NotFound {
        /// A queue, a topic or a client.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A queue or topic of this name exists with another configuration. Open it, or change it with `update_config`.
    #[error("{what} {name:?} exists with another {field}")]
    Exists {
        /// A queue or a topic.
        what: &'static str,
        /// Its name.
        name: String,
        /// What differs.
        field: &'static str,
    },
    /// A parameter makes no sense; nothing was written. Correct it.
    #[error("{field} {problem}")]
    Invalid {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Something is over a limit; nothing was written. Make it smaller.
    #[error("{what} has {size} {unit}, at most {limit} are accepted")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// What is counted.
        unit: &'static str,
        /// The largest that is accepted.
        limit: usize,
    },
    /// This is not a receipt of this queue and client. Use the one that came with the message.
    #[error("the receipt is not valid: {reason}")]
    ReceiptInvalid {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The lease has ended: another holds the message, or it was given back. Nothing was changed; drop the work or
    /// make it harmless to repeat.
    #[error("the lease on message {message} is lost: {reason}")]
    LeaseLost {
        /// Which message.
        message: String,
        /// Why.
        reason: Lost,
    },
    /// The store below failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The message is finished, or was purged, shed or moved.
    Finished,
    /// Another receiver holds it.
    Taken,
    /// It was given back.
    GivenBack,
    /// The lease has run out, and the call was to be made in time.
    RunOut,
    /// It would be on loan for longer than the call allows in all.
    TooLong,
    /// There never was such a message.
    Unknown,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Finished => "the message is finished",
            Self::Taken => "another receiver holds the message",
            Self::GivenBack => "it was given back",
            Self::RunOut => "it has run out",
            Self::TooLong => "it would be longer in all than allowed",
            Self::Unknown => "there is no such message",
        })
    }
}

impl QueueError {
    /// Whether the change may have happened all the same.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self {
            Self::Store(error) => error.certainty(),
            _ => Certainty::Definite,
        }
    }

    /// Whether the same call may succeed later, with nothing else changed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient() || error.is_conflict(),
            _ => false,
        }
    }

    pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }

    pub(crate) const fn check_bytes(what: &'static str, size: usize, limit: usize) -> Result<()> {
        if size <= limit {
            return Ok(());
        }
        Err(Self::TooLarge { what, size, unit: "bytes", limit })
    }
}
