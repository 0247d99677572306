//! What readers, writer and background work share.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use millpond_store::{Clock, Direction, Hints, Result, StoreError};

use crate::directory::Directory;
use crate::engine::{Engine, EngineError, ScanError, ScannedRow, Table, View};
use crate::gaps::{Begun, Gaps, KeyRange};
use crate::rowkey::successor;

pub(crate) struct Shared {
    state: Mutex<State>,
    pub engine: Box<dyn Engine>,
    pub clock: Arc<dyn Clock>,
    pub hints: Hints,
    /// Where the engine's files are, for errors.
    pub place: String,
    pub gap_worth: Duration,
    /// Rows deleted since the store was opened.
    pub deletes: AtomicU64,
    /// Whether tables held deleted rows when the store was opened.
    pub deletes_before: AtomicBool,
    stopped: OnceLock<String>,
    /// Unlocked when everything else is gone.
    pub directory: Directory,
}

/// The current view and the gaps that hold for it: they change together.
struct State {
    view: Arc<dyn View>,
    items: Gaps,
    expiry: Gaps,
}

impl State {
    fn gaps(&mut self, table: Table) -> Option<&mut Gaps> {
        match table {
            Table::Items => Some(&mut self.items),
            Table::Expiry => Some(&mut self.expiry),
            Table::Commits => None,
        }
    }
}

impl Shared {
    pub(crate) fn new(
        engine: Box<dyn Engine>,
        clock: Arc<dyn Clock>,
        directory: Directory,
        gap_worth: Duration,
    ) -> Self {
        let state = State { view: engine.view(), items: Gaps::default(), expiry: Gaps::default() };
        let deletes_before = AtomicBool::new(engine.waste().tombstones > 0);
        Self {
            state: Mutex::new(state),
            engine,
            clock,
            hints: Hints::new(),
            place: directory.engine().display().to_string(),
            gap_worth,
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

    /// The current view.
    pub(crate) fn view(&self) -> Arc<dyn View> {
        Arc::clone(&self.state().view)
    }

    /// Makes a commit visible: its view, and the rows that it put.
    pub(crate) fn publish(&self, view: Arc<dyn View>, puts: &[(Table, Bytes)]) {
        let mut state = self.state();
        for table in [Table::Items, Table::Expiry] {
            let keys = puts.iter().filter(|(of, _)| *of == table).map(|(_, key)| key);
            if let Some(gaps) = state.gaps(table) {
                gaps.note_puts(keys);
            }
        }
        let old = std::mem::replace(&mut state.view, view);
        drop(state);
        drop(old);
    }

    /// Adds to an error about a damaged row in which files it is.
    pub(crate) fn locate(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Corrupt { place, detail } if !place.starts_with(&self.place) => {
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
        mut visit: impl FnMut(&Bytes, Bytes) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let (view, begun) = {
            let mut state = self.state();
            let view = Arc::clone(&state.view);
            let begun = state.gaps(table).map(|gaps| gaps.begin(range.clone(), direction));
            (view, begun)
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
            let mut step = |row: ScannedRow| {
                let before = last.replace(row.key.clone());
                if learns && row.waited >= self.gap_worth {
                    learner.gaps.push(gap(&span, direction, before.as_ref(), Some(&row.key)));
                }
                visit(&row.key, row.value)
            };
            let range = (&*span.0, &*span.1);
            match view.scan(table, range, direction, &*self.clock, &mut step) {
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
    use crate::options::Options;
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
        shared.publish(shared.engine.view(), &[(Table::Items, row_key.clone())]);

        let range = (row_key.clone(), successor(&row_key));
        let read = shared.scan(Table::Items, range, Direction::Forward, |key, row| {
            record::decode(key, &row).map(|_| ControlFlow::Continue(()))
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
