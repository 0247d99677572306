//! What must be in the store, given what was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use millpond_embedded::{EmbeddedStore, Maintenance, Options};
use millpond_store::{Environment, Partition, Query, Store, collect};

use crate::lane::LaneExpected;
use crate::load::{GROUP, STRIPES, content, counter_key, group_key, number_of};
use crate::log::LogExpected;
use crate::queue::QueueExpected;
use crate::report::Acknowledged;
use crate::sequencer::SequencerExpected;

/// Everything acknowledged so far, through all cycles.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    stripes: BTreeMap<u32, Stripe>,
    counter: u64,
    groups: BTreeMap<u32, u64>,
    lane: LaneExpected,
    queues: QueueExpected,
    sequencer: SequencerExpected,
    log: LogExpected,
    pub acknowledged: u64,
}

/// A stripe's items: a range of numbers, with nothing missing.
#[derive(Debug, Default, Clone, Copy)]
struct Stripe {
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
            Acknowledged::Put { stripe, number } => {
                let stripe = self.stripes.entry(stripe).or_default();
                stripe.put = stripe.put.max(number + 1);
            }
            Acknowledged::Deleted { stripe, number } => {
                let stripe = self.stripes.entry(stripe).or_default();
                stripe.removed = stripe.removed.max(number + 1);
            }
            Acknowledged::Counted { value } => self.counter = self.counter.max(value),
            Acknowledged::Grouped { stripe, number } => {
                let group = self.groups.entry(stripe).or_default();
                *group = (*group).max(number);
            }
            Acknowledged::Appended { number, .. } => self.lane.appended(number),
            Acknowledged::Finished { number } => self.lane.finished(number),
            Acknowledged::Sent { stripe, serial } => self.queues.sent(stripe, serial),
            Acknowledged::Acked { stripe, serial } => self.queues.acked(stripe, serial),
            Acknowledged::Sequenced { number, .. } => self.sequencer.put(number),
            Acknowledged::Passed { first, next } => self.sequencer.passed(first.into(), next),
            Acknowledged::Logged { sender, offset } => self.log.appended(sender, offset),
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
        for stripe in 0..STRIPES {
            self.check_items(&store, stripe).await.with_context(|| format!("stripe {stripe}"))?;
            self.check_group(&store, stripe).await.with_context(|| format!("group {stripe}"))?;
        }
        let counter = store.get(&counter_key()?).await?;
        let counter = counter.as_ref().map(number_of).transpose()?.unwrap_or(0);
        // Every stripe that counts may have had one step under way.
        let most = self.counter + u64::from(STRIPES);
        ensure!(
            (self.counter..=most).contains(&counter),
            "the counter was acknowledged at {} and stands at {counter}",
            self.counter
        );
        self.counter = counter;
        self.lane.check(&store).await.context("the sequenced lane")?;
        self.queues.check(&store).await.context("the queue")?;
        self.sequencer.check(&store).await.context("the sequencer")?;
        self.log.check(&store).await.context("the log")?;
        store.close().await;
        Ok(())
    }

    async fn check_items(&mut self, store: &EmbeddedStore, stripe: u32) -> anyhow::Result<()> {
        let Stripe { put, removed } = self.stripes.get(&stripe).copied().unwrap_or_default();
        let query = Query::new(Partition::new(format!("items/{stripe}"))?);
        let items = collect(store, query, 10_000).await?;
        let numbers = items.iter().map(number_of).collect::<anyhow::Result<Vec<_>>>()?;
        for (item, number) in items.iter().zip(&numbers) {
            ensure!(item.attributes == content(stripe, *number), "item {number} has changed");
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
        self.stripes.insert(stripe, Stripe { put: end, removed: first });
        Ok(())
    }

    async fn check_group(&mut self, store: &EmbeddedStore, stripe: u32) -> anyhow::Result<()> {
        let expected = self.groups.get(&stripe).copied().unwrap_or(0);
        let mut numbers = Vec::new();
        for index in 0..GROUP {
            let item = store.get(&group_key(stripe, index)?).await?;
            numbers.push(item.as_ref().map(number_of).transpose()?.unwrap_or(0));
        }
        let first = numbers.first().copied().unwrap_or(0);
        ensure!(numbers.iter().all(|number| *number == first), "a group is torn: {numbers:?}");
        ensure!(
            (expected..=expected + 1).contains(&first),
            "the group was acknowledged at {expected} and stands at {first}"
        );
        self.groups.insert(stripe, first);
        Ok(())
    }
}
