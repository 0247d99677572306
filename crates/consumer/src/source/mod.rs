//! Events as sources deliver them, and the records in them.

mod dynamodb;
mod event;
mod kinesis;
mod kpl;
mod record;
mod sqs;
mod window;

pub(crate) use event::Only;
pub use event::{Event, EventError};
pub use kpl::{Aggregate, AggregateError, AggregatedRecord, HashRange, UserRecord};
pub use record::{Record, Scope, SourceKind, Unusable};
pub use window::Window;
