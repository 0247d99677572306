//! Where a message was before it was moved to another queue.

use millpond_store::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a message was before, and why it is not there any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The queue.
    pub queue: String,
    /// The client.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// Its id there.
    pub id: String,
    /// Why it was moved.
    pub reason: MoveReason,
    /// How often it was received there.
    pub receives: u32,
    /// The last error that a receiver reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was sent, in milliseconds since 1970.
    pub sent_ms: u64,
    /// When it was moved, in milliseconds since 1970.
    pub moved_ms: u64,
    /// The last deliveries, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl Origin {
    /// When it was sent.
    #[must_use]
    pub const fn sent(&self) -> Timestamp {
        Timestamp::from_millis(self.sent_ms)
    }
}

/// Why a message was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveReason {
    /// It was received too often.
    ReceiveLimit,
    /// It stood behind such a one in its group.
    Parked,
    /// It was shed for its age.
    ShedAge,
    /// It was shed since too many waited.
    ShedDepth,
    /// It was shed since a backlog stood.
    ShedDelay,
}

/// One delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was received, in milliseconds since 1970.
    pub at_ms: u64,
    /// How it ended.
    pub ended: Ended,
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Not yet.
    Open,
    /// Its lease ran out.
    Lapsed,
    /// It was given back.
    Released,
    /// It failed.
    Failed,
}
