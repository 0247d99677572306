//! Counters of all processes together.
//!
//! Each process keeps a row of its own, which only it writes, so that counting costs nobody else anything. Rows of
//! processes that have long gone are added to one.

use std::sync::Arc;

use millpond_store::{
    Attributes, Certainty, Expect, Item, Key, Partition, Query, SortKey, StoreError, Timestamp,
    UniqueId, Version, Write, collect,
};

use super::core::{ClientCore, lock};
use crate::counters::Totals;
use crate::error::Result;
use crate::limits::{COUNTER_ROWS_MAX, COUNTERS_MERGED_AFTER};

/// When the row of a process was written that has said that it goes: longer ago than any.
const GONE: Timestamp = Timestamp::from_millis(0);

fn row_attributes(totals: &Totals, at: Timestamp) -> Attributes {
    totals.attributes().with("at", i64::try_from(at.as_millis()).unwrap_or(i64::MAX))
}

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
        let now = self.queue.root.environment().now();
        self.store_row(now).await
    }

    /// The same, in a row that says that its process has gone. Should it count on, that is not lost: it finds its row
    /// taken, and begins another.
    pub async fn retire(self: &Arc<Self>) -> Result<()> {
        self.store_row(GONE).await?;
        // The row was taken: what came since goes to a new one.
        if !lock(&self.own_row).has_stored(&self.counters.totals()) {
            self.store_row(GONE).await?;
        }
        Ok(())
    }

    async fn store_row(self: &Arc<Self>, at: Timestamp) -> Result<()> {
        let counted = self.counters.totals();
        let environment = self.queue.root.environment();
        let (id, expect, row) = {
            let mut own = lock(&self.own_row);
            let row = counted.minus(&own.before);
            let is_said = own.id.is_none() || at != GONE;
            if row == own.stored && is_said {
                return Ok(());
            }
            let id = *own.id.get_or_insert_with(|| environment.unique_id());
            (id, own.version.map_or(Expect::Absent, Expect::Version), row)
        };
        let key = Key::of(self.counter_partition()?, SortKey::new(id.as_bytes().to_vec())?);
        let version = environment.version();
        let put = Write::put(key, row_attributes(&row, at), expect, version);
        let outcome = self.queue.root.store().write(put).await;
        lock(&self.own_row).tried(outcome, version, row)?;
        self.merge_totals().await
    }

    /// Adds rows of processes that have gone to one, when there are many.
    async fn merge_totals(&self) -> Result<()> {
        const MANY: usize = 32;
        let rows = self.counter_rows().await?;
        let now = self.queue.root.environment().now();
        let is_old = |item: &&Item| {
            let at = item.attributes.number("at").ok().and_then(|at| u64::try_from(at).ok());
            at.is_some_and(|at| now.since(Timestamp::from_millis(at)) >= COUNTERS_MERGED_AFTER)
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
            // It is nobody's any more, and can be added to others again.
            writes.push(Write::put(first.key.clone(), row_attributes(&sum, GONE), expect, version));
        }
        match self.queue.root.store().write_all(writes).await {
            Err(error) if !error.is_conflict() => Err(error.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_lanes::Ground;
    use millpond_store::{Environment, MemoryStore};

    use super::*;
    use crate::counters::Event;
    use crate::{Message, QueueConfig, Queues};

    #[tokio::test]
    async fn rows_of_processes_that_said_good_bye_stay_few_and_nothing_is_counted_twice() {
        let environment = Environment::system();
        let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
        Queues::new(&ground).create("q", QueueConfig::default()).await.unwrap();
        let open = || async {
            // As another process would.
            Queues::new(&ground).open("q").await.unwrap().main().unwrap()
        };
        let staying = open().await;
        staying.send(Message::new("x")).await.unwrap();
        staying.retire().await.unwrap();
        for _ in 0..150 {
            let client = open().await;
            client.send(Message::new("x")).await.unwrap();
            client.retire().await.unwrap();
        }
        // It went on after all, and its row was taken meanwhile.
        staying.send(Message::new("x")).await.unwrap();
        staying.retire().await.unwrap();
        let client = open().await;
        assert_eq!(client.totals().await.unwrap().of(Event::Sent), 152);
        assert_eq!(staying.totals().await.unwrap().of(Event::Sent), 152);
        let rows = client.core.counter_rows().await.unwrap().len();
        assert!(rows <= 33, "{rows} rows");
    }
}
