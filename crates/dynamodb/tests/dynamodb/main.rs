//! The DynamoDB store and everything on it, over HTTP, on an engine within the test process.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a broken expectation ends the test"
)]

mod admin;
mod batches;
mod conformance;
mod consumer;
mod consumer_cost;
mod cost;
mod faults;
mod groups;
mod hints;
mod lanes;
mod local;
mod log;
mod log_cost;
mod meter;
mod objects;
mod policy;
mod queries;
mod queue;
mod queue_cost;
mod queue_worker;
mod s3;
mod sequencer;
mod sequencer_cost;
mod sequencer_processes;
mod setup;
mod support;
