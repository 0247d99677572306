//! Consumes batches message by message: Kinesis, DynamoDB Streams and SQS as Lambda delivers them, and Millpond's own
//! queue and log.
//!
//! A source delivers records in batches, and delivers a batch again when anything in it failed. One bad record then
//! blocks a shard, and good ones are processed over and over. A [`Consumer`] stands in between: it keeps, for each message
//! and each named task, whether it is done and how often it failed; it runs only what is not done; it sends what can never
//! work to a sink for dead letters, and answers the source with exactly what must come again.
//!
//! - **Tasks** are named handlers, for [one message](Builder::one) or [all of a batch](Builder::all), with
//!   [steps](Message::step). They return an [`Outcome`]: done, retry, reject. Panics, hangs and killed processes count as
//!   failed attempts.
//! - **Order** is per key, per shard, or none. A message that fails holds up only those that must come after it.
//! - **State** is sparse: a batch that succeeds writes at most one small item. It is kept per message, so that batches may be
//!   halved, cut anew or run side by side.
//! - **Dead letters** carry the message, the record, the reason and the history; a message counts as finished only with
//!   the sink's receipt. What is too large is spilled to an object store. [`redrive`] brings them back.
//! - **Time**: handlers are cut off at a share of the time that is left, and the answer comes before the deadline, whatever
//!   hangs.
//! - **Windows**: what is finished can be [gathered](Builder::window) in the state of a tumbling window, each message once.
//!
//! It knows no AWS client: [`State`], [`Sink`] and [`Breaker`] are traits, and `handle` takes bytes and returns bytes.
//!
//! What it is not: exactly-once for side effects. A process that dies after its work and before it is saved does it again;
//! [`Message::idempotency_key`] is the same each time.
//!
//! # Guarantees
//! Each with its limits and its test in `docs/guarantees.md`.
//! - No message is lost: it is done by every task, or with a sink, or it comes again.
//! - A task that is done for a message is not run again, and one that failed n times is not run an n+1st time, as long as
//!   the state can be saved.
//! - Messages of one key (or shard) run strictly in order.
//! - A message that kills its process is found out and sent to the dead letters, whatever else is in its batch.
//!
//! # A tour
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use millpond_consumer::{Consumer, MemorySink, Message, Outcome, Reason, StoreState};
//! use millpond_store::{Environment, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment::system();
//! let store = Arc::new(MemoryStore::new(&environment));
//! let dead = MemorySink::new();
//!
//! let consumer = Consumer::builder("orders")
//!     .state(StoreState::new(store, &environment))
//!     .dead_letters(dead.clone())
//!     .one("ship", |message: Message| async move {
//!         let order = message.value().cloned().unwrap_or_default();
//!         match order["item"].as_str() {
//!             None => Outcome::reject("the order has no item"),
//!             // The first time, there is no van.
//!             Some("table") if message.attempt() == 1 => Outcome::retry("no van"),
//!             Some(_) => Outcome::Done,
//!         }
//!     })
//!     .attempts(3)
//!     .build()?;
//!
//! let message = |id: &str, receives: u32, body: &str| {
//!     serde_json::json!({
//!         "messageId": id, "body": body, "eventSource": "aws:sqs",
//!         "eventSourceARN": "arn:aws:sqs:eu-central-1:111122223333:orders",
//!         "attributes": {"ApproximateReceiveCount": receives.to_string()},
//!     })
//! };
//! let batch = serde_json::json!({"Records": [
//!     message("a", 1, r#"{"item": "chair"}"#),
//!     message("b", 1, r#"{"item": "table"}"#),
//!     message("c", 1, r#"{"colour": "red"}"#),
//! ]});
//! let deadline = environment.now().plus(Duration::from_secs(10));
//! let (response, report) = consumer.handle(batch.to_string().as_bytes(), deadline).await?;
//!
//! // The table comes again; the chair is done; what can never work is with the dead letters.
//! assert_eq!(response, r#"{"batchItemFailures":[{"itemIdentifier":"b"}]}"#);
//! assert_eq!((report.finished, report.unfinished), (2, 1));
//! let letter = dead.letters().remove(0);
//! assert_eq!((letter.reason, letter.detail.as_str()), (Reason::Rejected, "ship: the order has no item"));
//!
//! // Delivered again, it is the second attempt.
//! let again = serde_json::json!({"Records": [message("b", 2, r#"{"item": "table"}"#)]});
//! let (response, _) = consumer.handle(again.to_string().as_bytes(), deadline).await?;
//! assert_eq!(response, r#"{"batchItemFailures":[]}"#);
//! # Ok(()) }
//! ```

mod adapters;
mod breaker;
mod builder;
mod check;
mod consumer;
mod error;
mod exact;
mod extract;
mod identity;
pub mod limits;
mod message;
mod outcome;
mod position;
pub mod redrive;
mod report;
mod response;
mod run;
mod settings;
pub mod sink;
pub mod source;
pub mod state;
mod task;

pub use adapters::{LogSource, QueueSource, Run};
pub use breaker::{Breaker, BreakerError};
pub use builder::Builder;
pub use consumer::Consumer;
pub use error::{BatchFailed, BuildError};
pub use extract::{Data, Extracted, Extractor, Json, JsonLines, Raw};
pub use identity::Ids;
pub use message::Message;
pub use outcome::{IntoOutcome, IntoOutcomes, Outcome};
pub use position::{Position, RecordKey, Sequence};
pub use report::{Report, TaskReport};
pub use response::Responses;
pub use settings::{Duplicates, Order};
pub use sink::{DeadLetter, MemorySink, Reason, Sink, Spill};
pub use source::{HashRange, SourceKind, Window};
pub use state::{State, StoreState};
