//! How a store is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::faults::DiskFaults;
use crate::limits::{
    CARGO_COMMIT_BYTES_MIN, CARGO_FILE_BYTES, CARGO_ROW_BYTES_MIN, CARGO_STEP_BYTES, GAP_WORTH,
};

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// After it is on disk: it survives the process and the machine's power.
    #[default]
    Durable,
    /// Before it is on disk: **a power failure loses acknowledged writes**. For tests and caches. What is
    /// acknowledged still survives the process.
    UnsafeNoSync,
}

/// Who removes expired items and reclaims space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Maintenance {
    /// A task of the runtime in which the store was opened.
    #[default]
    Background,
    /// Nobody but the caller, with [`sweep_step`](crate::EmbeddedStore::sweep_step) and
    /// [`reclaim`](crate::EmbeddedStore::reclaim): for tests under a virtual clock.
    Manual,
}

/// When large items are written to cargo files, once, instead of to the engine's tables, and how large these files
/// are. Only speed and space depend on it, and it may differ each time a store is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CargoOptions {
    /// Items of this size and up are large. Default: 16 KiB.
    pub item_bytes_min: usize,
    /// A commit writes its large items to a cargo file when they have this many bytes together. Default: 256 KiB, as
    /// it costs a sync of its own.
    pub commit_bytes_min: usize,
    /// A cargo file is closed once it has this many bytes. Default: 64 MiB.
    pub file_bytes: u64,
    /// Items are moved out of a file that is mostly waste in steps of so many of its bytes. Default: 4 MiB.
    pub step_bytes: u64,
}

impl Default for CargoOptions {
    fn default() -> Self {
        Self {
            item_bytes_min: CARGO_ROW_BYTES_MIN,
            commit_bytes_min: CARGO_COMMIT_BYTES_MIN,
            file_bytes: CARGO_FILE_BYTES,
            step_bytes: CARGO_STEP_BYTES,
        }
    }
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) directory: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) maintenance: Maintenance,
    pub(crate) faults: Option<Arc<DiskFaults>>,
    pub(crate) gap_worth: Duration,
    pub(crate) cargo: CargoOptions,
}

impl Options {
    /// The store in `directory`, which is made when it is not there: durable, with background maintenance.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            durability: Durability::default(),
            maintenance: Maintenance::default(),
            faults: None,
            gap_worth: GAP_WORTH,
            cargo: CargoOptions::default(),
        }
    }

    /// When writes are acknowledged.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Who does the maintenance.
    #[must_use]
    pub fn maintenance(self, maintenance: Maintenance) -> Self {
        Self { maintenance, ..self }
    }

    /// When large items go to cargo files.
    #[must_use]
    pub fn cargo(self, cargo: CargoOptions) -> Self {
        Self { cargo, ..self }
    }

    /// Makes the disk fail as planned, for tests.
    #[must_use]
    pub fn faults(self, faults: Arc<DiskFaults>) -> Self {
        Self { faults: Some(faults), ..self }
    }

    /// How long a step over deleted rows must take to be remembered. Only speed depends on it; tests set it to
    /// zero, so that everything is remembered.
    #[must_use]
    pub fn gap_worth(self, gap_worth: Duration) -> Self {
        Self { gap_worth, ..self }
    }
}
