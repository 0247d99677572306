//! Logs, on the store in memory.
#![allow(clippy::unwrap_used, reason = "test code: a broken expectation ends the test")]

mod memory;
