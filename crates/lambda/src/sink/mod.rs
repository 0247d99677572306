//! Sinks for dead letters.

mod batches;
mod kinesis;
mod sqs;
mod stored;

pub use kinesis::KinesisSink;
pub use sqs::SqsSink;
pub(crate) use stored::{Part, StoredSink};
