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
mod duplicates;
mod kills;
mod kpl;
mod order;
mod own;
mod records;
mod responses;
mod settings;
mod sinks;
mod state;
mod support;
mod tasks;
