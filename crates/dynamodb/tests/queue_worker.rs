//! Workers and limits over DynamoDB, on an engine within the test process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

mod support;

use support::world::dynoxide;

millpond_testing::queue_worker_suite!(dynoxide);
