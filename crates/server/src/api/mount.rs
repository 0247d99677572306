//! The API as a door of the server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use millpond_sqs::{AccessKeys, AccountId};
use millpond_store::{Clock, Environment};

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
        Self::may_wait(self, request)
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        Self::handle(self, request).await
    }
}

impl Api {
    /// Maintains queues that were used here until it is closed, by the machine's clock.
    pub async fn maintain_until_closed(self, clock: Arc<dyn Clock>) {
        loop {
            tokio::select! {
                biased;
                () = self.until_closed() => return,
                () = clock.sleep(MAINTAIN_EVERY) => {}
            }
            self.maintain().await;
        }
    }
}

/// What may be done with a queue by a key that is not for all queues: what names no other queue.
const OTHERS_NAMED: [&str; 3] = ["create_queue", "configure_queue", "redrive_messages"];

/// Checks each request against the server's access keys.
///
/// A key may use an operation when one of its `actions` matches `v1:OPERATION`. One that is not for all queues may use
/// only operations on a queue that one of its `queues` matches, and that name no other queue. The API knows nothing of
/// accounts, so a key of an account of its own may not use it.
pub fn authorize_by(keys: AccessKeys, environment: Environment) -> Box<super::Authorize> {
    Box::new(move |parts, body, operation, about| {
        let denied =
            |message: String| Err(ApiError::new(StatusCode::FORBIDDEN, "access_denied", message));
        let key = match keys.verify(parts, body, environment.now()) {
            Ok(key) => key,
            Err(error) => return denied(format!("{} ({})", error.text, error.code)),
        };
        let id = &key.id;
        if key.account.is_some() || AccountId::new(id).is_ok() {
            return denied(format!("key {id} is one account's, and the native API is for all"));
        }
        if !key.may(&format!("v1:{operation}")) {
            return denied(format!("key {id} may not use v1:{operation}"));
        }
        let queue = about.filter(|_| is_about_queue(parts) && !OTHERS_NAMED.contains(&operation));
        if !key.may_use("*") && !queue.is_some_and(|queue| key.may_use(queue)) {
            return denied(format!("key {id} may not use v1:{operation} on what it names"));
        }
        Ok(())
    })
}

fn is_about_queue(parts: &http::request::Parts) -> bool {
    parts.uri.path().starts_with("/v1/queues/")
}
