//! The functions as processes, behind a Runtime API with real deadlines, on a DynamoDB engine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

#[path = "../support/mod.rs"]
mod support;

mod breaker;
mod consumer;
mod deadlines;
mod kills;
mod lambda_api;
mod sequencer;
mod settings;
mod template;
mod trial;
mod workers;
