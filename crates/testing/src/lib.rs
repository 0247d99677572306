//! Conformance suites, models and checkers. A development dependency only.
//!
//! A backend passes the store's contract by adding a test file of ten lines:
//! ```
//! # use millpond_testing::Subject;
//! async fn memory() -> Subject {
//!     Subject::new(|environment| Box::pin(async move {
//!         std::sync::Arc::new(millpond_store::MemoryStore::new(&environment)) as _
//!     })).await
//! }
//! millpond_testing::store_conformance!(memory);
//! # fn main() {}
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::large_futures,
    reason = "this crate is test code: a broken expectation ends the test"
)]

pub mod conformance;
pub mod consumer_suite;
pub mod faulty_objects;
pub mod hostile;
pub mod isolation;
pub mod lane_faults;
pub mod lane_model;
pub mod lane_once;
pub mod lane_suite;
pub mod log_faults;
pub mod log_history;
pub mod log_model;
pub mod log_suite;
pub mod mapping;
mod pace;
pub mod queue_model;
pub mod queue_operations;
pub mod queue_runs;
pub mod queue_suite;
pub mod queue_worker_suite;
mod real_waits;
pub mod sequencer_faults;
pub mod sequencer_model;
pub mod sequencer_suite;
pub mod store_model;
mod subject;
mod sweep;

pub use pace::{Watched, in_virtual_time};
pub use real_waits::with_real_waits;
pub use subject::{Subject, bounded};
