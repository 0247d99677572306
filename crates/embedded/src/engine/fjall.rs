//! fjall behind the seam.
//!
//! Facts of fjall 3.1.13 that this file leans on (`docs/decisions/0002-embedded-engine.md`):
//! - a batch is written to the journal, synced, and only then applied to the tables in memory;
//! - flushes and compactions may make a running batch visible row by row to snapshots opened meanwhile, so
//!   snapshots are opened by the writer only, between its commits;
//! - `rotate_memtable`, `major_compact` and `tombstone_count` are public but not documented: the version is
//!   pinned exactly.

use std::any::Any;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions};
use fjall::{OwnedWriteBatch, PersistMode, Readable, Snapshot};
use millpond_store::{Clock, Direction};

use super::archive;
use super::compaction::{self, Views};
use super::journal::{self, JournalEnd};
use super::{Engine, EngineError, RowChange, ScanError, ScannedRow, Table, View, Visit, Waste};
use crate::limits::{
    APART_FILE_BYTES, CACHE_BYTES, JOURNAL_BYTES_MAX, MEMTABLE_BYTES, ROW_APART_BYTES_MIN,
};
use crate::options::Durability;

/// Threads that flush and compact. With more than one, fjall 3.1.13 keeps the first free for flushes by having it
/// send every compaction back to the queue that it came from: while one runs, that takes a processor. One is enough,
/// since compactions rewrite keys only.
const WORKERS: usize = 1;

/// How often a waiting flush looks whether it is done.
const FLUSH_POLL: Duration = Duration::from_millis(2);

pub(crate) struct FjallEngine {
    database: Database,
    tables: Tables,
    persist: PersistMode,
    views: Arc<Views>,
}

#[derive(Clone)]
struct Tables {
    items: Keyspace,
    expiry: Keyspace,
    commits: Keyspace,
    cargo: Keyspace,
}

impl Tables {
    fn of(&self, table: Table) -> &Keyspace {
        match table {
            Table::Items => &self.items,
            Table::Expiry => &self.expiry,
            Table::Commits => &self.commits,
            Table::Cargo => &self.cargo,
        }
    }

    fn all(&self) -> [&Keyspace; 4] {
        [&self.items, &self.expiry, &self.commits, &self.cargo]
    }
}

impl FjallEngine {
    /// Checks what fjall would not, without changing anything.
    pub(crate) fn check(directory: &Path) -> Result<JournalEnd, EngineError> {
        archive::check_all(directory)?;
        journal::check_all(directory)
    }

    /// Opens the engine's directory, or makes it.
    pub(crate) fn open(directory: &Path, durability: Durability) -> Result<Self, EngineError> {
        guarded(|| {
            let database = Database::builder(directory)
                .manual_journal_persist(true)
                .cache_size(CACHE_BYTES)
                .worker_threads(WORKERS)
                .max_journaling_size(JOURNAL_BYTES_MAX)
                .open()?;
            let apart = KvSeparationOptions::default()
                .separation_threshold(ROW_APART_BYTES_MIN)
                .file_target_size(APART_FILE_BYTES)
                .staleness_threshold(0.5)
                .age_cutoff(1.0);
            let options = || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(MEMTABLE_BYTES)
                    .compaction_strategy(compaction::in_passing())
            };
            let tables = Tables {
                items: database.keyspace("items", || options().with_kv_separation(Some(apart)))?,
                expiry: database.keyspace("expiry", options)?,
                commits: database.keyspace("commits", options)?,
                cargo: database.keyspace("cargo", options)?,
            };
            let persist = match durability {
                Durability::Durable => PersistMode::SyncData,
                Durability::UnsafeNoSync => PersistMode::Buffer,
            };
            Ok(Self { database, tables, persist, views: Arc::default() })
        })
    }
}

