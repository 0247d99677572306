//! What can go wrong, by what a caller does about it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::item::Item;
use crate::key::Key;

/// The error underneath, kept for the log.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// A result of a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Whether a failed write may have happened all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// It did not happen.
    Definite,
    /// It may have happened: retry it with the same version, or look for that version.
    Unknown,
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// An expectation of a write did not hold. Look at the current items and decide anew. Nothing was written,
    /// unless the conflict [came after an unknown outcome](Conflicts::after_unknown).
    #[error("{0}")]
    Conflict(Box<Conflicts>),
    /// A named thing is not there. Create it, or correct the name.
    #[error("{what} was not found")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The backend has no capacity left for the moment, after all retries; nothing was written. Come back later.
    #[error("{operation} was throttled: {detail}")]
    Throttled {
        /// What was tried.
        operation: &'static str,
        /// What the backend said.
        detail: String,
    },
    /// Something is over a limit; nothing was written. Make it smaller.
    #[error("{what} is too large: {size} {unit}, the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// What sizes are counted in.
        unit: &'static str,
        /// The largest that is accepted.
        limit: usize,
    },
    /// A parameter makes no sense; nothing was written. Correct it.
    #[error("{field} {problem}")]
    Invalid {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The backend cannot be reached or failed; nothing was written. Retry.
    #[error("{operation} failed: {detail}")]
    Unavailable {
        /// What was tried.
        operation: &'static str,
        /// What went wrong.
        detail: String,
        /// The error underneath.
        #[source]
        cause: Option<Cause>,
    },
    /// The write may or may not have happened. Retry it with the same version: if it happened, the store will
    /// know it again.
    #[error("the outcome of {operation} is unknown: {detail}")]
    UnknownOutcome {
        /// What was tried.
        operation: &'static str,
        /// What went wrong.
        detail: String,
        /// The error underneath.
        #[source]
        cause: Option<Cause>,
    },
    /// Stored data is damaged. Nothing was skipped or repaired: restore it, or look into the place named.
    #[error("{place} is damaged: {detail}")]
    Corrupt {
        /// The file, table or item.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The engine stopped serving after a failure that it cannot judge. Restart: recovery decides.
    #[error("the store has stopped: {reason}")]
    Poisoned {
        /// What happened.
        reason: String,
    },
    /// The set-up is wrong. Do what the remedy says.
    #[error("{problem}; {remedy}")]
    Misconfigured {
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

impl StoreError {
    /// Whether the write may have happened all the same.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self {
            Self::UnknownOutcome { .. } => Certainty::Unknown,
            Self::Conflict(conflicts) if conflicts.after_unknown => Certainty::Unknown,
            _ => Certainty::Definite,
        }
    }

    /// Whether this is a conflict.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// Whether the same call may succeed later, with nothing else changed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Throttled { .. } | Self::Unavailable { .. } | Self::UnknownOutcome { .. }
        )
    }

    /// One conflict.
    #[must_use]
    pub fn conflict(key: Key, current: Option<Item>) -> Self {
        Self::conflicts(Conflict { index: 0, key, current }, Vec::new())
    }

    /// Several conflicts of one group.
    #[must_use]
    pub fn conflicts(first: Conflict, rest: Vec<Conflict>) -> Self {
        Self::Conflict(Box::new(Conflicts { first, rest, after_unknown: false }))
    }

    /// The same error, when an earlier attempt at the same write had an unknown outcome: what would be definite
    /// by itself no longer is.
    #[must_use]
    pub fn after_unknown(self, operation: &'static str) -> Self {
        match self {
            Self::Conflict(mut conflicts) => {
                conflicts.after_unknown = true;
                Self::Conflict(conflicts)
            }
            // What is refused for what it is was refused the first time too.
            Self::UnknownOutcome { .. } | Self::TooLarge { .. } | Self::Invalid { .. } => self,
            other => Self::UnknownOutcome {
                operation,
                detail: format!("an earlier attempt may have been applied; then: {other}"),
                cause: Some(Arc::new(other)),
            },
        }
    }

    /// A parameter that makes no sense.
    #[must_use]
    pub fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }

    /// Damaged data.
    #[must_use]
    pub fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt { place: place.into(), detail: detail.into() }
    }

    /// A wrong set-up.
    #[must_use]
    pub fn misconfigured(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Misconfigured { problem: problem.into(), remedy: remedy.into() }
    }

    /// Refuses more than `limit` bytes.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], which names `what`.
    pub const fn check_size(what: &'static str, size: usize, limit: usize) -> Result<()> {
        if size <= limit {
            return Ok(());
        }
        Err(Self::TooLarge { what, size, unit: "bytes", limit })
    }
}

/// One expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Which write of the call, from 0.
    pub index: usize,
    /// The key it was about.
    pub key: Key,
    /// What is there now; nothing when the item is absent.
    pub current: Option<Item>,
}

/// The expectations of one call that did not hold: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts {
    first: Conflict,
    rest: Vec<Conflict>,
    after_unknown: bool,
}

impl Conflicts {
    /// Whether an earlier attempt at the same write had an unknown outcome. That attempt may then have been
    /// applied and overwritten since: only the current item can tell.
    #[must_use]
    pub const fn after_unknown(&self) -> bool {
        self.after_unknown
    }

    /// The first of them.
    #[must_use]
    pub const fn first(&self) -> &Conflict {
        &self.first
    }

    /// All of them, in the order of the writes.
    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has ", self.first.key)?;
        match &self.first.current {
            Some(item) => write!(f, "version {} now", item.version)?,
            None => f.write_str("no item now")?,
        }
        match self.rest.len() {
            0 => Ok(()),
            more => write!(f, " (and {more} more conflicts)"),
        }
    }
}
