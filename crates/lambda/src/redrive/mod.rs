//! Bringing dead letters back, where they are in SQS or go to Kinesis or SQS. What does the same for Millpond's own queues
//! and logs is in [`millpond_consumer::redrive`].

mod letters;
mod original;
mod to;

pub use letters::SqsLetters;
pub use to::{ToKinesis, ToSqs};
