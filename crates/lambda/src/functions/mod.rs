//! The ready functions. The binaries in `src/bin` are these, with example handlers; a function of your own is as short.
//!
//! | function | invoked by | does |
//! |---|---|---|
//! | [`run`] a [`Consumer`](millpond_consumer::Consumer) | Kinesis, DynamoDB Streams, SQS | runs handlers over each message |
//! | [`Intake`] | the same, and its schedule | puts each message into a sequencer, and sweeps that |
//! | [`ranges()`] | the stream of the sequencer's table | hands on what is in order now |
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
pub use forward::{Forward, Forwarded};
pub use intake::{Intake, SweepAnswer};
pub use log_worker::{LogAnswer, LogEnd, LogWorker};
pub use prepared::{AnySink, Prepared, open_queue};
pub use queue_worker::{Done, QueueWorker, WorkerAnswer};
pub use ranges::{PassedRange, ranges};
pub use worker_event::WorkerEvent;
