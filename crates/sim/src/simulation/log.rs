//! A log in a simulated world: everybody appends, reads in one group, and moves its checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use millpond_log::{
    AppendOptions, Assignment, Consumer, ConsumerOptions, Log, NewRecord, Record, Seek, Topic,
    TopicConfig,
};
use millpond_store::Certainty;

use super::world::{Process, Scenario};

const NAME: &str = "simulated";
const PARTITIONS: u32 = 3;
const LEASE: Duration = Duration::from_secs(10);

/// What processes were told.
#[derive(Debug, Default)]
struct Told {
    records: u64,
    /// Where a record is for certain.
    places: BTreeMap<u64, (u32, u64)>,
    /// Records that are nowhere for certain.
    refused: BTreeSet<u64>,
    assignments: BTreeMap<Assignment, Assigned>,
    wrong: Option<String>,
}

/// What one worker did with one partition, between taking it and losing it.
#[derive(Debug)]
struct Assigned {
    worker: String,
    from: u64,
    next: u64,
    /// Everything before it is done, and the group knows.
    checkpoint: u64,
}

impl Told {
    /// Within an assignment nothing is skipped and nothing comes again, and one worker has it.
    fn read(&mut self, worker: &str, assignment: Assignment, from: u64, to: u64) {
        let assigned = self.assignments.entry(assignment).or_insert_with(|| Assigned {
            worker: worker.to_owned(),
            from,
            next: from,
            checkpoint: 0,
        });
        if assigned.worker != worker || assigned.next != from {
            let wrong = format!("{assignment:?}: {worker} reads {from}..{to} after {assigned:?}");
            self.wrong.get_or_insert(wrong);
        }
        assigned.next = to;
    }

    /// Who holds a partition later goes on where earlier checkpoints are, or behind.
    fn check_checkpoints(&self) -> anyhow::Result<()> {
        for (earlier, before) in &self.assignments {
            let later = |(later, _): &(&Assignment, &Assigned)| {
                later.partition == earlier.partition && later.epoch > earlier.epoch
            };
            for (later, after) in self.assignments.iter().filter(later) {
                ensure!(
                    after.from >= before.checkpoint,
                    "{later:?} returned to {}, {} was done by {earlier:?}",
                    after.from,
                    before.checkpoint
                );
            }
        }
        Ok(())
    }

    /// Each record is where its sender was told, once; what was refused is nowhere.
    fn check_records(&self, found: &BTreeMap<u64, (u32, u64)>) -> anyhow::Result<()> {
        for (number, place) in &self.places {
            let there = found.get(number);
            ensure!(there == Some(place), "record {number} is at {there:?}, not at {place:?}");
        }
        let strange = found.keys().find(|number| self.refused.contains(number));
        ensure!(strange.is_none(), "record {strange:?} was refused and is there");
        Ok(())
    }
}

#[derive(Clone, Default)]
pub(crate) struct LogScenario(Arc<Mutex<Told>>);

impl LogScenario {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The topic, however often that must be tried.
    async fn open(&self, process: &Process) -> Topic {
        let log = Log::new(&process.ground);
        loop {
            let topic = match log.topic(NAME).await {
                Err(_) => log.create(NAME, TopicConfig::with_partitions(PARTITIONS)).await,
                topic => topic,
            };
            match topic {
                Ok(topic) => return topic,
                Err(_) => process.environment.clock.sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn join(&self, process: &Process, topic: &Topic) -> Consumer {
        loop {
            let options = ConsumerOptions { lease: LEASE, ..ConsumerOptions::default() };
            match topic.consumer("group", options).await {
                Ok(consumer) => return consumer,
                Err(_) => process.environment.clock.sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn append(&self, process: &Process, topic: &Topic) {
        let number = {
            let mut told = self.told();
            told.records += 1;
            told.records
        };
        let partition =
            u32::try_from(process.environment.rng.below(PARTITIONS.into())).unwrap_or(0);
        let record = NewRecord::new(number.to_string());
        let outcome = topic.append_to(partition, vec![record], &AppendOptions::default()).await;
        match &outcome {
            Ok(appended) => {
                self.told().places.insert(number, (appended.partition, appended.first));
            }
            Err(error) if error.certainty() == Certainty::Definite => {
                self.told().refused.insert(number);
            }
            Err(_) => {}
        }
        process.ended(format_args!("append {number} to {partition}: {outcome:?}"));
    }

    async fn poll(&self, process: &Process, consumer: &Consumer, assignment: Assignment) {
        let max = 1 + usize::try_from(process.environment.rng.below(4)).unwrap_or_default();
        let outcome = consumer.poll(assignment, max).await;
        if let Ok(batch) = &outcome
            && let Some(first) = batch.records.first()
        {
            let worker = consumer.worker().to_string();
            self.told().read(&worker, assignment, first.offset, batch.next);
        }
        let read = outcome.map(|batch| batch.next);
        process.ended(format_args!("poll {assignment:?}: {read:?}"));
    }

    async fn checkpoint(&self, process: &Process, consumer: &Consumer, assignment: Assignment) {
        let read = self.told().assignments.get(&assignment).map(|assigned| assigned.next);
        let Some(next) = read else { return };
        let outcome = consumer.checkpoint(assignment, next).await;
        process.ended(format_args!("checkpoint {assignment:?} at {next}: {outcome:?}"));
        if let (Ok(()), Some(done)) = (outcome, self.told().assignments.get_mut(&assignment)) {
            done.checkpoint = done.checkpoint.max(next);
        }
    }
}

impl Scenario for LogScenario {
    async fn work(self, process: Process) -> anyhow::Result<()> {
        let topic = self.open(&process).await;
        let consumer = self.join(&process, &topic).await;
        let rng = Arc::clone(&process.environment.rng);
        loop {
            let held = consumer.held();
            let at = usize::try_from(rng.below(held.len().max(1) as u64))?;
            match (rng.below(10), held.get(at)) {
                (0..3, _) => self.append(&process, &topic).await,
                (3..5, Some(held)) => self.poll(&process, &consumer, *held).await,
                (5..7, Some(held)) => self.checkpoint(&process, &consumer, *held).await,
                (7..9, _) => {
                    let beat = consumer.beat().await.is_ok();
                    let balance = consumer.balance().await.is_ok();
                    process.ended(format_args!("beat {beat}, balance {balance}"));
                }
                _ => process.environment.clock.sleep(Duration::from_millis(rng.below(3_000))).await,
            }
        }
    }

    async fn finish(self, process: Process) -> anyhow::Result<()> {
        let topic = self.open(&process).await;
        let mut found = BTreeMap::new();
        for partition in 0..PARTITIONS {
            let mut next = topic.seek(partition, Seek::Earliest).await?;
            ensure!(next == 0, "partition {partition} begins at {next}");
            loop {
                let batch = topic.read(partition, next, 100).await?;
                ensure!(batch.gap.is_none(), "a gap in partition {partition}: {:?}", batch.gap);
                for record in &batch.records {
                    ensure!(record.offset == next, "{} where {next} belongs", record.offset);
                    let twice = found.insert(number_of(record)?, (partition, next));
                    ensure!(twice.is_none(), "{record:?} is also at {twice:?}");
                    next += 1;
                }
                if !batch.more {
                    break;
                }
            }
        }
        let told = self.told();
        told.check_records(&found)?;
        told.check_checkpoints()
    }

    fn wrong(&self) -> Option<String> {
        self.told().wrong.clone()
    }
}

fn number_of(record: &Record) -> anyhow::Result<u64> {
    std::str::from_utf8(&record.payload)?.parse().context("a record that nobody sent")
}
