//! The ready functions. The binaries in `src/bin` are these, with example handlers; a function of your own is as short.
//!
//! | function | invoked by | does |
//! |---|---|---|
//! | [`run`] a [`Consumer`](millpond_consumer::Consumer) | Kinesis, DynamoDB Streams, SQS | runs handlers over each message |
//! | [`intake`] | the same | puts each message into a sequencer |
//! | [`ranges`] | the stream of the sequencer's table | hands on what is in order now |
//! | [`QueueWorker`] | a [`Waker`](crate::Waker), its schedule, itself | works a queue down |
//! | [`LogWorker`] | the stream of the log's table, its schedule, itself | handles the records of a topic |

mod consumer;
mod forward;
mod intake;
mod log_worker;
mod prepared;
mod queue_worker;
mod ranges;
mod worker_event;

pub use consumer::run;
pub use forward::Forward;
pub use intake::{intake, intake_into};
pub use log_worker::{LogAnswer, LogEnd, LogWorker};
pub use prepared::{Prepared, open_queue};
pub use queue_worker::{QueueWorker, WorkerAnswer};
pub use ranges::{PassedRange, ranges};
pub use worker_event::WorkerEvent;
