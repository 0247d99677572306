//! The API as a door of the server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use millpond_store::Clock;

use super::{Api, ApiError};
use crate::http::Door;

/// What the paths of the API begin with.
pub const PREFIX: &str = "/v1/";

/// How often queues that were used through the API are maintained.
const MAINTAIN_EVERY: Duration = Duration::from_secs(5);

#[async_trait]
impl Door for Api {
    fn name(&self) -> &'static str {
        "v1"
    }

    fn may_wait(&self, request: &Request<Bytes>) -> bool {
        Self::may_wait(request)
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        Self::handle(self, request).await
    }
}

impl Api {
    /// Maintains queues that were used here until it is closed, by the machine's clock.
    pub async fn maintain_until_closed(self, clock: Arc<dyn Clock>) {
        while !self.is_closed() {
            clock.sleep(MAINTAIN_EVERY).await;
            self.maintain().await;
        }
    }
}

/// Refuses everything: for a server with access keys that cannot check them for the API.
pub fn refuse_all() -> Box<super::Authorize> {
    Box::new(|_, _, _, _| {
        let message =
            "this server has access keys, which the native API does not check yet; it is closed";
        Err(ApiError::new(StatusCode::FORBIDDEN, "access_denied", message))
    })
}
