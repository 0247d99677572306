//! What can go wrong, by what a caller does about it.

use millpond_store::{Certainty, StoreError, Timestamp};

/// A result of the log.
pub type Result<T, E = LogError> = std::result::Result<T, E>;

/// Why the log did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// There is no such topic. Create it, or correct the name.
    #[error("there is no topic {topic:?}; {}", there_are(.known))]
    UnknownTopic {
        /// What was asked for.
        topic: String,
        /// Topics that there are, or some of them.
        known: Vec<String>,
    },
    /// A topic of this name is there already, with another configuration.
    #[error("there is a topic {topic:?} already, with another configuration")]
    TopicExists {
        /// Its name.
        topic: String,
    },
    /// The topic has no such partition. Choose one of those there are.
    #[error("topic {topic:?} has no partition {partition}: there are 0 to {}", .partitions - 1)]
    UnknownPartition {
        /// The topic.
        topic: String,
        /// What was asked for.
        partition: u32,
        /// How many there are.
        partitions: u32,
    },
    /// There is no such group. Join it first, or correct the name.
    #[error("topic {topic:?} has no group {group:?}; {}", there_are(.known))]
    UnknownGroup {
        /// The topic.
        topic: String,
        /// What was asked for.
        group: String,
        /// Groups that there are, or some of them.
        known: Vec<String>,
    },
    /// A seek or a read outside what exists. Choose an offset from `earliest` to `latest`.
    #[error(
        "offset {wanted} of partition {partition} does not exist: there are {earliest} to {latest}"
    )]
    OutOfRange {
        /// The partition.
        partition: u32,
        /// What was asked for.
        wanted: u64,
        /// The first record that is still there.
        earliest: u64,
        /// The offset that the next record will have.
        latest: u64,
    },
    /// A parameter makes no sense, or is over a limit; nothing was written. Correct it.
    #[error("{field} {problem}")]
    Invalid {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Something is over a limit; nothing was written. Make it smaller.
    #[error("{what} is too large: {size}, the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// The largest that is accepted.
        limit: usize,
    },
    /// Another writer came with a greater fence token: this one has been replaced, and should end.
    #[error("fence token {token} was replaced by {current}")]
    Fenced {
        /// The token that the append came with.
        token: u64,
        /// The greatest one so far.
        current: u64,
    },
    /// An idempotent append does not continue where its producer stopped. Send `expected` first.
    #[error("the producer's next sequence is {expected}, not {got}")]
    OutOfSequence {
        /// What comes next.
        expected: u64,
        /// What came.
        got: u64,
    },
    /// An idempotent append is in the log already, longer ago than its offset is remembered. Go on with `next`.
    #[error("sequence {sequence} is in the log already; the producer's next one is {next}")]
    AlreadyAppended {
        /// What came.
        sequence: u64,
        /// What comes next.
        next: u64,
    },
    /// Another worker has the lease, or it was reset: what this worker did since its last checkpoint is done again
    /// by whoever has it. Drop the work.
    #[error("the lease of partition {partition} was lost (epoch {epoch})")]
    LeaseLost {
        /// The partition.
        partition: u32,
        /// The epoch that was held.
        epoch: u64,
    },
    /// The record was not tried, because one before it in the same partition failed. Send it again after that one.
    #[error("not tried, because an earlier record of partition {partition} failed: {before}")]
    NotTried {
        /// The partition.
        partition: u32,
        /// What happened to the earlier one.
        before: Box<LogError>,
    },
    /// The producer or consumer was closed.
    #[error("{what} is closed")]
    Closed {
        /// Which.
        what: &'static str,
    },
    /// The dead letter could not be delivered; the record stays where it is and is tried again.
    #[error("a dead letter could not be delivered: {reason}")]
    Sink {
        /// What the sink said.
        reason: String,
    },
    /// The store; its certainty says whether a write may have happened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LogError {
    /// Whether the write may have happened all the same.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self {
            Self::Store(error) => error.certainty(),
            _ => Certainty::Definite,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }

    pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }

    pub(crate) const fn check_size(what: &'static str, size: usize, limit: usize) -> Result<()> {
        if size <= limit { Ok(()) } else { Err(Self::TooLarge { what, size, limit }) }
    }

    pub(crate) fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Store(StoreError::corrupt(place, detail))
    }
}

fn there_are(known: &[String]) -> String {
    match known {
        [] => "there is none yet".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}

/// A time as stored.
pub(crate) fn millis(time: Timestamp) -> i64 {
    number(time.as_millis())
}

/// A number as stored.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
