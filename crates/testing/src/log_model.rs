//! The log as lists, and random operations by several producers and workers, with faults, that are compared with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_log::{
    AppendOptions, Appended, Assignment, Consumer, ConsumerOptions, Log, LogError, ProducerId,
    Result, Sequence, Topic, TopicConfig,
};
use millpond_store::{Certainty, FaultPlan, FaultRates, Faulty, Store};
use object_store::memory::InMemory;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

use crate::log_history::{Event, History};
use crate::log_suite::{LogSubject, number, read_all, record};

const PARTITIONS: u32 = 3;
const LEASE: Duration = Duration::from_secs(30);

/// One operation. Numbers choose among what is there.
#[derive(Debug, Clone)]
pub enum Operation {
    /// One of three producers appends records of these sizes to a partition.
    Append(u8, u8, Vec<u16>),
    /// The same with a fence token.
    Fenced(u8, u8, u8),
    /// A producer with a sequence sends its next batch, or the last one again.
    Once(u8, u8, bool),
    /// One of three workers beats.
    Beat(u8),
    /// A worker balances.
    Balance(u8),
    /// A worker reads up to so many records of one of its partitions.
    Poll(u8, u8, u8),
    /// A worker checkpoints some of what it read.
    Checkpoint(u8, u8, u8),
    /// A worker gives a partition up.
    Release(u8, u8),
    /// A worker dies, and another comes.
    Crash(u8),
    /// Seconds pass.
    Advance(u8),
}

/// Up to `most` random operations.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let sizes = vec(prop_oneof![0..200_u16, 900..1_200_u16, 9_000..12_000_u16], 1..4);
    let operation = prop_oneof![
        4 => (0..3_u8, any::<u8>(), sizes).prop_map(|(p, at, sizes)| Operation::Append(p, at, sizes)),
        2 => (0..3_u8, any::<u8>(), 1..5_u8).prop_map(|(p, at, token)| Operation::Fenced(p, at, token)),
        2 => (0..3_u8, any::<u8>(), any::<bool>()).prop_map(|(p, at, again)| Operation::Once(p, at, again)),
        3 => (0..3_u8).prop_map(Operation::Beat),
        3 => (0..3_u8).prop_map(Operation::Balance),
        5 => (0..3_u8, any::<u8>(), 1..6_u8).prop_map(|(w, at, max)| Operation::Poll(w, at, max)),
        4 => (0..3_u8, any::<u8>(), any::<u8>()).prop_map(|(w, at, share)| Operation::Checkpoint(w, at, share)),
        1 => (0..3_u8, any::<u8>()).prop_map(|(w, at)| Operation::Release(w, at)),
        1 => (0..3_u8).prop_map(Operation::Crash),
        3 => (1..20_u8).prop_map(Operation::Advance),
    ];
    vec(operation, 1..most)
}

/// The model: what is in each partition, as lists. Numbers whose append ended unknown may be there or not.
#[derive(Default)]
struct Model {
    lists: BTreeMap<u32, Vec<u64>>,
    made: u64,
    /// The last batch that each producer sent with a sequence to each partition: its first number and sequence.
    sequences: BTreeMap<(u8, u32), (u64, u64)>,
}

struct Run<'a> {
    world: &'a LogSubject,
    faulty: Arc<Faulty<Arc<dyn Store>>>,
    producers: Vec<Topic>,
    workers: Vec<Consumer>,
    /// How far each assignment has read, and how much of it is done.
    read: BTreeMap<Assignment, (u64, u64)>,
    model: Model,
    history: History,
    faults: bool,
}

