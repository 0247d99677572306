//! The seam: what the store needs from a storage engine, in bytes.
//!
//! The seam keeps the choice of engine in one file and lets tests put failures in its place.

mod archive;
mod compaction;
mod fjall;
mod journal;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_store::{Clock, Direction, StoreError};

pub(crate) use self::fjall::{FjallEngine, panic_text};

/// The tables of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// Items by row key.
    Items,
    /// When items end: expiry, then row key.
    Expiry,
    /// The last commits, by number modulo how many are kept.
    Commits,
    /// Cargo files: their ends, and what of them is in use.
    Cargo,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Items => "items",
            Self::Expiry => "expiry",
            Self::Commits => "commits",
            Self::Cargo => "cargo",
        })
    }
}

/// One changed row: a value to put, or nothing to delete the row.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub table: Table,
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A row that a scan has come to.
pub(crate) struct ScannedRow {
    pub key: Bytes,
    pub value: Bytes,
    /// How long the step to it took, without reading its value.
    pub waited: Duration,
}

/// What a scan calls for each row.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(ScannedRow) -> Result<ControlFlow<()>, StoreError>;

/// How much of a store is waste.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waste {
    /// Rows in tables, deleted ones and their tombstones included.
    pub rows: u64,
    /// Tombstones among them.
    pub tombstones: u64,
}

/// What can go wrong below the seam.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("{0}")]
    Io(#[source] io::Error),
    #[error("{0}")]
    Damaged(String),
    #[error("another process has it open")]
    Locked,
    #[error("the engine stopped after an earlier failure")]
    Stopped,
}

/// A storage engine.
pub(crate) trait Engine: Send + Sync {
    /// Makes all changes or none. When it returns, they are durable; readers see none of them earlier.
    fn commit(&self, changes: Vec<RowChange>) -> Result<(), EngineError>;

    /// What is committed. To be called by the writer only, and between its commits: then a view never holds a
    /// part of a commit.
    fn view(&self) -> Arc<dyn View>;

    /// Begins to write out what is held in memory. Does not wait.
    fn begin_flush(&self) -> Result<(), EngineError>;

    /// Writes out what is held in memory, and waits until that is done.
    fn flush(&self) -> Result<(), EngineError>;

    /// Makes one step, of bounded size, towards tables without deleted rows. Returns whether there was one to make.
    fn compact_step(&self) -> Result<bool, EngineError>;

    /// How much there is to reclaim.
    fn waste(&self) -> Waste;
}

/// The state of a store after some commit.
pub(crate) trait View: Send + Sync {
    /// Where the view stands in the engine's own order of changes: before all that comes later.
    fn position(&self) -> u64;

    /// The row under `key`.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, EngineError>;

    /// Visits the rows from `range.0` up to and without `range.1`. Returns how long the last, vain step took, or
    /// nothing when the visitor broke off.
    fn scan(
        &self,
        table: Table,
        range: (&[u8], &[u8]),
        direction: Direction,
        clock: &dyn Clock,
        visit: Visit<'_>,
    ) -> Result<Option<Duration>, ScanError>;
}

/// A scan fails by itself or by its visitor.
pub(crate) enum ScanError {
    Engine(EngineError),
    Visitor(StoreError),
}

impl From<EngineError> for ScanError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}
