//! The embedded store, and everything on it.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a broken expectation ends the test"
)]

mod cargo;
mod common;
mod conformance;
mod consumer;
mod damage;
mod directory;
mod failures;
mod gaps;
mod lanes;
mod log;
mod models;
mod power;
mod queue;
mod queue_worker;
mod sequencer;
mod sweeper;