impl Engine for FjallEngine {
    fn commit(&self, changes: Vec<RowChange>) -> Result<(), EngineError> {
        let batch = OwnedWriteBatch::with_capacity(self.database.clone(), changes.len());
        let mut batch = batch.durability(Some(self.persist));
        for change in changes {
            let table = self.tables.of(change.table);
            match change.value {
                Some(value) => batch.insert(table, change.key, value),
                None => batch.remove(table, change.key),
            }
        }
        Ok(batch.commit()?)
    }

    fn view(&self) -> Arc<dyn View> {
        let snapshot = self.database.snapshot();
        self.views.add(snapshot.seqno());
        let views = Arc::clone(&self.views);
        Arc::new(FjallView { snapshot, tables: self.tables.clone(), views })
    }

    fn begin_flush(&self) -> Result<(), EngineError> {
        for table in self.tables.all() {
            table.rotate_memtable()?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.begin_flush()?;
        while self.tables.all().iter().any(|table| table.sealed_memtable_count() > 0) {
            // Tells of a worker that died, which would otherwise be waited for without end.
            self.database.persist(PersistMode::Buffer)?;
            // fjall has no signal for a finished flush.
            std::thread::park_timeout(FLUSH_POLL);
        }
        Ok(())
    }

    fn compact_step(&self) -> Result<bool, EngineError> {
        guarded(|| {
            let oldest = self.views.oldest();
            for table in [&self.tables.items, &self.tables.expiry] {
                if compaction::step(table, oldest)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn waste(&self) -> Waste {
        let trees = [&self.tables.items.tree, &self.tables.expiry.tree];
        let rows = trees.iter().map(|tree| tree.approximate_len() as u64).sum();
        let tombstones = trees.iter().map(|tree| tree.tombstone_count()).sum();
        Waste { rows, tombstones }
    }
}

struct FjallView {
    snapshot: Snapshot,
    tables: Tables,
    views: Arc<Views>,
}

impl Drop for FjallView {
    fn drop(&mut self) {
        self.views.remove(self.snapshot.seqno());
    }
}

impl View for FjallView {
    fn position(&self) -> u64 {
        self.snapshot.seqno()
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        guarded(|| Ok(self.snapshot.get(self.tables.of(table), key)?.map(Bytes::from)))
    }

    fn scan(
        &self,
        table: Table,
        (start, end): (&[u8], &[u8]),
        direction: Direction,
        clock: &dyn Clock,
        visit: Visit<'_>,
    ) -> Result<Option<Duration>, ScanError> {
        let mut rows = guarded(|| Ok(self.snapshot.range(self.tables.of(table), start..end)))?;
        loop {
            let before = clock.monotonic();
            let next = guarded(|| {
                let next = match direction {
                    Direction::Forward => rows.next(),
                    Direction::Reverse => rows.next_back(),
                };
                let waited = clock.monotonic().since(before);
                let row = next.map(fjall::Guard::into_inner).transpose()?;
                Ok((row, waited))
            });
            let (Some((key, value)), waited) = next? else {
                return Ok(Some(clock.monotonic().since(before)));
            };
            let row = ScannedRow { key: key.into(), value: value.into(), waited };
            match visit(row).map_err(ScanError::Visitor)? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(()) => return Ok(None),
            }
        }
    }
}

/// Turns a panic below the seam, as damaged files provoke it, into an error.
fn guarded<T>(call: impl FnOnce() -> Result<T, fjall::Error>) -> Result<T, EngineError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(EngineError::from),
        Err(panic) => Err(EngineError::Damaged(format!("fjall panicked: {}", panic_text(&*panic)))),
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

impl From<fjall::Error> for EngineError {
    fn from(error: fjall::Error) -> Self {
        match error {
            fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
                match error.kind() {
                    // A file that is shorter than it says, or says what makes no sense.
                    io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::NotFound => Self::Damaged(error.to_string()),
                    _ => Self::Io(error),
                }
            }
            fjall::Error::Poisoned => Self::Stopped,
            fjall::Error::Locked => Self::Locked,
            other => Self::Damaged(other.to_string()),
        }
    }
}
