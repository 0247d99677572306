//! The load: what a worker does until it is killed.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use millpond_embedded::{CargoOptions, EmbeddedStore, Options};
use millpond_store::{Attributes, Environment, Expect, Item, Key, Partition, Query, SortKey};
use millpond_store::{Rng, SeededRng, Store, StoreError, SystemClock, Write};

use crate::log::LogLoad;
use crate::report::Acknowledged;
use crate::sequencer::SequencerLoad;

/// Stripes of each kind of load.
pub(crate) const STRIPES: u32 = 8;
/// Items of a group.
pub(crate) const GROUP: u8 = 5;
/// Each stripe keeps about this many of its items.
const KEPT: u64 = 64;

pub(crate) fn item_key(stripe: u32, number: u64) -> anyhow::Result<Key> {
    Ok(Key::new(format!("items/{stripe}"), number.to_be_bytes().to_vec())?)
}

/// A part of the items goes to cargo files, which are soon full and mostly waste.
const CARGO: CargoOptions = CargoOptions {
    item_bytes_min: 300,
    commit_bytes_min: 1_024,
    file_bytes: 256 * 1_024,
    step_bytes: 64 * 1_024,
};

pub(crate) fn counter_key() -> anyhow::Result<Key> {
    Ok(Key::new("counter", b"value".as_slice())?)
}

pub(crate) fn group_key(stripe: u32, index: u8) -> anyhow::Result<Key> {
    Ok(Key::new(format!("group/{stripe}"), vec![index])?)
}

/// The content that an item must have: its number, and bytes that depend on it.
pub(crate) fn content(stripe: u32, number: u64) -> Attributes {
    let rng = SeededRng::new(number ^ (u64::from(stripe) << 48));
    // From nothing to 840 bytes, so that rows are stored in each way there is.
    let words = (rng.next_u64() % 8) * (rng.next_u64() % 16);
    let body: Vec<u8> = (0..words).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    Attributes::new().with("n", number).with("body", body)
}

/// The number that an item was given.
pub(crate) fn number_of(item: &Item) -> anyhow::Result<u64> {
    Ok(u64::try_from(item.attributes.number("n")?)?)
}

/// Opens the store, and writes and reports until the process ends.
///
/// # Errors
/// When the store refuses something that it should not.
pub async fn run(directory: &Path, seed: u64, cycle: u32) -> anyhow::Result<()> {
    let rng: Arc<dyn Rng> = Arc::new(SeededRng::new(seed ^ (u64::from(cycle) << 32)));
    let environment = Environment { clock: Arc::new(SystemClock::new()), rng };
    let store = EmbeddedStore::open(Options::new(directory).cargo(CARGO), &environment).await?;
    let load = Load { store, environment };
    print("ready")?;
    let mut parts = tokio::task::JoinSet::new();
    for stripe in 0..STRIPES {
        parts.spawn(ended(load.clone().items(stripe)));
        parts.spawn(ended(load.clone().groups(stripe)));
        parts.spawn(ended(load.clone().count()));
    }
    // Death also comes while tables are written and compacted.
    if cycle.is_multiple_of(3) {
        parts.spawn(ended(load.clone().reclaim()));
    }
    let lane = crate::lane::LaneLoad::open(&load.store, &load.environment, cycle)?;
    for sender in 0..STRIPES {
        parts.spawn(ended(lane.clone().append(sender)));
    }
    parts.spawn(ended(lane.finish()));
    for queue in crate::queue::QueueLoad::open(&load.store, &load.environment, cycle).await? {
        for sender in 0..crate::queue::SENDERS {
            parts.spawn(ended(queue.clone().send(sender)));
        }
        for _ in 0..crate::queue::QueueLoad::receivers() {
            parts.spawn(ended(queue.clone().receive()));
        }
    }
    let sequencer = SequencerLoad::open(&load.store, &load.environment)?;
    for putter in 0..crate::sequencer::PUTTERS {
        parts.spawn(ended(sequencer.clone().put(putter)));
    }
    let log = LogLoad::open(&load.store, &load.environment, cycle).await?;
    for sender in 0..crate::log::SENDERS {
        parts.spawn(ended(log.clone().append(sender)));
    }
    parts.join_all().await;
    Ok(())
}

/// Writes a line and hands it to the system before it returns: what is reported is at most one write per part of
/// the load behind what is acknowledged.
pub(crate) fn print(line: impl Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// A part of the load that fails ends the process at once: the loop must see it.
async fn ended(work: impl Future<Output = anyhow::Result<()>>) {
    if let Err(error) = work.await {
        eprintln!("the load failed: {error:#}");
        std::process::exit(2);
    }
}

#[derive(Clone)]
struct Load {
    store: EmbeddedStore,
    environment: Environment,
}

impl Load {
    /// Puts items with rising numbers, and removes the oldest.
    async fn items(self, stripe: u32) -> anyhow::Result<()> {
        let partition = Partition::new(format!("items/{stripe}"))?;
        let query = Query::new(partition.clone()).reverse().limit(1);
        let last = self.store.query(query).await?.items.pop();
        let mut next = last.as_ref().map(number_of).transpose()?.map_or(0, |last| last + 1);
        loop {
            let version = self.environment.version();
            let key = item_key(stripe, next)?;
            let put = Write::put(key, content(stripe, next), Expect::Absent, version);
            self.store.write(put).await?;
            print(Acknowledged::Put { stripe, number: next })?;
            if next >= KEPT {
                self.delete_oldest(stripe, &partition).await?;
            }
            next += 1;
        }
    }

    async fn delete_oldest(&self, stripe: u32, partition: &Partition) -> anyhow::Result<()> {
        let query = Query::new(partition.clone()).limit(1);
        let oldest = self.store.query(query).await?.items.pop().context("the stripe is empty")?;
        let number = number_of(&oldest)?;
        let sort = SortKey::new(number.to_be_bytes().to_vec())?;
        let key = Key::of(partition.clone(), sort);
        self.store.write(Write::delete(key, Expect::Version(oldest.version))).await?;
        print(Acknowledged::Deleted { stripe, number })
    }

    /// Writes out and compacts all the time.
    async fn reclaim(self) -> anyhow::Result<()> {
        loop {
            self.store.reclaim().await?;
        }
    }

    /// Raises one counter that all stripes share.
    async fn count(self) -> anyhow::Result<()> {
        let key = counter_key()?;
        let mut current = self.store.get(&key).await?;
        loop {
            let value = current.as_ref().map(number_of).transpose()?.unwrap_or(0) + 1;
            let expect =
                current.as_ref().map_or(Expect::Absent, |item| Expect::Version(item.version));
            let write =
                Write::put(key.clone(), content(0, value), expect, self.environment.version());
            match self.store.write(write).await {
                Ok(()) => {
                    print(Acknowledged::Counted { value })?;
                    current = self.store.get(&key).await?;
                }
                Err(StoreError::Conflict(conflicts)) => current = conflicts.first().current.clone(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes a group of items that must always have the same number.
    async fn groups(self, stripe: u32) -> anyhow::Result<()> {
        let current = self.store.get(&group_key(stripe, 0)?).await?;
        let mut next = current.as_ref().map(number_of).transpose()?.map_or(1, |last| last + 1);
        loop {
            let mut group = Vec::new();
            for index in 0..GROUP {
                let version = self.environment.version();
                let content = content(stripe, next);
                group.push(Write::put(group_key(stripe, index)?, content, Expect::Any, version));
            }
            self.store.write_all(group).await?;
            print(Acknowledged::Grouped { stripe, number: next })?;
            next += 1;
        }
    }
}
