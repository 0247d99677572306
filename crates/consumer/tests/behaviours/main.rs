//! What a consumer does, a topic a file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::large_futures,
    reason = "test code: a broken expectation ends the test"
)]

mod breaker;
mod deadline;
mod kpl;
mod log_line;
mod order;
mod own;
mod recorded;
mod records;
mod redrive;
mod responses;
mod settings;
mod sinks;
mod state;
mod suite;
mod support;
mod tasks;
