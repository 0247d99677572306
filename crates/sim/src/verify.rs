//! What must be in the store, given what was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use millpond_embedded::{EmbeddedStore, Maintenance, Options};
use millpond_store::{Environment, Partition, Query, Store, collect};

use crate::load::{GROUP, LANES, content, counter_key, group_key, number_of};
use crate::report::Acknowledged;

/// Everything acknowledged so far, through all cycles.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    lanes: BTreeMap<u32, Lane>,
    counter: u64,
    groups: BTreeMap<u32, u64>,
    pub acknowledged: u64,
}

/// A lane's items: a range of numbers, with nothing missing.
#[derive(Debug, Default, Clone, Copy)]
struct Lane {
    /// The next number to be put.
    put: u64,
    /// The first number that was not removed.
    removed: u64,
}

impl Expected {
    /// Takes in a report.
    pub(crate) fn add(&mut self, report: Acknowledged) {
        self.acknowledged += 1;
        match report {
            Acknowledged::Put { lane, number } => {
                let lane = self.lanes.entry(lane).or_default();
                lane.put = lane.put.max(number + 1);
            }
            Acknowledged::Deleted { lane, number } => {
                let lane = self.lanes.entry(lane).or_default();
                lane.removed = lane.removed.max(number + 1);
            }
            Acknowledged::Counted { value } => self.counter = self.counter.max(value),
            Acknowledged::Grouped { lane, number } => {
                let group = self.groups.entry(lane).or_default();
                *group = (*group).max(number);
            }
        }
    }

    /// Opens the store and compares. Each part of the load may be one write ahead of its last report: it was under
    /// way when the process died. What is found is what the next cycle starts from.
    ///
    /// # Errors
    /// Which names what was lost.
    pub(crate) async fn check(&mut self, directory: &Path) -> anyhow::Result<()> {
        let options = Options::new(directory).maintenance(Maintenance::Manual);
        let store = EmbeddedStore::open(options, &Environment::system()).await?;
        for lane in 0..LANES {
            self.check_items(&store, lane).await.with_context(|| format!("lane {lane}"))?;
            self.check_group(&store, lane).await.with_context(|| format!("group {lane}"))?;
        }
        let counter = store.get(&counter_key()?).await?;
        let counter = counter.as_ref().map(number_of).transpose()?.unwrap_or(0);
        // Every lane that counts may have had one step under way.
        let most = self.counter + u64::from(LANES);
        ensure!(
            (self.counter..=most).contains(&counter),
            "the counter was acknowledged at {} and stands at {counter}",
            self.counter
        );
        self.counter = counter;
        store.close().await;
        Ok(())
    }

    async fn check_items(&mut self, store: &EmbeddedStore, lane: u32) -> anyhow::Result<()> {
        let Lane { put, removed } = self.lanes.get(&lane).copied().unwrap_or_default();
        let query = Query::new(Partition::new(format!("items/{lane}"))?);
        let items = collect(store, query, 10_000).await?;
        let numbers = items.iter().map(number_of).collect::<anyhow::Result<Vec<_>>>()?;
        for (item, number) in items.iter().zip(&numbers) {
            ensure!(item.attributes == content(lane, *number), "item {number} has changed");
        }
        let first = numbers.first().copied().unwrap_or(put);
        let end = numbers.last().map_or(put, |last| last + 1);
        let whole: Vec<u64> = (first..end).collect();
        ensure!(numbers == whole, "items are missing between {first} and {end}: {numbers:?}");
        ensure!(
            (removed..=removed + 1).contains(&first),
            "items up to {removed} were removed, and the first is {first}"
        );
        ensure!(
            (put..=put + 1).contains(&end),
            "items up to {put} were put, and the last is before {end}"
        );
        self.lanes.insert(lane, Lane { put: end, removed: first });
        Ok(())
    }

    async fn check_group(&mut self, store: &EmbeddedStore, lane: u32) -> anyhow::Result<()> {
        let expected = self.groups.get(&lane).copied().unwrap_or(0);
        let mut numbers = Vec::new();
        for index in 0..GROUP {
            let item = store.get(&group_key(lane, index)?).await?;
            numbers.push(item.as_ref().map(number_of).transpose()?.unwrap_or(0));
        }
        let first = numbers.first().copied().unwrap_or(0);
        ensure!(numbers.iter().all(|number| *number == first), "a group is torn: {numbers:?}");
        ensure!(
            (expected..=expected + 1).contains(&first),
            "the group was acknowledged at {expected} and stands at {first}"
        );
        self.groups.insert(lane, first);
        Ok(())
    }
}
