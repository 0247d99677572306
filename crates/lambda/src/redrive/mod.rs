//! Bringing dead letters back, where they are in Kinesis or SQS, or go there. What does the same for Millpond's own queues
//! and logs is in [`millpond_consumer::redrive`].

mod kinesis;
mod sqs;
mod to;

pub use kinesis::{KinesisLetters, ShardLetters};
pub use sqs::SqsLetters;
pub use to::{ToKinesis, ToSqs};
