//! Queues, on the store in memory.
#![allow(
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::large_futures,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a broken expectation ends the test"
)]

mod behaviours;
mod limits;
mod loans;
mod overload;
mod sweep;
mod terms;
mod wake;
mod worker;
