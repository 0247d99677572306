//! Millpond's default store: one directory on this machine.
//!
//! One writer thread takes all writes that wait, checks their conditions, commits them together with one sync, and
//! answers them. Reads use what is committed and never wait for the writer. Expired items and deleted rows are
//! removed in the background.
//!
//! What it is not: replicated, or open to several processes. Beyond one machine, use the DynamoDB backend.
//!
//! # Guarantees
//! - The contract of [`Store`](millpond_store::Store).
//! - What is acknowledged is on disk, unless [`Durability::UnsafeNoSync`] is asked for.
//! - A failed commit or a panic of the writer stops the store: every later call gets
//!   [`Poisoned`](millpond_store::StoreError::Poisoned), and opening it again decides what is there.
//! - Damage is reported as [`Corrupt`](millpond_store::StoreError::Corrupt), never skipped: every row has a checksum,
//!   and a commit that was acknowledged and is missing is noticed when the store is opened.
//! - Deleted rows do not slow down reads.
//!
//! # Example
//! ```
//! use millpond_embedded::EmbeddedStore;
//! use millpond_store::{Attributes, Environment, Expect, Key, Store, StoreError, Write};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! # let temporary = tempfile::tempdir().expect("a temporary directory");
//! # let directory = temporary.path().join("store");
//! let environment = Environment::system();
//! let key = Key::new("greetings", b"hello".as_slice())?;
//!
//! let store = EmbeddedStore::open_at(&directory, &environment).await?;
//! let attributes = Attributes::new().with("text", "good morning");
//! store.write(Write::put(key.clone(), attributes, Expect::Absent, environment.version())).await?;
//! store.close().await;
//!
//! let store = EmbeddedStore::open_at(&directory, &environment).await?;
//! let item = store.get(&key).await?.expect("it was acknowledged");
//! assert_eq!(item.attributes.text("text")?, "good morning");
//! # Ok(()) }
//! ```

mod acked;
mod batch;
mod cargo;
mod commits;
mod directory;
mod engine;
mod faults;
mod gaps;
mod limits;
mod maintenance;
mod open;
mod options;
mod record;
mod rowkey;
mod shared;
mod store;
mod writer;

pub use faults::DiskFaults;
pub use options::{CargoOptions, Durability, Maintenance, Options};
pub use store::EmbeddedStore;
