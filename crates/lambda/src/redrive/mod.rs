//! Bringing dead letters back, where they are in SQS, or go to Kinesis or SQS. What does the same for Millpond's own queues
//! and logs is in [`millpond_consumer::redrive`].

mod sqs;
mod to;

pub use sqs::SqsLetters;
pub use to::{ToKinesis, ToSqs};
