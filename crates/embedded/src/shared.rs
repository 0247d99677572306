//! What readers, writer and background work share.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use millpond_store::{Clock, Direction, Hints, Result, StoreError};

use crate::cargo::Files;
use crate::directory::Directory;
use crate::engine::{Engine, EngineError, ScanError, ScannedRow, Table, View, Visit};
use crate::gaps::{Begun, Gaps, KeyRange};
use crate::limits::ROWS_REMEMBERED_MAX;
use crate::options::{CargoOptions, Options};
use crate::rowkey::successor;

pub(crate) struct Shared {
    state: Mutex<State>,
    pub engine: Box<dyn Engine>,
    pub clock: Arc<dyn Clock>,
    pub hints: Hints,
    /// Where the engine's files are, for errors.
    pub place: String,
    pub gap_worth: Duration,
    pub cargo: CargoOptions,
    /// Rows deleted since the store was opened.
    pub deletes: AtomicU64,
    /// Whether tables held deleted rows when the store was opened.
    pub deletes_before: AtomicBool,
    stopped: OnceLock<String>,
    /// Unlocked when everything else is gone.
    pub directory: Directory,
}

/// The state of the store after some commit: the rows, and the files that large ones are in.
#[derive(Clone)]
pub(crate) struct Sight {
    pub view: Arc<dyn View>,
    pub files: Files,
}

impl Sight {
    /// Visits the row under `key`, if there is one; to be taken for a scan of this key only.
    fn get(
        &self,
        table: Table,
        key: &Bytes,
        visit: Visit<'_>,
    ) -> Result<Option<Duration>, ScanError> {
        let Some(value) = self.view.get(table, key)? else { return Ok(Some(Duration::ZERO)) };
        let row = ScannedRow { key: key.clone(), value, waited: Duration::ZERO };
        Ok(match visit(row).map_err(ScanError::Visitor)? {
            ControlFlow::Continue(()) => Some(Duration::ZERO),
            ControlFlow::Break(()) => None,
        })
    }
}

/// The current sight and the gaps that hold for it: they change together.
struct State {
    sight: Sight,
    items: Gaps,
    expiry: Gaps,
}

impl State {
    fn gaps(&mut self, table: Table) -> Option<&mut Gaps> {
        match table {
            Table::Items => Some(&mut self.items),
            Table::Expiry => Some(&mut self.expiry),
            Table::Commits | Table::Cargo => None,
        }
    }
}

