//! What stands behind a path: whoever answers whole requests.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use millpond_sqs::Sqs;

/// Whoever answers whole requests. The body is bounded before it comes here; dropping the future means that the client
/// has hung up.
#[async_trait]
pub trait Door: Send + Sync + 'static {
    /// What metrics call it.
    fn name(&self) -> &'static str;

    /// Whether this request may wait for something to happen, so that it is counted apart.
    fn may_wait(&self, request: &Request<Bytes>) -> bool;

    /// The answer.
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes>;
}

#[async_trait]
impl Door for Sqs {
    fn name(&self) -> &'static str {
        "sqs"
    }

    fn may_wait(&self, request: &Request<Bytes>) -> bool {
        Self::may_wait(self, request)
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        Self::handle(self, request).await
    }
}
