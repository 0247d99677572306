//! The command line, as people and scripts use it: the real binary, on directories, tables and running servers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test's helper: a failure ends the test"
)]

mod access;
mod bench;
mod consumer;
mod docs;
mod doors;
mod errors;
mod groups;
mod lines;
mod others;
mod stores;
mod tls;
mod world;
