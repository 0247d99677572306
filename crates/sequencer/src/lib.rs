//! Messages in any order in, the same messages in order out.
//!
//! Producers number the messages of a queue and [`put`](Sequencer::put) them in any order, from any number of
//! processes, each as often as they like. A queue's [cursor](Cursor) waits for the first number that is missing;
//! everything before it is delivered: [`read`](Sequencer::read) it, [`subscribe`](Sequencer::subscribe) to it, or take
//! it from the table's stream ([`streams::ranges`]).
//!
//! What it is not: a queue whose messages are leased and acknowledged, or a log that gives the numbers itself.
//!
//! # Guarantees
//! - A put that returned is stored as durably as its store stores, and will be delivered once nothing before it is
//!   missing, whoever fails meanwhile: by the next put of any number, or by the [sweeper](Sequencer::sweep).
//! - What puts return, what subscriptions announce and what is stored agree: every number of an epoch is passed once,
//!   in order.
//! - The same number with other content is an error, never a replacement.
//! - A number that is given up leaves a [`Gap`] among what is read.
//!
//! `docs/guarantees.md` has their limits and their tests, `docs/decisions/0007-sequencer.md` the reasons.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use millpond_sequencer::{Advance, Config, Sequencer, SequencerError};
//! use millpond_store::{Environment, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), SequencerError> {
//! let environment = Environment::system();
//! let store = Arc::new(MemoryStore::new(&environment));
//! let sequencer = Sequencer::open(store, &environment, "orders", Config::default())?;
//!
//! // Number 1 waits for number 0.
//! assert_eq!(sequencer.put("customer-7", 1, "second").await?.advanced, None);
//! assert_eq!(sequencer.missing("customer-7").await?, [0..1]);
//! let put = sequencer.put("customer-7", 0, "first").await?;
//! assert_eq!(put.advanced, Advance::new(0, 2));
//!
//! let read = sequencer.read("customer-7", 0..2).await?;
//! let payloads: Vec<_> = read.messages().map(|message| message.message.payload.clone()).collect();
//! assert_eq!(payloads, ["first", "second"]);
//!
//! // Again is fine, otherwise is not.
//! assert!(sequencer.put("customer-7", 1, "second").await.is_ok());
//! let other = sequencer.put("customer-7", 1, "something else").await;
//! assert!(matches!(other, Err(SequencerError::Conflict { seq: 1, .. })));
//! # Ok(()) }
//! ```

mod admit;
mod advance;
mod config;
mod cursor;
mod error;
mod gap;
mod gaps;
mod heal;
mod hub;
mod item;
mod json;
mod known;
mod late;
pub mod limits;
mod manage;
mod message;
mod names;
mod plan;
mod put;
mod read;
mod reader;
mod sequencer;
pub mod streams;
mod subscribe;
mod sweep;
mod unsettled;

pub use advance::Advance;
pub use config::{Config, ConflictRule, GapPolicy, LatePolicy, Retention, Start, Window};
pub use cursor::Cursor;
pub use error::{Result, SequencerError};
pub use gap::{Gap, GapReason};
pub use json::JsonFeed;
pub use manage::Trimmed;
pub use message::{Entry, Message};
pub use names::QueueName;
pub use put::{Arrival, BatchResult, PutResult};
pub use read::{Delivered, Output, Pending, Read};
pub use reader::Reader;
pub use sequencer::Sequencer;
pub use subscribe::{AllSubscription, Announcement, Event, From, Subscription};
pub use sweep::Swept;
