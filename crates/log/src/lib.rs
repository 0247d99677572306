//! A partitioned log without a broker: topics, dense offsets, replay, and consumer groups with leases, over a
//! [store](millpond_store) and perhaps an object store.
//!
//! - **Append** is one conditional write for each partition and flush. Payload travels in the row while it is small, and
//!   else in one shared object for all partitions of the flush (or in items, without an object store). A record gets its
//!   offset in the write that makes it readable: nothing is numbered before.
//! - **Read** from any place: an offset, a time, the earliest, the latest. Retention removes a prefix, and who reads below
//!   it gets a typed [`Gap`].
//! - **Groups** share partitions among workers by leases. An epoch fences off who was replaced; a checkpoint never goes
//!   back. One heartbeat for each worker keeps all of its leases, so a thousand partitions cost no more than one.
//!   [`Consumer::run`] does everything around a handler; a [`Puller`] is for handlers that are elsewhere, behind HTTP
//!   for example.
//!
//! What it is not: exactly-once for side effects (handlers run at least once; topic, partition and offset name a record
//! for ever), transactions over partitions, or a server.
//!
//! # Guarantees
//! Each with its limits and its test in `docs/guarantees.md`.
//! - Acknowledged is stored, as durably as the store and the object store store.
//! - Offsets of a partition have no gap and are never given twice, also after everything was removed.
//! - Records of one key, and of one call, keep their order; a batch sent with a [`Sequence`] is in the log once.
//! - No two workers hold a live lease on one partition, and a worker that was replaced cannot checkpoint.
//! - [`RunEnd::Done`] is said only after every partition was looked at once more; contention is [`RunEnd::Busy`].
//!
//! # A tour
//! ```
//! use std::sync::Arc;
//! use millpond_lanes::Ground;
//! use millpond_log::{
//!     ConsumerOptions, Failure, Log, LogError, NewRecord, Record, RunEnd, RunOptions, Seek,
//!     TopicConfig, Until,
//! };
//! use millpond_store::{Environment, MemoryStore};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), LogError> {
//! let environment = Environment::system();
//! let log = Log::new(&Ground::new(Arc::new(MemoryStore::new(&environment)), &environment));
//! let orders = log.create("orders", TopicConfig::with_partitions(2)).await?;
//!
//! // Records of one key go to one partition, in order.
//! let placed = orders.append(NewRecord::keyed("customer-7", "a book").header("via", "web")).await?;
//! let paid = orders.append(NewRecord::keyed("customer-7", "paid")).await?;
//! assert_eq!((placed.partition, placed.offset + 1), (paid.partition, paid.offset));
//!
//! // Anybody can read, from anywhere; the answer says whether there is more.
//! let batch = orders.read(placed.partition, placed.offset, 1).await?;
//! assert_eq!(batch.records[0].payload, "a book");
//! assert!(batch.more);
//! let since = orders.seek(placed.partition, Seek::Time(batch.records[0].timestamp)).await?;
//! assert_eq!(since, placed.offset);
//!
//! // A group handles each record once its turn has come; this run ends when all is done.
//! let billing = orders.consumer("billing", ConsumerOptions::default()).await?;
//! let handler = |record: Record| async move {
//!     println!("{}/{}: {:?}", record.partition, record.offset, record.payload);
//!     Ok::<(), Failure>(())
//! };
//! let options = RunOptions { until: Until::Drained, ..RunOptions::default() };
//! let report = billing.run(handler, options).await?;
//! assert_eq!((report.end, report.handled), (RunEnd::Done, 2));
//!
//! // What a seek outside of what exists says.
//! let error = orders.seek(placed.partition, Seek::Offset(99)).await.unwrap_err();
//! assert!(error.to_string().ends_with("does not exist: there are 0 to 2"));
//! # Ok(()) }
//! ```

mod append;
mod cache;
mod config;
mod error;
mod flush;
mod follow;
mod group;
pub mod limits;
mod log;
mod name;
mod partitioner;
mod producer;
mod read;
mod record;
mod retention;
mod seek;
mod sequence;
mod topic;

pub use append::{AppendOptions, Appended, Position, Sequence};
pub use config::TopicConfig;
pub use error::{LogError, Result};
pub use follow::Follower;
pub use group::{
    Assignment, Balance, Consumer, ConsumerOptions, DeadLetter, DeadLetters, Failure, GroupConfig,
    GroupDescription, GroupPartition, Handler, Poison, Pull, Pulled, Puller, RunEnd, RunOptions,
    RunReport, Start, Stop, TopicSink, Until, WorkerDescription,
};
pub use log::{Log, LogOptions};
pub use name::{GroupName, ProducerId, TopicName, WorkerId};
pub use partitioner::partition_of;
pub use producer::{Producer, ProducerOptions, Receipt};
pub use read::{Batch, Gap};
pub use record::{NewRecord, Record};
pub use retention::Trimmed;
pub use seek::Seek;
pub use topic::{PartitionDescription, Topic, TopicDescription};
