//! Sinks, sources and the breaker with real clients, against the AWS emulator moto.
//!
//! `cargo xtask moto --run -- cargo test -p millpond-lambda --test moto -- --ignored`
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

#[path = "../support/mod.rs"]
mod support;

mod breaker;
mod cloud;
mod sinks;
mod streams;
