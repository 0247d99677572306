//! Counters of all processes together.
//!
//! Each process keeps a row of its own, which only it writes, so that counting costs nobody else anything. Rows of
//! processes that have long gone are added to one.

use std::sync::Arc;

use millpond_store::{
    Attributes, Certainty, Expect, Item, Key, Partition, Query, SortKey, StoreError, UniqueId,
    Version, Write, collect,
};

use super::core::{ClientCore, lock};
use crate::counters::Totals;
use crate::error::Result;
use crate::limits::{COUNTER_ROWS_MAX, COUNTERS_MERGED_AFTER};

/// This process's row.
#[derive(Debug, Default)]
pub struct OwnRow {
    id: Option<UniqueId>,
    version: Option<Version>,
    /// What the row says.
    stored: Totals,
    /// What was written without an answer.
    tried: Option<(Version, Totals)>,
    /// What rows before it say, which others have added up since.
    before: Totals,
}

/// The version of the row that a write was refused for.
fn current_version(error: &StoreError) -> Option<Version> {
    let StoreError::Conflict(conflicts) = error else { return None };
    conflicts.first().current.as_ref().map(|item| item.version)
}

impl OwnRow {
    /// Takes note of what became of a write of the row.
    fn tried(
        &mut self,
        outcome: Result<(), StoreError>,
        version: Version,
        row: Totals,
    ) -> Result<()> {
        match outcome {
            Ok(()) => (self.version, self.stored, self.tried) = (Some(version), row, None),
            Err(error) if error.certainty() == Certainty::Unknown && !error.is_conflict() => {
                self.tried = Some((version, row));
                return Err(error.into());
            }
            // It was our own, whose answer was lost: what came since is stored the next time.
            Err(error) if current_version(&error).is_some_and(|found| self.is_tried(found)) => {
                if let Some((version, row)) = self.tried.take() {
                    (self.version, self.stored) = (Some(version), row);
                }
            }
            // Another has taken the row for one of a process that has gone. What it said is counted there.
            Err(error) if error.is_conflict() => {
                let stored = std::mem::take(&mut self.stored);
                self.before.add(&stored);
                (self.id, self.version, self.tried) = (None, None, None);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn is_tried(&self, version: Version) -> bool {
        self.tried.as_ref().is_some_and(|(tried, _)| *tried == version)
    }

    /// Whether all that was counted is stored.
    pub fn has_stored(&self, counted: &Totals) -> bool {
        counted.minus(&self.before) == self.stored
    }
}

impl ClientCore {
    /// What happened to this client's messages, in all processes: here up to now, elsewhere up to when they last
    /// stored it.
    pub async fn totals(&self) -> Result<Totals> {
        let own = lock(&self.own_row).id;
        let mut totals = self.counters.totals().minus(&lock(&self.own_row).before);
        for item in self.counter_rows().await? {
            if own.is_none_or(|own| item.key.sort.as_bytes() != own.as_bytes()) {
                totals.add(&Totals::read(&item.attributes)?);
            }
        }
        Ok(totals)
    }

    async fn counter_rows(&self) -> Result<Vec<Item>> {
        let query = Query::new(self.counter_partition()?);
        Ok(collect(self.queue.root.store(), query, COUNTER_ROWS_MAX).await?)
    }

    fn counter_partition(&self) -> Result<Partition, StoreError> {
        Partition::new(format!("{}#counts", self.prefix()))
    }

    /// Stores what was counted here since the last time.
    pub async fn store_totals(self: &Arc<Self>) -> Result<()> {
        let counted = self.counters.totals();
        let environment = self.queue.root.environment();
        let (id, expect, row) = {
            let mut own = lock(&self.own_row);
            let row = counted.minus(&own.before);
            if row == own.stored {
                return Ok(());
            }
            let id = *own.id.get_or_insert_with(|| environment.unique_id());
            (id, own.version.map_or(Expect::Absent, Expect::Version), row)
        };
        let key = Key::of(self.counter_partition()?, SortKey::new(id.as_bytes().to_vec())?);
        let version = environment.version();
        let put = Write::put(key, self.row_attributes(&row), expect, version);
        let outcome = self.queue.root.store().write(put).await;
        lock(&self.own_row).tried(outcome, version, row)?;
        self.merge_totals().await
    }

    fn row_attributes(&self, totals: &Totals) -> Attributes {
        let now = self.queue.root.environment().now().as_millis();
        totals.attributes().with("at", i64::try_from(now).unwrap_or(i64::MAX))
    }

    /// Adds rows of processes that have gone to one, when there are many.
    async fn merge_totals(&self) -> Result<()> {
        const MANY: usize = 32;
        let rows = self.counter_rows().await?;
        let now = self.queue.root.environment().now();
        let is_old = |item: &&Item| {
            let at = item.attributes.number("at").ok().and_then(|at| u64::try_from(at).ok());
            at.is_some_and(|at| {
                now.since(millpond_store::Timestamp::from_millis(at)) >= COUNTERS_MERGED_AFTER
            })
        };
        let old: Vec<&Item> = rows.iter().filter(is_old).take(MANY).collect();
        if rows.len() < MANY || old.len() < 2 {
            return Ok(());
        }
        let mut sum = Totals::default();
        for item in &old {
            sum.add(&Totals::read(&item.attributes)?);
        }
        let mut writes: Vec<Write> = old
            .iter()
            .skip(1)
            .map(|item| Write::delete(item.key.clone(), Expect::Version(item.version)))
            .collect();
        if let Some(first) = old.first() {
            let expect = Expect::Version(first.version);
            let version = self.queue.root.environment().version();
            writes.push(Write::put(first.key.clone(), self.row_attributes(&sum), expect, version));
        }
        match self.queue.root.store().write_all(writes).await {
            Err(error) if !error.is_conflict() => Err(error.into()),
            _ => Ok(()),
        }
    }
}
