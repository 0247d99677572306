//! What an answer says when something went wrong: one shape, and one table that maps every error of the libraries to it.

use http::StatusCode;
use millpond_log::LogError;
use millpond_queue::QueueError;
use millpond_sequencer::SequencerError;
use millpond_store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// For programs: one of a fixed set, see `docs/cli.md`.
    pub code: String,
    /// For people: names the thing, and what to do.
    pub message: String,
    /// The field of the request that it is about, when it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// An error with its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", body.message)]
pub struct ApiError {
    /// The status.
    pub status: StatusCode,
    /// What the answer says.
    pub body: Box<ErrorBody>,
}

impl ApiError {
    /// An error of this status and code.
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let body = ErrorBody { code: code.to_owned(), message: message.into(), field: None };
        Self { status, body: Box::new(body) }
    }

    /// The same, about a field.
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.body.field = Some(field.into());
        self
    }

    /// A field of the request makes no sense.
    pub fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", format!("{field} {problem}")).field(field)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    fn too_large(what: &str, message: String) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).field(what)
    }

    fn conflict(code: &str, message: String) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let (status, code) = match &error {
            StoreError::Invalid { field, .. } => {
                return Self::new(StatusCode::BAD_REQUEST, "invalid", message).field(*field);
            }
            StoreError::TooLarge { what, .. } => return Self::too_large(what, message),
            StoreError::NotFound { .. } => (StatusCode::NOT_FOUND, "not_found"),
            StoreError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            StoreError::Throttled { .. } => (StatusCode::TOO_MANY_REQUESTS, "throttled"),
            StoreError::Unavailable { .. } => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            StoreError::UnknownOutcome { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "unknown_outcome")
            }
            StoreError::Poisoned { .. } => (StatusCode::SERVICE_UNAVAILABLE, "stopped"),
            StoreError::Corrupt { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "corrupt"),
            StoreError::Misconfigured { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "misconfigured")
            }
        };
        Self::new(status, code, message)
    }
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        let message = error.to_string();
        match error {
            QueueError::NotFound { .. } => Self::not_found(message),
            QueueError::Exists { field, .. } => Self::conflict("exists", message).field(field),
            QueueError::Invalid { field, .. } => {
                Self::new(StatusCode::BAD_REQUEST, "invalid", message).field(field)
            }
            QueueError::TooLarge { what, .. } => Self::too_large(what, message),
            QueueError::ReceiptInvalid { .. } => {
                Self::new(StatusCode::BAD_REQUEST, "receipt_invalid", message).field("receipt")
            }
            QueueError::LeaseLost { .. } => Self::conflict("lease_lost", message),
            QueueError::Store(error) => error.into(),
        }
    }
}

impl From<SequencerError> for ApiError {
    fn from(error: SequencerError) -> Self {
        let message = error.to_string();
        match error {
            SequencerError::Conflict { .. } => Self::conflict("conflict", message).field("seq"),
            SequencerError::WindowFull { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "window_full", message)
            }
            SequencerError::Late { .. } => Self::conflict("late", message),
            SequencerError::NotStarted { .. } => Self::conflict("not_started", message),
            SequencerError::OutOfRange { .. } => {
                Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "out_of_range", message)
            }
            SequencerError::Resetting { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "resetting", message)
            }
            SequencerError::NotAllowed { .. } => Self::conflict("not_allowed", message),
            SequencerError::TooLarge { what, .. } => Self::too_large(what, message),
            SequencerError::Invalid { field, .. } => {
                Self::new(StatusCode::BAD_REQUEST, "invalid", message).field(field)
            }
            SequencerError::Lagged { .. } => Self::conflict("lagged", message),
            SequencerError::Store(error) => error.into(),
        }
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        let message = error.to_string();
        match error {
            LogError::UnknownTopic { .. } => Self::not_found(message).field("topic"),
            LogError::UnknownPartition { .. } => Self::not_found(message).field("partition"),
            LogError::UnknownGroup { .. } => Self::not_found(message).field("group"),
            LogError::TopicExists { .. } => Self::conflict("exists", message),
            LogError::OutOfRange { .. } => {
                Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "out_of_range", message)
            }
            LogError::Invalid { field, .. } => {
                Self::new(StatusCode::BAD_REQUEST, "invalid", message).field(field)
            }
            LogError::TooLarge { what, .. } => Self::too_large(what, message),
            LogError::Fenced { .. } => Self::conflict("fenced", message),
            LogError::OutOfSequence { .. } => Self::conflict("out_of_sequence", message),
            LogError::AlreadyAppended { .. } => Self::conflict("already_appended", message),
            LogError::LeaseLost { .. } => Self::conflict("lease_lost", message),
            LogError::NotTried { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_tried", message)
            }
            LogError::Closed { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopped", message)
            }
            LogError::Sink { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
            }
            LogError::Store(error) => error.into(),
        }
    }
}
