//! The waist of Millpond: one small trait, [`Store`], that every product stands on.
//!
//! A store holds [items](Item): a [key](Key) (a partition and a sort key in byte order), flat typed
//! [attributes](Attributes), a [version](Version) and an optional [expiry](Expiry). It offers strongly
//! consistent reads and **one** write primitive, compare-and-swap, alone or in atomic groups. There is no
//! expression language, which keeps the model trivial and the conformance suite complete.
//!
//! What it is not: a database to build arbitrary applications on. It has no secondary indexes, no scans over
//! partitions and no server-side filters.
//!
//! # Guarantees
//! The numbered contract is on [`Store`]; each clause names the conformance test that checks it on every
//! backend and every adapter.
//!
//! # Example
//! ```
//! use millpond_store::{Attributes, Environment, Expect, Key, MemoryStore, Store, StoreError, Write};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! let environment = Environment::system();
//! let store = MemoryStore::new(&environment);
//! let key = Key::new("greetings", b"hello".as_slice())?;
//!
//! let attributes = Attributes::new().with("text", "good morning");
//! let first = environment.version();
//! store.write(Write::put(key.clone(), attributes, Expect::Absent, first)).await?;
//!
//! // A second writer that expects the item to be absent learns what is there instead.
//! let late = Write::put(key.clone(), Attributes::new(), Expect::Absent, environment.version());
//! match store.write(late).await {
//!     Err(StoreError::Conflict(conflicts)) => {
//!         let current = conflicts.first().current.as_ref().expect("the first writer's item");
//!         assert_eq!(current.version, first);
//!         assert_eq!(current.attributes.text("text")?, "good morning");
//!     }
//!     other => panic!("expected a conflict, got {other:?}"),
//! }
//! # Ok(()) }
//! ```

mod adapters;
mod attributes;
mod backoff;
mod clock;
mod environment;
mod error;
pub mod hex;
mod hints;
mod ids;
mod item;
mod key;
pub mod limits;
mod memory;
mod query;
mod rng;
mod store;
mod time;
mod write;

pub use adapters::faults::{Fault, FaultPlan, FaultRates, Faulty};
pub use adapters::latency::{Latency, Slow};
pub use adapters::meter::{Meter, Metered, Operation, Reading, Usage};
pub use adapters::retrying::Retrying;
pub use attributes::{Attributes, Name, Value};
pub use backoff::Backoff;
pub use clock::{Clock, SystemClock, VirtualClock};
pub use environment::Environment;
pub use error::{Cause, Certainty, Conflict, Conflicts, Result, StoreError};
pub use hints::{ChangeHint, Hints};
pub use ids::UniqueId;
pub use item::{Expiry, Item, Version};
pub use key::{Key, Partition, SortKey};
pub use memory::MemoryStore;
pub use query::{Consistency, Direction, Page, Query, SortRange, collect};
pub use rng::{Rng, SeededRng, SystemRng};
pub use store::{Profile, Store};
pub use time::{Monotonic, Timestamp};
pub use write::{
    Change, Expect, Verdict, Write, check_each, check_group, judge_group, judge_write,
};
