//! A server that runs, and raw HTTP to talk to it with.

pub mod collector;
pub mod gate;
pub mod http;
pub mod http2;
pub mod load;
pub mod server;
pub mod sqs;

use std::time::{Duration, Instant};

pub use collector::Collector;
pub use gate::Gate;
pub use http::{get, post, request};
pub use server::Server;

/// Long enough for anything on a machine that does ten other things; nothing waits that long when all is well.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again until it is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
