//! The whole: requests in, answers out.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use millpond_lanes::Ground;
use millpond_queue::QueueError;

use crate::metrics::{Counted, SqsMetrics};
use crate::options::SqsOptions;

/// The SQS protocol over the queues of a store. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Sqs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    counted: Counted,
}

/// Why the protocol cannot be served.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SqsError {
    /// An option makes no sense. Correct it.
    #[error("{field} {problem}")]
    Option {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The queues below failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl Sqs {
    /// Opens the queues of a store.
    ///
    /// # Errors
    /// [`SqsError::Option`] when an option makes no sense, [`SqsError::Queue`] when the store fails.
    #[expect(clippy::unused_async, reason = "it will read what was left unfinished")]
    pub async fn open(_ground: &Ground, _options: SqsOptions) -> Result<Self, SqsError> {
        Ok(Self { inner: Arc::new(Inner { counted: Counted::default() }) })
    }

    /// Answers one request. The caller has bounded its body. It never fails: errors are answers. Dropping the future
    /// means that the client has hung up: what was claimed for it is given back.
    #[expect(clippy::unused_async, reason = "the actions come next")]
    pub async fn handle(&self, _request: Request<Bytes>) -> Response<Bytes> {
        self.inner.counted.answered("Unknown", "OK");
        Response::new(Bytes::new())
    }

    /// Whether this request may wait for messages, so that the caller can count it apart from those that never do.
    #[must_use]
    pub fn may_wait(&self, _request: &Request<Bytes>) -> bool {
        false
    }

    /// Ends all waits with what they have, and lets no other request wait: for a graceful stop.
    pub fn close(&self) {}

    /// What was counted since the start.
    #[must_use]
    pub fn metrics(&self) -> SqsMetrics {
        self.inner.counted.read()
    }
}
