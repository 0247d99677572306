//! The SQS protocol: an HTTP request in, the service's answer out.
//!
//! [`Sqs`] has no listener: whoever has one hands it whole requests. It understands both encodings that clients use
//! (AWS JSON 1.0 and the Query protocol with XML answers), checks signatures when keys are configured, and stands on
//! the queues of any store, so that several nodes may serve one store.
//!
//! All 23 actions are there; `docs/sqs.md` lists them with Millpond's own attributes and what differs from the
//! service.
//!
//! # Guarantees
//! - What was acknowledged to a client is stored, as durably as the store stores.
//! - A client that hangs up while it waits is not handed messages: what was claimed for it is given back, and the
//!   receive does not count.
//! - With keys, a request is answered only if its signature is right: any change of its method, address, body, or of a
//!   header that counts is refused.
//! - Nothing of a request is executed in part, except that the entries of a batch have an outcome each.
//!
//! # A tour
//! ```
//! use std::sync::Arc;
//! use bytes::Bytes;
//! use http::Request;
//! use millpond_lanes::Ground;
//! use millpond_sqs::{Sqs, SqsError, SqsOptions};
//! use millpond_store::{Environment, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment::system();
//! let store = Arc::new(MemoryStore::new(&environment));
//! let sqs = Sqs::open(&Ground::new(store, &environment), SqsOptions::default()).await?;
//!
//! let ask = |action: &str, body: &'static str| {
//!     Request::post("http://localhost:9324/")
//!         .header("x-amz-target", format!("AmazonSQS.{action}"))
//!         .body(Bytes::from_static(body.as_bytes()))
//! };
//! let created = sqs.handle(ask("CreateQueue", r#"{"QueueName":"orders"}"#)?).await;
//! assert_eq!(created.body(), r#"{"QueueUrl":"http://localhost:9324/000000000000/orders"}"#);
//!
//! let url = "http://localhost:9324/000000000000/orders";
//! let form = "Action=SendMessage&MessageBody=one+chair";
//! let sent = sqs.handle(Request::post(url).body(Bytes::from_static(form.as_bytes()))?).await;
//! assert!(sent.body().starts_with(b"<?xml"));
//!
//! let missing = r#"{"QueueUrl":"http://localhost:9324/000000000000/chairs"}"#;
//! let refused = sqs.handle(ask("ReceiveMessage", missing)?).await;
//! assert_eq!(refused.status(), 400);
//! let code = "AWS.SimpleQueueService.NonExistentQueue;Sender";
//! assert_eq!(refused.headers()["x-amzn-query-error"], code);
//! # Ok(()) }
//! ```

mod actions;
mod attributes;
mod call;
mod error;
mod flight;
mod keys;
pub mod limits;
mod live;
mod maintenance;
mod message;
mod metrics;
mod moves;
mod options;
mod paging;
mod place;
mod policy;
mod record;
mod registry;
mod signature;
mod signer;
mod sqs;
mod waiting;
mod watch;
mod wire;

pub use actions::ACTIONS;
pub use keys::{AccessKey, AccessKeys};
pub use metrics::SqsMetrics;
pub use options::{AccountId, InvalidOption, Region, SqsOptions};
pub use place::queue_name;
pub use signer::NotSigned;
pub use sqs::{Sqs, SqsError};
pub use watch::{Part, Watch};
