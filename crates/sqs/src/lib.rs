//! The SQS protocol: an HTTP request in, the service's answer out.
//!
//! [`Sqs`] has no listener: whoever has one hands it whole requests. It understands both encodings that clients use
//! (AWS JSON 1.0 and the Query protocol with XML answers), checks signatures when keys are configured, and stands on
//! the queues of any store, so that several nodes may serve one store.

mod keys;
mod metrics;
mod options;
mod sqs;

pub use keys::{AccessKey, AccessKeys};
pub use metrics::SqsMetrics;
pub use options::{AccountId, InvalidOption, Region, SqsOptions};
pub use sqs::{Sqs, SqsError};
