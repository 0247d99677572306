//! Traces: where the time of a request goes, told to an OpenTelemetry collector.
//!
//! A request has a span (`request.rs`), whose parent is whatever its headers name (`parent.rs`), and inside it spans for
//! what is done: the action, its wait, the requests to the store (`store.rs`). Spans that have ended go into a bounded
//! outbox (`outbox.rs`), from which a task sends them in batches (`export.rs`, over `collector.rs`). Nobody waits for that
//! task: what does not fit is dropped and counted.
//!
//! Without a collector nothing of this exists, and a request is asked one question: is there one?

mod collector;
mod export;
pub mod limits;
mod outbox;
mod parent;
mod request;
mod store;
mod tracer;

pub use outbox::SpanCounts;
pub use request::Traced;
pub use store::TracedStore;
pub use tracer::{Traces, TracesError};