/// Runs `operations` on a real log and compares; with `faults`, one request in ten fails in some way.
pub async fn check(world: &LogSubject, operations: Vec<Operation>, faults: bool) {
    let environment = world.subject.impatient();
    let faulty = Arc::new(Faulty::new(world.subject.store.clone(), &environment));
    let objects = world.objects.clone().unwrap_or_else(|| Arc::new(InMemory::new()));
    let ground = Ground::new(faulty.clone(), &environment)
        .with_objects(Objects::new(objects, "model".into()));
    let config = TopicConfig::with_partitions(PARTITIONS);
    let topic = Log::new(&ground).create(&world.name(), config).await.unwrap();
    let mut run = Run {
        world,
        faulty,
        producers: Vec::new(),
        workers: Vec::new(),
        read: BTreeMap::new(),
        model: Model::default(),
        history: History::default(),
        faults,
    };
    for _ in 0..3 {
        run.producers.push(Log::new(&ground).topic(&topic.name()).await.unwrap());
        run.workers.push(run.join(0).await);
    }
    for operation in operations {
        run.harm(true);
        run.operate(operation).await;
        run.harm(false);
    }
    let mut log = BTreeMap::new();
    for partition in 0..PARTITIONS {
        log.insert(partition, read_all(&topic, partition).await);
    }
    run.history.check(&log, number);
    if !faults {
        for (partition, records) in &log {
            let numbers: Vec<u64> = records.iter().map(number).collect();
            let expected = run.model.lists.get(partition).cloned().unwrap_or_default();
            assert_eq!(numbers, expected, "partition {partition} differs from the model");
        }
    }
}

