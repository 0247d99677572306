//! Consumers: what they remember of messages, and their dead letters.

mod import;
mod letters;
mod redrive;
mod state;

use http::{Method, StatusCode};
use millpond_consumer::redrive::RedriveError;
use millpond_consumer::state::StateError;

pub use letters::LetterOutput;

use super::error::ApiError;
use super::route::Route;

/// The routes of consumers.
pub fn routes() -> Vec<Route> {
    let get = Method::GET;
    vec![
        Route::new(
            get.clone(),
            "/v1/consumers/{consumer}/sources",
            "list_consumer_sources",
            "The sources and shards that a consumer keeps state of.",
            state::sources,
        ),
        Route::new(
            get.clone(),
            "/v1/consumers/{consumer}/state",
            "show_consumer_state",
            "What a consumer remembers of messages: tasks, attempts, errors.",
            state::show,
        ),
        Route::new(
            Method::DELETE,
            "/v1/consumers/{consumer}/state",
            "forget_consumer_message",
            "Forgets what a consumer remembers of a message: when it comes again, it is as if for the first time.",
            state::forget,
        ),
        Route::new(
            Method::POST,
            "/v1/consumers/{consumer}/import",
            "import_consumer_state",
            "Takes over the state that aws-stream-consumer-core kept, from items of its table. What is there already is not undone.",
            import::import,
        ),
        Route::new(
            get,
            "/v1/letters",
            "list_letters",
            "Consumers' dead letters in a queue or in a partition of a topic, oldest first.",
            letters::list,
        ),
        Route::new(
            Method::POST,
            "/v1/letters/redrive",
            "redrive_letters",
            "Sends what is in dead letters to a queue or a topic; a letter in a queue is removed once it is there.",
            redrive::redrive,
        ),
    ]
}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        let message = error.to_string();
        match error {
            StateError::Store(error) => error.into(),
            StateError::Unreadable { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "corrupt", message)
            }
            StateError::Contended { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
            }
        }
    }
}

impl From<RedriveError> for ApiError {
    fn from(error: RedriveError) -> Self {
        let message = error.to_string();
        match error {
            RedriveError::Queue(error) => error.into(),
            RedriveError::Log(error) => error.into(),
            RedriveError::Spill(_) | RedriveError::Unreachable(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message),
        }
    }
}
