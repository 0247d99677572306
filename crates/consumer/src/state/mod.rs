//! What is remembered of messages between deliveries.

mod duplicates;
pub mod legacy;
mod marker;
mod message;
mod row;
mod store;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use millpond_store::{StoreError, Version};

use crate::position::{Position, RecordKey};
use crate::source::Scope;

pub use duplicates::Known;
pub use marker::{Marker, Span};
pub use message::{MessageState, Status, TaskState};
pub use store::{KnownSource, StateRow, StoreState};

/// Whose state: a consumer's, of one source and shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The consumer's name.
    pub consumer: Arc<str>,
    /// The source in full, and the shard.
    pub scope: Arc<Scope>,
}

/// State as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it says.
    pub state: MessageState,
    /// In which version.
    pub version: Version,
}

/// A change of one message's state.
#[derive(Debug, Clone)]
pub struct Change {
    /// Which message.
    pub position: Position,
    /// What was there when the work began.
    pub base: Option<Stored>,
    /// What there should be now. Where another has written since, its and this work are [merged](MessageState::merge).
    pub now: MessageState,
}

/// Why state could not be read or written. Nothing is lost: what is not saved is done again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StateError {
    /// The store failed.
    #[error("the state cannot be reached: {0}")]
    Store(#[from] StoreError),
    /// A row is not one of a consumer, and nothing of its batch runs. [`StoreState::rows`] shows it, [`StoreState::forget`]
    /// removes it.
    #[error(
        "the state of {position} cannot be read: {problem}; `millpond consumer forget` removes it"
    )]
    Unreadable {
        /// Whose it is: what it is forgotten by.
        position: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Others kept writing. The message comes again.
    #[error("the state of {position} kept changing while it was written")]
    Contended {
        /// Whose it is.
        position: String,
    },
}

impl StateError {
    /// Whether it stays until somebody corrects the set-up: what a [breaker](crate::Breaker) is for.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        match self {
            Self::Store(error) => matches!(
                error,
                StoreError::NotFound { .. }
                    | StoreError::Misconfigured { .. }
                    | StoreError::Poisoned { .. }
            ),
            Self::Unreadable { .. } | Self::Contended { .. } => false,
        }
    }
}

/// Keeps the state of messages. [`StoreState`] does, in any store of Millpond.
///
/// An implementation must never let a stale writer overwrite newer state, and must forget what is past its time.
#[async_trait]
pub trait State: fmt::Debug + Send + Sync + 'static {
    /// The state of these messages, in their order; most have none.
    ///
    /// # Errors
    /// When it is not known: then nothing is run.
    async fn load(
        &self,
        address: &Address,
        positions: &[Position],
    ) -> Result<Vec<Option<Stored>>, StateError>;

    /// Saves changes, one outcome for each, in order.
    async fn save(
        &self,
        address: &Address,
        changes: Vec<Change>,
    ) -> Vec<Result<Stored, StateError>>;

    /// Notes that a batch of a stream begins, and says whether an earlier one with its first or last record among
    /// these never ended.
    ///
    /// # Errors
    /// When it cannot be noted: then nothing is run.
    async fn open(&self, address: &Address, span: Span) -> Result<Marker, StateError>;

    /// Notes that a batch ended as it should. Records in `left` were not come to and stay under suspicion.
    ///
    /// # Errors
    /// When it cannot be noted: the next delivery will be careful without need.
    async fn close(
        &self,
        address: &Address,
        marker: Marker,
        left: Vec<RecordKey>,
    ) -> Result<(), StateError>;

    /// What is known of messages with these ids, in order.
    ///
    /// # Errors
    /// When it is not known: then nothing is run.
    async fn recall(
        &self,
        address: &Address,
        ids: &[String],
    ) -> Result<Vec<Option<Known>>, StateError>;

    /// Remembers finished messages by their ids, for this long.
    ///
    /// # Errors
    /// When some could not be remembered.
    async fn remember(
        &self,
        address: &Address,
        known: Vec<Known>,
        window: Duration,
    ) -> Result<(), StateError>;
}
