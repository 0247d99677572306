//! Lanes and segments: how Millpond's products lay messages out over a [store](millpond_store).
//!
//! A **lane** is one partition that holds segment rows; a **segment** is many messages in one small row, with their
//! bytes (the **cargo**) inside it, beside it, or in an object store. An [`UnorderedLane`] never makes two writers
//! meet; a [`SequencedLane`] gives every message a number, without gaps, in an order that the store decides.
//!
//! Both collect what callers append at the same time into one write (group commit, with no timer), so that cost
//! per message falls as load rises.
//!
//! What it is not: a queue or a log. It knows nothing of leases, groups or consumers: what a product wants to
//! remember of a segment's messages it keeps in the row's state, which a lane changes by compare-and-swap.
//!
//! # Guarantees
//! - An append that returned is stored as durably as the store stores.
//! - Numbers of a sequenced lane have no gap and are never given twice, also after everything was removed.
//! - An [`Append`] that is tried again after an unknown outcome is in the lane once.
//! - What is read is what was appended: every segment has a checksum.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use millpond_lanes::{Ground, Lane, LaneConfig, Message, SequencedLane};
//! use millpond_store::{Environment, MemoryStore, StoreError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! let environment = Environment::system();
//! let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
//! let lane = SequencedLane::open(&ground, "orders", LaneConfig::LOG)?;
//!
//! let numbers = lane.append(vec![Message::new("first"), Message::new("second")]).await?;
//! assert_eq!(numbers.into_iter().collect::<Result<Vec<_>, _>>()?, [0, 1]);
//!
//! let page = lane.page(lane.scan_from(0).await?).await?;
//! let messages = lane.load(&page.segments[0]).await?;
//! assert_eq!(messages[1].body, "second");
//! # Ok(()) }
//! ```

mod append;
pub mod cargo;
pub(crate) mod carry;
pub mod codec;
mod commit;
mod config;
mod index;
mod lane;
pub mod limits;
mod message;
mod once;
mod rows;
mod scan;
mod segment;
mod sequenced;
mod tail;
mod unordered;

pub use append::{Append, Terms};
pub use carry::Carry;
pub use config::{Ground, LaneConfig};
pub use index::{Entry, Index};
pub use lane::Lane;
pub use message::{Message, Once};
pub use scan::{Scan, SegmentPage};
pub use segment::{Kind as LaneKind, Place, Segment};
pub use sequenced::{Given, Refusal, SequencedLane, Stretch};
pub use unordered::{Position, UnorderedLane};
