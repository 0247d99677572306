//! A log under load: records that several append, and what must be there afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_log::{AppendOptions, Log, LogError, NewRecord, Record, Topic, TopicConfig};
use millpond_store::{Environment, Rng, SeededRng};

use crate::load::print;
use crate::report::Acknowledged;

const NAME: &str = "crash";
const PARTITIONS: u32 = 2;
/// Two to each partition.
pub(crate) const SENDERS: u32 = 4;

async fn open(store: &EmbeddedStore, environment: &Environment) -> anyhow::Result<Topic> {
    let log = Log::new(&Ground::new(Arc::new(store.clone()), environment));
    match log.topic(NAME).await {
        Err(LogError::UnknownTopic { .. }) => {
            Ok(log.create(NAME, TopicConfig::with_partitions(PARTITIONS)).await?)
        }
        topic => Ok(topic?),
    }
}

fn record(sender: u32, serial: u64) -> NewRecord {
    let padding = SeededRng::new(serial ^ (u64::from(sender) << 48)).below(3_000);
    let padding = "x".repeat(usize::try_from(padding).unwrap_or_default());
    NewRecord::new(format!("{sender} {serial} {padding}"))
}

fn sender_of(record: &Record) -> anyhow::Result<(u32, u64)> {
    let mut words = std::str::from_utf8(&record.payload)?.split(' ');
    let mut word = || words.next().context("too short");
    Ok((word()?.parse()?, word()?.parse()?))
}

#[derive(Clone)]
pub(crate) struct LogLoad {
    topic: Topic,
    /// Serial numbers of this cycle begin here.
    serials: u64,
}

impl LogLoad {
    pub(crate) async fn open(
        store: &EmbeddedStore,
        environment: &Environment,
        cycle: u32,
    ) -> anyhow::Result<Self> {
        Ok(Self { topic: open(store, environment).await?, serials: u64::from(cycle) << 32 })
    }

    /// Appends records without end.
    pub(crate) async fn append(self, sender: u32) -> anyhow::Result<()> {
        let options = AppendOptions::default();
        for serial in self.serials.. {
            let records = vec![record(sender, serial)];
            let appended = self.topic.append_to(sender % PARTITIONS, records, &options).await?;
            print(Acknowledged::Logged { sender, offset: appended.first })?;
        }
        Ok(())
    }
}

/// What was acknowledged of the log.
#[derive(Debug, Default)]
pub(crate) struct LogExpected {
    /// Who appended what is at an offset, by partition.
    appended: BTreeMap<(u32, u64), u32>,
    /// Up to where each partition was read.
    checked: BTreeMap<u32, u64>,
    serials: BTreeMap<u32, u64>,
}

impl LogExpected {
    pub(crate) fn appended(&mut self, sender: u32, offset: u64) {
        self.appended.insert((sender % PARTITIONS, offset), sender);
    }

    /// Everything acknowledged is at its offset, without a gap, each sender's records in order and as they were.
    pub(crate) async fn check(&mut self, store: &EmbeddedStore) -> anyhow::Result<()> {
        let topic = open(store, &Environment::system()).await?;
        for partition in 0..PARTITIONS {
            let mut next = self.checked.get(&partition).copied().unwrap_or(0);
            loop {
                let batch = topic.read(partition, next, 1_000).await?;
                ensure!(batch.gap.is_none(), "{partition}: {:?}", batch.gap);
                for found in &batch.records {
                    ensure!(found.offset == next, "{partition}: {next} is missing");
                    let (sender, serial) = sender_of(found)?;
                    let same = found.payload == record(sender, serial).payload;
                    ensure!(same, "{partition}: {next} has changed");
                    let told = self.appended.remove(&(partition, next));
                    ensure!(told.is_none_or(|told| told == sender), "{partition}: {next} moved");
                    let last = self.serials.insert(sender, serial);
                    ensure!(last < Some(serial), "sender {sender}: {serial} after {last:?}");
                    next += 1;
                }
                if !batch.more {
                    break;
                }
            }
            self.checked.insert(partition, next);
        }
        let lost = self.appended.first_key_value();
        ensure!(lost.is_none(), "appended and not there: {lost:?}");
        Ok(())
    }
}
