//! Queues: messages that are sent, received on loan, and acknowledged.
//!
//! A [`Queue`] holds isolated [clients](Client): a consumer of one never sees, and never pays for, another's messages.
//! Messages are received in the order that the queue or the call says ([`Order`]), stay invisible to others for a
//! while, and come back if they are not acknowledged. Messages that fail too often go to a dead-letter queue; when
//! there is more work than capacity, the old end can be shed; what runs downstream can be limited. A [strict](Strict)
//! queue keeps the order within each message group, and knows again what was sent twice.
//!
//! It works the same on every store. Many messages travel in one segment, whose row is changed by one conditional
//! write: to send, to receive and to acknowledge ten messages takes three writes.
//!
//! What it is not: exactly-once for side effects. A message is delivered at least once; a receiver that dies after
//! its work and before its acknowledgement leaves it to another. Make work harmless to repeat.
//!
//! # Guarantees
//! - What was sent is stored before the call returns, and delivered at least once unless it expired, was purged, shed
//!   or moved to the dead letters; each of these is [counted](Event).
//! - No two live leases on one message. Who holds a lease that has ended, and that another has taken since, can
//!   neither acknowledge nor extend nor give back.
//! - In a strict queue, a message is delivered when all earlier ones of its group are done or come in the same call.
//! - What a receive costs does not depend on how many messages wait, or are on loan.
//!
//! `docs/guarantees.md` says which test checks each.
//!
//! # A tour
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use millpond_lanes::Ground;
//! use millpond_queue::{Message, Nack, Order, QueueConfig, QueueError, Queues, Receive};
//! use millpond_store::{Environment, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), QueueError> {
//! let environment = Environment::system();
//! let store = Arc::new(MemoryStore::new(&environment));
//! let queues = Queues::new(&Ground::new(store, &environment));
//!
//! let orders = queues.create("orders", QueueConfig::default()).await?;
//! let shop = orders.client("shop-7")?;
//! shop.send(Message::new("one chair")).await?;
//! shop.send_batch(vec![Message::new("two tables"), Message::new("a lamp")]).await?;
//!
//! // The oldest first; for this call only, the newest.
//! let oldest = shop.receive(&Receive::up_to(1)).await?.remove(0);
//! assert_eq!(oldest.text(), Some("one chair"));
//! let newest = shop.receive(&Receive::up_to(1).order(Order::Lifo)).await?.remove(0);
//! assert_eq!(newest.text(), Some("a lamp"));
//!
//! // Done; and not done, to be received again at once, with what went wrong.
//! shop.ack(&oldest.receipt).await?;
//! shop.nack(&newest.receipt, Nack { error: "no stock".into(), ..Nack::default() }).await?;
//! let again = shop.receive(&Receive::up_to(10).wait(Duration::from_secs(1))).await?;
//! assert_eq!(again.len(), 2);
//! assert_eq!(again[1].receives, 2);
//!
//! let count = shop.count().await?;
//! assert_eq!((count.available, count.leased), (0, 2));
//! # Ok(()) }
//! ```

mod client;
mod config;
mod counters;
mod error;
mod head;
mod id;
mod lane;
mod limiter;
pub mod limits;
mod message;
mod names;
mod origin;
mod queue;
mod queues;
mod receipt;
mod remains;
mod rows;
mod secret;
mod state;
mod time;
mod topic;
mod view;
pub mod worker;

pub use client::{
    Client, Count, Extension, Heartbeat, Maintained, MessageState, Nack, Peeked, Receive, Redrive,
    Redriven, Settled, TaskState, TaskStatus,
};
pub use config::{
    DeadLetters, Dedup, DedupScope, DelayTarget, GroupPoison, Limits, Order, QueueConfig, Rate,
    Shedding, StatusKeeping, Strict,
};
pub use counters::{Event, Totals};
pub use error::{Lost, QueueError, Result};
pub use id::MessageId;
pub use message::{Attribute, AttributeValue, Delivery, Message, Sent};
pub use names::{ClientId, QueueName};
pub use origin::{Attempt, Ended, MoveReason, Origin};
pub use queue::Queue;
pub use queues::Queues;
pub use receipt::Receipt;
pub use remains::Remains;
pub use topic::Topic;
pub use worker::{Outcome, RunUntil, Trigger, Worker};
