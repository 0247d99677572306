//! DynamoDB behind Millpond's waist: a [`Store`](millpond_store::Store) over one table, of Amazon's service or
//! of any other that speaks its protocol.
//!
//! What it is not: a general DynamoDB client. Nothing of the service's expression language, indexes or data
//! model shows through; whoever wants those uses the SDK.
//!
//! # Guarantees
//! - The waist's contract, checked by the conformance suite on two independent engines.
//! - **One mechanism for retries**: throttling, lost connections, timeouts and server errors are tried again with
//!   exponential backoff and full jitter, bounded in number and time. The SDK's own retries are off.
//! - **An unknown outcome is resolved, not guessed**: a write that may have happened is sent again as it was; a
//!   condition that then fails on the write's own version means that it had been applied. What cannot be resolved
//!   within the bounds is returned as [`UnknownOutcome`](millpond_store::StoreError::UnknownOutcome).
//! - **Expiry is exact** by the environment's clock: the service removes what expired days later, but neither
//!   reads nor conditions see it.
//! - **The meter holds what the service reports**: [`DynamoDbStore::meter`].
//!
//! # Table
//! One table, four attributes of its own, and the item's attributes flat under their own names:
//!
//! | attribute | type | holds |
//! |---|---|---|
//! | `pk` | S, partition key | the partition |
//! | `sk` | B, sort key | the sort key, in byte order |
//! | `ver` | N | the version, a 64-bit number without sign |
//! | `exp` | N, the TTL attribute | the expiry in whole seconds since 1970; missing when there is none |
//! | any other | N, S, B | the item's numbers, text and bytes |
//!
//! # Example
//! ```
//! use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, TableOptions};
//! use millpond_store::{Attributes, Environment, Expect, Key, Store, StoreError, Write};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
//! # let endpoint = format!("http://{}", listener.local_addr().unwrap());
//! # tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
//! let environment = Environment::system();
//! // Without endpoint, region and credentials, the SDK finds them in its usual ways.
//! let config = DynamoDbConfig::new("millpond")?
//!     .endpoint(endpoint)
//!     .region("eu-central-1")
//!     .credentials("example", "example");
//! let store = DynamoDbStore::open(config, &environment).await?;
//! store.admin().create_table(TableOptions::default()).await?;
//!
//! let key = Key::new("greetings", b"hello".as_slice())?;
//! let attributes = Attributes::new().with("text", "good morning");
//! store.write(Write::put(key.clone(), attributes, Expect::Absent, environment.version())).await?;
//!
//! let item = store.get(&key).await?.expect("it was just put");
//! assert_eq!(item.attributes.text("text")?, "good morning");
//! println!("{}", store.meter().read());
//! # Ok(()) }
//! ```

pub mod limits;

mod admin;
mod capacity;
mod client;
mod condition;
mod config;
mod each;
mod failure;
mod group;
mod item;
mod objects;
mod read;
mod retry;
mod store;
mod write;

pub use admin::{Check, Creation, DynamoDbAdmin, Finding, Role, TableOptions, TableReport, policy};
pub use config::{Credentials, DynamoDbConfig, TableName};
pub use objects::{ObjectOptions, Objects};
pub use store::DynamoDbStore;
