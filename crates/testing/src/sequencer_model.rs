//! A sequencer as a map, and random operations by several writers that compare the real one with it.

use std::collections::{BTreeMap, BTreeSet};

use millpond_sequencer::{
    Advance, Arrival, Config, Entry, GapPolicy, Output, Sequencer, SequencerError,
};
use millpond_store::{FaultPlan, FaultRates, Rng as _, SeededRng};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};

use crate::sequencer_suite::{World, message};
use crate::subject::Subject;

/// One operation; the first number chooses one of three handles.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Puts these numbers, relative to the cursor, in one call.
    Put(u8, Vec<u16>),
    /// Puts a number again that was put before, chosen by this one.
    Again(u8, u16),
    /// Puts another payload at a number that was put before.
    Other(u8, u16),
    /// Declares a gap: so many numbers, so far ahead of the cursor.
    Declare(u8, u16, u8),
    /// Gives up what is missing, up to so far ahead of the cursor.
    Skip(u8, u16),
    /// Removes so much of what was delivered.
    Trim(u8, u8),
    /// Sweeps.
    Sweep(u8),
    /// A handle is opened anew, as by a new process.
    Reopen(u8),
}

/// Up to `most` random operations.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let handle = || 0..3_u8;
    let operation = prop_oneof![
        10 => (handle(), vec(0..12_u16, 1..6)).prop_map(|(h, numbers)| Operation::Put(h, numbers)),
        2 => (handle(), 0..500_u16).prop_map(|(h, at)| Operation::Again(h, at)),
        1 => (handle(), 0..500_u16).prop_map(|(h, at)| Operation::Other(h, at)),
        1 => (handle(), 0..6_u16, 1..5_u8).prop_map(|(h, at, n)| Operation::Declare(h, at, n)),
        1 => (handle(), 1..4_u16).prop_map(|(h, at)| Operation::Skip(h, at)),
        1 => (handle(), 0..4_u8).prop_map(|(h, n)| Operation::Trim(h, n)),
        1 => handle().prop_map(Operation::Sweep),
        1 => handle().prop_map(Operation::Reopen),
    ];
    vec(operation, 1..most)
}

/// What a queue should hold.
#[derive(Debug, Default, Clone)]
pub struct Model {
    items: BTreeSet<u64>,
    declared: BTreeSet<u64>,
    /// What was passed: whether as a message or as a gap.
    passed: BTreeMap<u64, bool>,
    next: u64,
    floor: u64,
}

impl Model {
    /// Passes everything that can be passed.
    fn settle(&mut self) {
        loop {
            let there = self.items.contains(&self.next);
            if !there && !self.declared.contains(&self.next) {
                return;
            }
            self.passed.insert(self.next, there);
            self.next += 1;
        }
    }

    /// A message; whether it was new.
    fn put(&mut self, seq: u64) -> Arrival {
        if seq < self.floor {
            return Arrival::Passed;
        }
        if self.items.insert(seq) { Arrival::Stored } else { Arrival::Duplicate }
    }

    fn is_late(&self, seq: u64) -> bool {
        self.passed.get(&seq) == Some(&false) && seq >= self.floor
    }

    fn chosen(&self, at: u16) -> Option<u64> {
        let count = self.items.len();
        self.items.iter().nth(usize::from(at) % count.max(1)).copied()
    }
}

struct Run {
    world: World,
    config: Config,
    handles: Vec<Sequencer>,
    model: Model,
    returned: Vec<Advance>,
}

/// Runs `operations` on a queue and on the model, and compares after each.
pub async fn check(subject: &Subject, operations: Vec<Operation>, seed: u64) {
    let world = World::new(subject);
    let batch = usize::try_from(seed % 7).unwrap() + 1;
    let config = Config { gaps: GapPolicy::WhenDeclared, batch, ..Config::default() };
    let handles = (0..3).map(|_| world.open(config)).collect();
    let mut run = Run { world, config, handles, model: Model::default(), returned: Vec::new() };
    for operation in operations {
        let case = format!("{operation:?}, {:?}", run.model);
        run.operate(operation, &case).await;
        run.model.settle();
        run.compare(&case).await;
    }
    run.world.check("q", &run.returned, 0, "at the end").await;
}

impl Run {
    fn handle(&self, handle: u8) -> Sequencer {
        self.handles[usize::from(handle)].clone()
    }

