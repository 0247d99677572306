//! A disk that fails when it is told to, for tests.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::{Engine, EngineError, RowChange, View, Waste};

/// When the disk fails. Commits are counted from the opening of the store, from 1.
#[derive(Debug, Default)]
pub struct DiskFaults {
    commits: AtomicU64,
    /// The commit that fails before anything reached the disk, as when the disk is full.
    before: AtomicU64,
    /// The commit that fails although all of it reached the disk, as when a sync reports an older error.
    after: AtomicU64,
    /// The commit in which the writer panics.
    panic: AtomicU64,
    /// Writes to cargo files and syncs of them, and which of them fails.
    cargo_calls: AtomicU64,
    cargo: AtomicU64,
}

impl DiskFaults {
    /// A disk that does not fail.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The `commit`-th commit fails before anything is written.
    pub fn fail_before(&self, commit: u64) {
        self.before.store(commit, Ordering::SeqCst);
    }

    /// The `commit`-th commit fails after everything is written.
    pub fn fail_after(&self, commit: u64) {
        self.after.store(commit, Ordering::SeqCst);
    }

    /// The writer panics at the `commit`-th commit.
    pub fn panic_at(&self, commit: u64) {
        self.panic.store(commit, Ordering::SeqCst);
    }

    /// The `call`-th call on a cargo file fails, counted from the opening of the store, from 1: a write after a part
    /// of it was written, as on a full disk, or a sync.
    pub fn fail_cargo(&self, call: u64) {
        self.cargo.store(call, Ordering::SeqCst);
    }

    /// How many calls on cargo files there were.
    #[must_use]
    pub fn cargo_calls(&self) -> u64 {
        self.cargo_calls.load(Ordering::SeqCst)
    }

    fn is_cargo_planned(&self) -> bool {
        let call = self.cargo_calls.fetch_add(1, Ordering::SeqCst) + 1;
        call == self.cargo.load(Ordering::SeqCst)
    }

    pub(crate) fn cargo_write(&self, a_part: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.is_cargo_planned() {
            a_part()?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(crate) fn cargo_sync(&self) -> io::Result<()> {
        let planned = self.is_cargo_planned();
        if planned { Err(io::Error::other("planned failure of a sync")) } else { Ok(()) }
    }

    /// How many commits there were.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }
}

/// An engine on such a disk.
pub(crate) struct FaultyEngine<E> {
    pub inner: E,
    pub faults: Arc<DiskFaults>,
}

fn failure(text: &str) -> EngineError {
    EngineError::Io(io::Error::other(text.to_owned()))
}

impl<E: Engine> Engine for FaultyEngine<E> {
    fn commit(&self, changes: Vec<RowChange>) -> Result<(), EngineError> {
        let commit = self.faults.commits.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(commit != self.faults.panic.load(Ordering::SeqCst), "planned panic");
        if commit == self.faults.before.load(Ordering::SeqCst) {
            return Err(failure("planned failure of a write"));
        }
        self.inner.commit(changes)?;
        if commit == self.faults.after.load(Ordering::SeqCst) {
            return Err(failure("planned failure of a sync"));
        }
        Ok(())
    }

    fn view(&self) -> Arc<dyn View> {
        self.inner.view()
    }

    fn begin_flush(&self) -> Result<(), EngineError> {
        self.inner.begin_flush()
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.inner.flush()
    }

    fn compact_step(&self) -> Result<bool, EngineError> {
        self.inner.compact_step()
    }

    fn waste(&self) -> Waste {
        self.inner.waste()
    }
}
