//! Why a message or record is dead.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a message or record is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The record could not be read: malformed, from another source, no messages in it.
    Unusable,
    /// A handler rejected the message, or it lacks its key or sequence property.
    Rejected,
    /// A task failed as often as it may.
    Exhausted,
    /// A task was removed from the consumer before it was done for the message.
    Abandoned,
    /// It was older than the consumer takes.
    Expired,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Unusable, Self::Rejected, Self::Exhausted, Self::Abandoned, Self::Expired];

    /// As it is stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unusable => "unusable",
            Self::Rejected => "rejected",
            Self::Exhausted => "exhausted",
            Self::Abandoned => "abandoned",
            Self::Expired => "expired",
        }
    }

    /// Reads a name back.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
