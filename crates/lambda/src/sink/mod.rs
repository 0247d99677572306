//! Sinks for dead letters.

mod batches;
mod kinesis;
mod sqs;
mod stored;

pub use kinesis::KinesisSink;
pub(crate) use kinesis::partition_key_of;
pub use sqs::SqsSink;
pub(crate) use sqs::group_of;
pub(crate) use stored::{Part, StoredSink};
