//! Compaction in steps.
//!
//! fjall's tables are files in levels. Above the last level a deleted row has to stay, since it hides what is below;
//! when it arrives there, it goes. A step takes from the lowest level above the last the files whose merge with the next
//! level reads the least, fifty of the next level at most; only what was flushed from memory is merged all at once. A file
//! whose rows are spread over more than fifty files of the next level has no such step: it stays until more has come
//! together, as it holds less than a fiftieth of the rows there.
//!
//! fjall 3.1.13 has no function for that. Its usual strategy does it when it is told that no level may hold anything,
//! which needs a threshold of no files for the first level (`l0_threshold`, by which the sizes of all levels are
//! multiplied). It merges only files that lie between the first and the last key of the next level, so both ends have
//! a fence row there ([`Batch::fence`](crate::batch::Batch::fence)).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fjall::compaction::Leveled;
use fjall::{AbstractTree, Keyspace};

use crate::limits::TABLE_BYTES;

/// Levels of a table.
const LEVELS: usize = 7;

/// What fjall does by itself, while rows are written.
pub(super) fn in_passing() -> Arc<Leveled> {
    Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES))
}

/// Makes one step, and returns whether there was one to make. `oldest` is where the oldest view stands.
pub(super) fn step(table: &Keyspace, oldest: u64) -> Result<bool, fjall::Error> {
    let before = shape(table);
    let down = Leveled::default().with_l0_threshold(0).with_table_target_size(TABLE_BYTES);
    table.tree.compact(Arc::new(down), oldest)?;
    Ok(shape(table) != before)
}

/// Changes with every step.
fn shape(table: &Keyspace) -> (u64, [usize; LEVELS]) {
    let tables = |level| table.tree.level_table_count(level).unwrap_or(0);
    (table.tree.next_table_id(), std::array::from_fn(tables))
}

/// Where the views stand that are in use: what they see must stay.
#[derive(Debug, Default)]
pub(super) struct Views(Mutex<BTreeMap<u64, usize>>);

impl Views {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, position: u64) {
        *self.lock().entry(position).or_default() += 1;
    }

    pub(super) fn remove(&self, position: u64) {
        let mut views = self.lock();
        if let Some(count) = views.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                views.remove(&position);
            }
        }
    }

    /// Where the oldest stands; 0, before everything, when there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.lock().first_key_value().map_or(0, |(position, _)| *position)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use bytes::Bytes;
    use millpond_store::{Direction, Environment};

    use super::*;
    use crate::engine::{Engine, FjallEngine, RowChange, Table, View};
    use crate::options::Durability;
    use crate::rowkey;

    const ROWS: u32 = 60_000;
    const ROW_BYTES: u64 = 300;

    fn key(number: u32) -> Bytes {
        [[0, 1, b'p'].as_slice(), &number.to_be_bytes()].concat().into()
    }

    fn commit(engine: &FjallEngine, rows: impl Iterator<Item = u32>, value: Option<&Bytes>) {
        let table = Table::Items;
        let change = |number| RowChange { table, key: key(number), value: value.cloned() };
        let mut changes: Vec<_> = rows.map(change).collect();
        for key in rowkey::items_fences() {
            changes.push(RowChange { table, key, value: Some(Bytes::new()) });
        }
        engine.commit(changes).unwrap();
        engine.flush().unwrap();
    }

    fn count(view: &dyn View) -> usize {
        let (first, end, clock) = (key(0), key(ROWS), Environment::system().clock);
        let mut rows = 0;
        let mut visit = |_| {
            rows += 1;
            Ok(ControlFlow::Continue(()))
        };
        let range = (&*first, &*end);
        assert!(view.scan(Table::Items, range, Direction::Forward, &*clock, &mut visit).is_ok());
        rows
    }

    #[test]
    fn steps_are_bounded_remove_all_deleted_rows_and_leave_what_views_see() {
        let directory = tempfile::tempdir().unwrap();
        let engine = FjallEngine::open(directory.path(), Durability::UnsafeNoSync).unwrap();
        let value = Bytes::from(vec![7; usize::try_from(ROW_BYTES).unwrap()]);
        for part in 0..4 {
            commit(&engine, (0..ROWS).filter(|n| n % 4 == part), Some(&value));
        }
        let old = engine.view();
        while engine.compact_step().unwrap() {}
        // What is left is spread over everything; what is deleted, too, and comes in parts.
        for part in 1..10 {
            commit(&engine, (0..ROWS).filter(|n| n % 10 == part), None);
        }
        let before = engine.waste();
        assert!(before.tombstones > 0, "{before:?}");
        let new = engine.view();
        let (mut steps, mut rows_before) = (0, before.rows);
        while engine.compact_step().unwrap() {
            steps += 1;
            let rows = engine.waste().rows;
            // A step takes away no more rows than fifty files have, and what was flushed.
            assert!(rows_before - rows.min(rows_before) <= 50 * TABLE_BYTES / ROW_BYTES);
            rows_before = rows;
            assert!(steps < 1_000, "the steps do not end");
        }
        let after = engine.waste();
        assert!(steps >= 3, "{steps} steps for {} files", before.rows * ROW_BYTES / TABLE_BYTES);
        assert_eq!(after.tombstones, 0, "after {steps} steps");
        // Besides the live rows only fences, of which the old view keeps those of later commits too.
        assert!(after.rows < u64::from(ROWS) / 10 + 100, "{after:?}");
        assert_eq!(count(&*new), ROWS as usize / 10);
        assert_eq!(count(&*old), ROWS as usize, "an old view lost rows");
    }
}
