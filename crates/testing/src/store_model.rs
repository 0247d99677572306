//! The store as a map, and random operations that compare a real store with it.
//!
//! The model decides by itself what each operation should answer; it shares no code with the backends.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_store::{
    Attributes, Change, Expect, Expiry, Item, Key, Partition, Query, SortKey, SortRange,
    StoreError, Timestamp, Version, Write,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

use crate::subject::{Subject, key_in};

/// What a write expects, said in a way that fits whatever is there when it runs.
#[derive(Debug, Clone, Copy)]
pub enum Expectation {
    /// Nothing there.
    Absent,
    /// The version that is there (or a made-up one).
    Current,
    /// A version that was there before.
    Stale,
    /// Anything.
    Any,
}

/// One write of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    key: u8,
    expectation: Expectation,
    /// Seconds until a put ends (0 to 3; 3 means never), or nothing for a delete.
    put: Option<u8>,
    value: i64,
}

/// One operation.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A get of a key.
    Get(u8),
    /// A query of a range of keys, with a page limit, forward or reverse.
    Query(u8, u8, u8, bool),
    /// One write.
    Write(Step),
    /// The last write once more, with the same version.
    Again,
    /// An atomic group.
    WriteAll(Vec<Step>),
    /// Independent writes.
    WriteEach(Vec<Step>),
    /// Time passes, in milliseconds.
    Advance(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let expectation = prop_oneof![
        3 => proptest::strategy::Just(Expectation::Absent),
        4 => proptest::strategy::Just(Expectation::Current),
        1 => proptest::strategy::Just(Expectation::Stale),
        2 => proptest::strategy::Just(Expectation::Any),
    ];
    let put = prop_oneof![3 => (0..4_u8).prop_map(Some), 1 => proptest::strategy::Just(None)];
    (0..6_u8, expectation, put, any::<i64>()).prop_map(|(key, expectation, put, value)| Step {
        key,
        expectation,
        put,
        value,
    })
}

/// Up to `most` random operations on six keys in two partitions.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        2 => (0..6_u8).prop_map(Operation::Get),
        2 => (0..6_u8, 0..6_u8, 1..4_u8, any::<bool>())
            .prop_map(|(from, to, limit, reverse)| Operation::Query(from, to, limit, reverse)),
        6 => step().prop_map(Operation::Write),
        1 => proptest::strategy::Just(Operation::Again),
        3 => vec(step(), 1..5).prop_map(Operation::WriteAll),
        2 => vec(step(), 1..5).prop_map(Operation::WriteEach),
        2 => (0..1_500_u16).prop_map(Operation::Advance),
    ];
    vec(operation, 1..most)
}

/// What a write comes to: applied, or the current item.
type Outcome = Result<(), Option<Item>>;

struct Model {
    items: BTreeMap<Key, Item>,
    now: Timestamp,
    stale: Version,
}

impl Model {
    fn live(&self, key: &Key) -> Option<Item> {
        let ended = |item: &Item| {
            item.expiry.is_some_and(|expiry| self.now.as_millis() >= expiry.as_secs() * 1_000)
        };
        self.items.get(key).filter(|item| !ended(item)).cloned()
    }

    fn judge(&self, write: &Write) -> Outcome {
        let current = self.live(&write.key);
        let version = current.as_ref().map(|item| item.version);
        let fits = match write.expect {
            Expect::Any => true,
            Expect::Absent => version.is_none(),
            Expect::Version(wanted) => version == Some(wanted),
        };
        let own = matches!(write.change, Change::Put { version: own, .. } if version == Some(own));
        if fits || own { Ok(()) } else { Err(current) }
    }

    fn apply(&mut self, write: &Write) {
        match write.item() {
            Some(item) => self.items.insert(write.key.clone(), item),
            None => self.items.remove(&write.key),
        };
    }

    fn write(&mut self, write: &Write) -> Outcome {
        let outcome = self.judge(write);
        if outcome.is_ok() {
            self.apply(write);
        }
        outcome
    }

    /// The conflicts of a group of fresh writes; applied when there are none.
    fn write_all(&mut self, writes: &[Write]) -> Vec<(usize, Option<Item>)> {
        let judged = writes.iter().enumerate().map(|(index, write)| (index, self.judge(write)));
        let conflicts: Vec<_> =
            judged.filter_map(|(index, outcome)| Some((index, outcome.err()?))).collect();
        if conflicts.is_empty() {
            writes.iter().for_each(|write| self.apply(write));
        }
        conflicts
    }
}

struct Run<'a> {
    subject: &'a Subject,
    partitions: [Partition; 2],
    model: Model,
    last: Option<Write>,
}