impl Shared {
    pub(crate) fn new(
        engine: Box<dyn Engine>,
        clock: Arc<dyn Clock>,
        directory: Directory,
        options: &Options,
    ) -> Self {
        // The files are known once the table that names them was read.
        let sight = Sight { view: engine.view(), files: Files::default() };
        let state = State { sight, items: Gaps::default(), expiry: Gaps::default() };
        let deletes_before = AtomicBool::new(engine.waste().tombstones > 0);
        Self {
            state: Mutex::new(state),
            engine,
            clock,
            hints: Hints::new(),
            place: directory.engine().display().to_string(),
            gap_worth: options.gap_worth,
            cargo: options.cargo,
            deletes: AtomicU64::new(0),
            deletes_before,
            stopped: OnceLock::new(),
            directory,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the store for good; the first reason stays.
    pub(crate) fn stop(&self, reason: String) {
        tracing::error!(place = self.place, reason, "the store has stopped");
        self.stopped.get_or_init(|| reason);
    }

    /// # Errors
    /// [`StoreError::Poisoned`] once the store has stopped.
    pub(crate) fn check_running(&self) -> Result<()> {
        match self.stopped.get() {
            None => Ok(()),
            Some(reason) => Err(StoreError::Poisoned { reason: reason.clone() }),
        }
    }

    /// What is committed.
    pub(crate) fn sight(&self) -> Sight {
        self.state().sight.clone()
    }

    /// Makes a commit visible, and the rows that it put.
    pub(crate) fn publish(&self, sight: Sight, puts: &[(Table, Bytes)]) {
        let mut state = self.state();
        for table in [Table::Items, Table::Expiry] {
            let keys = puts.iter().filter(|(of, _)| *of == table).map(|(_, key)| key);
            if let Some(gaps) = state.gaps(table) {
                gaps.note_puts(keys);
            }
        }
        let old = std::mem::replace(&mut state.sight, sight);
        drop(state);
        drop(old);
    }

    /// Adds to an error about a damaged row in which files it is.
    pub(crate) fn locate(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Corrupt { place, detail }
                if !Path::new(&place).starts_with(self.directory.path())
                    && !place.starts_with(&self.place) =>
            {
                StoreError::corrupt(format!("{}: {place}", self.place), detail)
            }
            other => other,
        }
    }

    /// What a failed read means.
    pub(crate) fn read_error(&self, operation: &'static str, error: EngineError) -> StoreError {
        match error {
            EngineError::Damaged(detail) => StoreError::corrupt(self.place.clone(), detail),
            EngineError::Locked | EngineError::Stopped => {
                StoreError::Poisoned { reason: error.to_string() }
            }
            EngineError::Io(_) => StoreError::Unavailable {
                operation,
                detail: format!("{}: {error}", self.place),
                cause: Some(Arc::new(error)),
            },
        }
    }

    /// Visits the rows of `range` in the current view, stepping over known gaps and learning new ones.
    /// Returns whether the range is exhausted.
    pub(crate) fn scan(
        &self,
        table: Table,
        range: KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&Bytes, Bytes, &Files) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let (sight, begun) = {
            let mut state = self.state();
            let sight = state.sight.clone();
            let begun = state.gaps(table).map(|gaps| gaps.begin(range.clone(), direction));
            (sight, begun)
        };
        let (id, spans) = match begun {
            Some(Begun { id, spans }) => (Some(id), spans),
            None => (None, vec![range]),
        };
        let mut learner = Learner { shared: self, table, id, gaps: Vec::new() };
        let learns = self.learns();
        let between_gaps = spans.len() > 1;
        for span in spans {
            let mut last: Option<Bytes> = None;
            let (mut rows, mut slow_start) = (0, false);
            let mut step = |row: ScannedRow| {
                let before = last.replace(row.key.clone());
                let slow = row.waited >= self.gap_worth;
                slow_start |= slow && rows == 0;
                rows += 1;
                // Where it is slow to begin, the next scan reads the first rows one by one instead.
                if learns && (slow || (slow_start && rows <= ROWS_REMEMBERED_MAX)) {
                    learner.gaps.push(gap(&span, direction, before.as_ref(), Some(&row.key)));
                }
                visit(&row.key, row.value, &sight.files)
            };
            let scanned = if is_one_key(&span) {
                sight.get(table, &span.0, &mut step)
            } else {
                let range = (&*span.0, &*span.1);
                sight.view.scan(table, range, direction, &*self.clock, &mut step)
            };
            match scanned {
                // A span between gaps that turns out empty joins them, however quick it was: else a scan would be
                // slowed down by their number.
                Ok(Some(waited))
                    if learns && (waited >= self.gap_worth || (between_gaps && last.is_none())) =>
                {
                    learner.gaps.push(gap(&span, direction, last.as_ref(), None));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(false),
                Err(ScanError::Engine(error)) => return Err(self.read_error("query", error)),
                Err(ScanError::Visitor(error)) => return Err(self.locate(error)),
            }
        }
        Ok(true)
    }

    /// Where nothing was ever deleted there is nothing to step over.
    fn learns(&self) -> bool {
        self.deletes.load(Ordering::Relaxed) > 0 || self.deletes_before.load(Ordering::Relaxed)
    }
}

fn is_one_key((start, end): &KeyRange) -> bool {
    end.strip_prefix(&**start) == Some(&[0])
}

/// The keys between two rows that a scan found one after the other, or between a row and the end of the span.
fn gap(
    span: &KeyRange,
    direction: Direction,
    before: Option<&Bytes>,
    after: Option<&Bytes>,
) -> KeyRange {
    let (low, high) = match direction {
        Direction::Forward => (before, after),
        Direction::Reverse => (after, before),
    };
    let start = low.map_or_else(|| span.0.clone(), |key| successor(key));
    (start, high.unwrap_or(&span.1).clone())
}

/// Hands in what a scan learned, also when it fails.
struct Learner<'a> {
    shared: &'a Shared,
    table: Table,
    id: Option<u64>,
    gaps: Vec<KeyRange>,
}

impl Drop for Learner<'_> {
    fn drop(&mut self) {
        let learned = std::mem::take(&mut self.gaps);
        if let (Some(id), Some(gaps)) = (self.id, self.shared.state().gaps(self.table)) {
            gaps.finish(id, learned);
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::{Environment, Expect, Key, Write};

    use super::*;
    use crate::batch::{Batch, Prepared};
    use crate::engine::RowChange;
    use crate::open::open_writer;
    use crate::record;
    use crate::rowkey;

    #[test]
    fn a_damaged_row_is_named_with_its_key_and_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let environment = Environment::system();
        let writer = open_writer(&Options::new(&path), environment.clock.clone()).unwrap();
        let shared = &writer.shared;
        let key = Key::new("queue", b"row 7".as_slice()).unwrap();
        let row_key = rowkey::encode(&key);
        let value = Some(Bytes::from_static(b"this is not what was written"));
        let bad = RowChange { table: Table::Items, key: row_key.clone(), value };
        shared.engine.commit(vec![bad]).unwrap();
        let sight = Sight { view: shared.engine.view(), ..shared.sight() };
        shared.publish(sight, &[(Table::Items, row_key.clone())]);

        let range = (row_key.clone(), successor(&row_key));
        let read = shared.scan(Table::Items, range, Direction::Forward, |key, row, files| {
            record::decode(key, &row, files).map(|_| ControlFlow::Continue(()))
        });
        let mut batch = Batch::new(shared, environment.now());
        let write = Prepared::new(Write::delete(key.clone(), Expect::Any)).unwrap();
        let written = batch.add(&[write]).map(|()| true);
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
            let said = error.to_string();
            assert!(said.contains(path.to_str().unwrap()), "{said}");
            assert!(said.contains(&key.to_string()), "{said}");
        }
    }
}