    async fn operate(&mut self, operation: Operation, case: &str) {
        let next = self.model.next;
        match operation {
            Operation::Put(handle, ahead) => {
                let numbers: Vec<u64> = ahead.iter().map(|n| next + u64::from(*n)).collect();
                let entries = numbers.iter().map(|seq| Entry::new("q", *seq, message(*seq, 9)));
                let entries = entries.collect::<Result<Vec<_>, _>>().unwrap();
                let result = self.handle(handle).put_batch(entries).await.unwrap();
                for (seq, arrival) in numbers.iter().zip(result.arrivals) {
                    assert_eq!(arrival.unwrap(), self.model.put(*seq), "{case}: number {seq}");
                }
                self.returned.extend(result.advanced.iter().map(|(_, passed)| *passed));
            }
            Operation::Again(handle, at) => {
                let Some(seq) = self.model.chosen(at) else { return };
                let put = self.handle(handle).put("q", seq, message(seq, 9)).await.unwrap();
                assert_eq!(put.arrival, self.model.put(seq), "{case}: number {seq}");
                assert_eq!(put.advanced, None, "{case}");
            }
            Operation::Other(handle, at) => {
                let Some(seq) = self.model.chosen(at) else { return };
                let put = self.handle(handle).put("q", seq, message(seq, 8)).await;
                let known = seq >= self.model.floor;
                let conflict = matches!(put, Err(SequencerError::Conflict { .. }));
                assert_eq!(conflict, known, "{case}: number {seq}: {put:?}");
            }
            Operation::Declare(handle, at, count) => {
                let first = next + u64::from(at);
                let range = first..first + u64::from(count);
                let passed = self.handle(handle).declare_gap("q", range.clone()).await.unwrap();
                self.model.declared.extend(range);
                self.returned.extend(passed);
            }
            Operation::Skip(handle, ahead) => {
                let to = next + u64::from(ahead);
                let passed = self.handle(handle).skip("q", to).await.unwrap();
                self.model.declared.extend(next..to);
                self.returned.extend(passed);
            }
            Operation::Trim(handle, count) => {
                let floor = (self.model.floor + u64::from(count)).min(next);
                self.handle(handle).trim("q", floor).await.unwrap();
                self.model.floor = floor;
            }
            Operation::Sweep(handle) => {
                let swept = self.handle(handle).sweep().await.unwrap();
                assert!(swept.advanced.is_empty() && swept.failed.is_empty(), "{case}: {swept:?}");
            }
            Operation::Reopen(handle) => {
                self.handles[usize::from(handle)] = self.world.open(self.config);
            }
        }
    }

    async fn compare(&self, case: &str) {
        let (sequencer, model) = (&self.handles[0], &self.model);
        let cursor = sequencer.cursor("q").await.unwrap();
        let place = cursor.as_ref().map_or((0, 0), |cursor| (cursor.next, cursor.floor));
        assert_eq!(place, (model.next, model.floor), "{case}");
        let read = sequencer.read("q", model.floor..model.next).await.unwrap();
        let mut found = BTreeMap::new();
        for output in &read.outputs {
            match output {
                Output::Message(message) => {
                    found.insert(message.seq, true);
                }
                Output::Gap(gap) => found.extend((gap.first..gap.end).map(|seq| (seq, false))),
            }
        }
        let expected: BTreeMap<u64, bool> =
            model.passed.range(model.floor..).map(|(seq, there)| (*seq, *there)).collect();
        assert_eq!(found, expected, "{case}");
        let waiting: u64 = model.items.range(model.next..).count() as u64;
        assert_eq!(sequencer.pending("q").await.unwrap().count, waiting, "{case}");
        // A message for a number that was given up is refused, and changes nothing.
        if let Some((seq, _)) = model.passed.iter().rev().find(|(seq, _)| model.is_late(**seq)) {
            let put = self.world.open(self.config).put("q", *seq, message(*seq, 9)).await;
            assert!(matches!(put, Err(SequencerError::Late { .. })), "{case}: {put:?}");
        }
    }
}

/// Three writers at once put every number of `0..count` twice while one request in seven goes wrong; each tries again
/// until it is told that it was stored. Then everything must have been passed, once and in order.
pub async fn check_with_faults(subject: &Subject, count: u64, seed: u64) {
    let world = World::seeded(subject, seed);
    let rates = FaultRates {
        conflict: 0.02,
        definite: 0.03,
        unknown_before: 0.03,
        unknown_after: 0.04,
        throttle: 0.02,
        ..FaultRates::default()
    };
    world.faulty.follow(FaultPlan::Chance(rates));
    let config = Config { batch: 1 + (seed % 5) as usize, ..Config::default() };
    let writers = (0..3_u64).map(|writer| {
        let world = world.clone();
        tokio::spawn(async move {
            let rng = SeededRng::new(seed ^ (writer << 40));
            let mut sequencer = world.open(config);
            let mut left: Vec<u64> =
                (0..count).chain(0..count).filter(|n| n % 3 != writer).collect();
            let (mut returned, mut failed) = (Vec::new(), 0);
            while !left.is_empty() {
                let at = rng.below(left.len() as u64) as usize;
                match sequencer.put("q", left[at], message(left[at], 12)).await {
                    Ok(put) => {
                        returned.extend(put.advanced);
                        left.swap_remove(at);
                    }
                    Err(SequencerError::Store(_)) => failed += 1,
                    Err(error) => panic!("{error}"),
                }
                if rng.chance(0.05) {
                    sequencer = world.open(config);
                }
            }
            (returned, failed)
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut returned, mut failures) = (Vec::new(), 0);
    for writer in writers {
        let (passed, failed) = writer.await.unwrap();
        returned.extend(passed);
        failures += failed;
    }
    world.calm();
    let swept = world.open(config).sweep().await.unwrap();
    returned.extend(swept.advanced.iter().map(|(_, passed)| *passed));
    let cursor = world.open(config).cursor("q").await.unwrap().unwrap();
    assert_eq!(cursor.next, count, "seed {seed}: a message is stranded");
    world.check("q", &returned, failures, &format!("seed {seed}")).await;
}