impl Run<'_> {
    fn key(&self, number: u8) -> Key {
        key_in(&self.partitions[usize::from(number % 2)], &[number / 2])
    }

    fn write_of(&self, step: Step) -> Write {
        let key = self.key(step.key);
        let expect = match step.expectation {
            Expectation::Absent => Expect::Absent,
            Expectation::Any => Expect::Any,
            Expectation::Stale => Expect::Version(self.model.stale),
            Expectation::Current => {
                Expect::Version(self.model.live(&key).map_or(self.model.stale, |item| item.version))
            }
        };
        let Some(seconds) = step.put else {
            return Write::delete(key, expect);
        };
        let put = self.subject.put(&key, Attributes::new().with("value", step.value), expect);
        match seconds {
            3 => put,
            _ => put.expires(Expiry::from_secs(
                self.model.now.as_millis() / 1_000 + u64::from(seconds),
            )),
        }
    }

    /// The writes of several steps; the first of each key counts.
    fn writes_of(&self, steps: Vec<Step>) -> Vec<Write> {
        let mut writes: Vec<Write> = Vec::new();
        for step in steps {
            let write = self.write_of(step);
            if writes.iter().all(|other| other.key != write.key) {
                writes.push(write);
            }
        }
        writes
    }

    async fn operate(&mut self, operation: Operation) {
        match operation {
            Operation::Get(number) => {
                let key = self.key(number);
                assert_eq!(self.subject.get(&key).await, self.model.live(&key), "get {key}");
            }
            Operation::Query(from, to, limit, reverse) => {
                self.query(from, to, limit, reverse).await;
            }
            Operation::Write(step) => {
                let write = self.write_of(step);
                self.write(write).await;
            }
            Operation::Again => {
                if let Some(write) = self.last.clone().filter(|write| write.version().is_some()) {
                    self.write(write).await;
                }
            }
            Operation::WriteAll(steps) => {
                let writes = self.writes_of(steps);
                let expected = self.model.write_all(&writes);
                let outcome = self.subject.store.write_all(writes).await;
                assert_eq!(conflicts(outcome), expected, "write_all");
            }
            Operation::WriteEach(steps) => {
                let writes = self.writes_of(steps);
                let outcomes = self.subject.store.write_each(writes.clone()).await.unwrap();
                assert_eq!(outcomes.len(), writes.len());
                for (write, outcome) in writes.iter().zip(outcomes) {
                    let expected = self.model.write(write);
                    assert_eq!(single(outcome), expected, "write_each: {write:?}");
                }
            }
            Operation::Advance(millis) => {
                let passed = Duration::from_millis(millis.into());
                self.subject.clock.advance(passed);
                self.model.now = self.model.now.plus(passed);
            }
        }
    }

    async fn write(&mut self, write: Write) {
        if let Some(item) = self.model.live(&write.key) {
            self.model.stale = item.version;
        }
        let expected = self.model.write(&write);
        let outcome = self.subject.store.write(write.clone()).await;
        assert_eq!(single(outcome), expected, "{write:?}");
        self.last = Some(write);
    }

    async fn query(&self, from: u8, to: u8, limit: u8, reverse: bool) {
        let sort = |number: u8| SortKey::new(vec![number]).unwrap();
        let (partition, range) = (&self.partitions[0], SortRange::between(sort(from), sort(to)));
        let keys = self.model.items.keys();
        let mut expected: Vec<Item> = keys
            .filter(|key| key.partition == *partition && range.contains(&key.sort))
            .filter_map(|key| self.model.live(key))
            .collect();
        let query = Query::new(partition.clone()).range(range).limit(limit.into());
        let query = if reverse { query.reverse() } else { query };
        if reverse {
            expected.reverse();
        }
        assert_eq!(self.subject.all(query).await, expected, "query {from}..{to}");
    }
}

fn conflicts(outcome: Result<(), StoreError>) -> Vec<(usize, Option<Item>)> {
    match outcome {
        Ok(()) => Vec::new(),
        refused => crate::subject::conflicts_of(refused),
    }
}

fn single(outcome: Result<(), StoreError>) -> Outcome {
    conflicts(outcome).pop().map_or(Ok(()), |(_, current)| Err(current))
}

/// Runs `operations` on the subject and the model side by side, and compares every answer and the end.
pub async fn check(subject: &Subject, operations: Vec<Operation>) {
    let model = Model {
        items: BTreeMap::new(),
        now: subject.environment.now(),
        stale: subject.environment.version(),
    };
    let partitions = [subject.partition(), subject.partition()];
    let mut run = Run { subject, partitions, model, last: None };
    for operation in operations {
        run.operate(operation).await;
    }
    for number in 0..6 {
        run.operate(Operation::Get(number)).await;
    }
    run.query(0, 6, 1, false).await;
}