impl Run<'_> {
    fn harm(&self, on: bool) {
        let rates = FaultRates {
            conflict: 0.02,
            definite: 0.02,
            unknown_before: 0.03,
            unknown_after: 0.03,
            throttle: 0.02,
            ..FaultRates::default()
        };
        let plan = if on && self.faults { FaultPlan::Chance(rates) } else { FaultPlan::None };
        self.faulty.follow(plan);
    }

    async fn join(&self, at: usize) -> Consumer {
        let options = ConsumerOptions { lease: LEASE, ..ConsumerOptions::default() };
        self.producers[at].consumer("g", options).await.unwrap()
    }

    fn appended(
        &mut self,
        partition: u32,
        numbers: &[u64],
        fence: Option<u64>,
        outcome: Result<Appended>,
    ) {
        match outcome {
            Ok(Appended { first, duplicate, .. }) => {
                if duplicate {
                    return;
                }
                for (offset, number) in (first..).zip(numbers) {
                    let number = *number;
                    self.history.0.push(Event::Appended { partition, offset, number, fence });
                }
                self.model.lists.entry(partition).or_default().extend(numbers);
            }
            Err(error) if error.certainty() == Certainty::Unknown => {
                let unknown = numbers.iter().map(|number| Event::Unknown { number: *number });
                self.history.0.extend(unknown);
            }
            Err(_) => {}
        }
    }

    fn numbers(&mut self, count: usize) -> Vec<u64> {
        let first = self.model.made;
        self.model.made += count as u64;
        (first..self.model.made).collect()
    }

    fn held(&self, worker: u8, at: u8) -> Option<Assignment> {
        let held = self.workers[usize::from(worker)].held();
        held.get(usize::from(at) % held.len().max(1)).copied()
    }

    async fn operate(&mut self, operation: Operation) {
        match operation {
            Operation::Append(producer, at, sizes) => {
                let partition = u32::from(at) % PARTITIONS;
                let numbers = self.numbers(sizes.len());
                let records = numbers.iter().zip(sizes).map(|(n, size)| record(*n, size.into()));
                let topic = &self.producers[usize::from(producer)];
                let options = AppendOptions::default();
                let outcome = topic.append_to(partition, records.collect(), &options).await;
                self.appended(partition, &numbers, None, outcome);
            }
            Operation::Fenced(producer, at, token) => {
                let (partition, token) = (u32::from(at) % PARTITIONS, u64::from(token));
                let numbers = self.numbers(1);
                let options = AppendOptions { fence: Some(token), sequence: None };
                let topic = &self.producers[usize::from(producer)];
                let outcome =
                    topic.append_to(partition, vec![record(numbers[0], 50)], &options).await;
                self.appended(partition, &numbers, Some(token), outcome);
            }
            Operation::Once(producer, at, again) => {
                self.once(producer, u32::from(at) % PARTITIONS, again).await;
            }
            Operation::Beat(worker) => drop(self.workers[usize::from(worker)].beat().await),
            Operation::Balance(worker) => self.balance(worker).await,
            Operation::Poll(worker, at, max) => {
                let Some(at) = self.held(worker, at) else { return };
                let batch = self.workers[usize::from(worker)].poll(at, max.into()).await;
                if let (Ok(batch), Some((from, done))) = (batch, self.read.get(&at).copied()) {
                    self.history.0.push(Event::Read { assignment: at, from, to: batch.next });
                    self.read.insert(at, (batch.next, done));
                }
            }
            Operation::Checkpoint(worker, at, share) => self.checkpoint(worker, at, share).await,
            Operation::Release(worker, at) => {
                if let Some(at) = self.held(worker, at) {
                    drop(self.workers[usize::from(worker)].release(at).await);
                }
            }
            Operation::Crash(worker) => {
                self.harm(false);
                self.workers[usize::from(worker)] = self.join(usize::from(worker)).await;
            }
            Operation::Advance(seconds) => {
                self.world.subject.clock.advance(Duration::from_secs(seconds.into()));
            }
        }
    }

    async fn once(&mut self, producer: u8, partition: u32, again: bool) {
        let last = self.model.sequences.get(&(producer, partition)).copied();
        let (number, first) = match (last, again) {
            (Some(last), true) => last,
            (Some((_, sequence)), false) => (self.numbers(1)[0], sequence + 1),
            (None, _) => (self.numbers(1)[0], 0),
        };
        let id = ProducerId::new(&format!("producer-{producer}")).unwrap();
        let options =
            AppendOptions { fence: None, sequence: Some(Sequence { producer: id, first }) };
        let topic = &self.producers[usize::from(producer)];
        let outcome = topic.append_to(partition, vec![record(number, 60)], &options).await;
        match &outcome {
            Ok(_) => drop(self.model.sequences.insert((producer, partition), (number, first))),
            // The batch before may be in the log or not: its producer would send it again first.
            Err(LogError::OutOfSequence { .. }) => {}
            Err(_) => drop(self.model.sequences.insert((producer, partition), (number, first))),
        }
        self.appended(partition, &[number], None, outcome);
    }

    async fn balance(&mut self, worker: u8) {
        let worker = &self.workers[usize::from(worker)];
        let before = worker.held();
        // Also when it fails in the middle, what it took it has.
        drop(worker.balance().await);
        self.harm(false);
        for at in worker.held().into_iter().filter(|at| !before.contains(at)) {
            let group = self.producers[0].describe_group("g").await.unwrap();
            let from = group.partitions[at.partition as usize].checkpoint;
            self.history.0.push(Event::Taken { assignment: at, from });
            self.read.insert(at, (from, from));
        }
    }

    async fn checkpoint(&mut self, worker: u8, at: u8, share: u8) {
        let Some(at) = self.held(worker, at) else { return };
        let Some((to, done)) = self.read.get(&at).copied() else { return };
        let next = done + (to - done) * u64::from(share) / 255;
        if next == done {
            return;
        }
        let consumer = &self.workers[usize::from(worker)];
        let mut outcome = consumer.checkpoint(at, next).await;
        if matches!(&outcome, Err(error) if error.certainty() == Certainty::Unknown) {
            // It may have been done: it is asked for once more, as a caller would.
            self.harm(false);
            outcome = consumer.checkpoint(at, next).await;
        }
        if outcome.is_ok() {
            self.history.0.push(Event::Checkpointed { assignment: at, next });
            self.read.insert(at, (to, next));
        }
    }
}
