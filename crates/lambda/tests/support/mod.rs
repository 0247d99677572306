//! What both test programs share: HTTP, a Runtime API, a DynamoDB engine, function processes.
#![allow(dead_code, reason = "each test program uses its part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

pub mod engine;
pub mod events;
pub mod function;
pub mod gate;
pub mod http;
pub mod runtime_api;

use std::time::Duration;

use millpond_store::Environment;

/// The longest that anything may take on a slow and busy machine. Nothing waits this long unless it is broken.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `is_so`, looking again and again.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let clock = Environment::system().clock;
    let began = clock.monotonic();
    while !is_so().await {
        assert!(clock.monotonic().since(began) < PATIENCE, "{what}: it never was so");
        clock.sleep(Duration::from_millis(20)).await;
    }
}
