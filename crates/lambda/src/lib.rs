//! Millpond on AWS Lambda: ready functions, and what a function of your own needs.
//!
//! - **Ready functions**, configured by [environment variables](settings): a stream consumer, a sequencer's intake and its
//!   ranges, a queue's worker and a log's consumer. Each is a few lines around an entry of [`functions`]; replace its
//!   handler by your own.
//! - **Sinks** for dead letters in a Kinesis stream ([`KinesisSink`]) or an SQS queue ([`SqsSink`]): in batches, with what
//!   the service refuses in part sent again, within a bound, and a receipt for each letter.
//! - **A breaker** ([`MappingBreaker`]) that disables exactly the event source mapping through which its function is
//!   invoked, and [`enable`](Mappings::enable) for afterwards.
//! - **Continuation** ([`Invoker`]): a function that has work left at its deadline invokes itself.
//! - **Redrive** ([`redrive`]): dead letters in SQS and Kinesis are listed and brought back; to Kinesis, SQS, or a Millpond queue or
//!   log.
//!
//! What it is not: a framework. [`serve()`] gives a handler the event's bytes and the deadline, and takes bytes; all that
//! a consumer does is in `millpond-consumer`, which runs without AWS.
//!
//! # Guarantees
//! - A function answers before its deadline, also when the store or a sink hangs.
//! - A dead letter counts as sent only with the service's own id for it.
//! - The breaker changes no mapping but the one whose source and function are exactly those of the event.
//! - What is wrong with a function's settings is said at its start, with the name of the variable.
//!
//! # A function of your own
//! ```no_run
//! use millpond_consumer::{Consumer, Message, Outcome};
//! use millpond_lambda::functions::{self, Prepared};
//! use millpond_lambda::settings::Variables;
//! use millpond_lambda::FunctionError;
//!
//! async fn book(message: Message) -> Outcome {
//!     match message.json::<Vec<String>>() {
//!         Ok(_order) => Outcome::Done,
//!         // It will not get better: straight to the dead letters.
//!         Err(error) => Outcome::reject(error),
//!     }
//! }
//!
//! # async fn example() -> Result<(), FunctionError> {
//! // Store, dead letters, attempts, breaker …: all from MILLPOND_ variables.
//! let prepared = Prepared::from(&Variables::of_process()).await?;
//! let consumer = prepared.consumer()?.one("book", book).build()?;
//! functions::run(consumer).await
//! # }
//! ```
//! `docs/lambda.md` goes from nothing to a deployed function.

mod aws;
mod breaker;
mod current;
mod error;
mod failure;
pub mod functions;
mod invoke;
pub mod limits;
mod metrics;
pub mod redrive;
mod serve;
pub mod settings;
mod sink;
mod start;

pub use aws::Aws;
pub use breaker::{Mapping, MappingBreaker, Mappings};
pub use error::{FunctionError, InvokeError};
pub use failure::AwsError;
pub use invoke::{Invoker, Waker};
pub use serve::{Invocation, serve};
pub use sink::{KinesisSink, SqsSink};
pub use start::start;
