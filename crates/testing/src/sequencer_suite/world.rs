//! A sequencer's store, watched: every change of a cursor that really happened is written down.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use millpond_sequencer::{Advance, Config, Message, Sequencer};
use millpond_store::{
    ChangeHint, Environment, FaultPlan, Faulty, Item, Key, Page, Partition, Profile, Query, Result,
    Rng, SeededRng, Store, Write, collect,
};

use crate::subject::Subject;

/// A cursor's change, as its stream record would show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The partition of the queue.
    pub partition: String,
    /// The epoch.
    pub epoch: u64,
    /// The last number before.
    pub old: i64,
    /// The last number after.
    pub new: i64,
    /// The item as it was written.
    pub item: Item,
}

/// A store that writes down every cursor that was stored.
#[derive(Debug)]
pub struct Recorder {
    inner: Arc<dyn Store>,
    rng: Arc<dyn Rng>,
    seen: Mutex<(HashSet<u64>, Vec<Change>)>,
}

impl Recorder {
    /// Lets others go first now and then, so that tasks of one thread meet in every way.
    async fn meet(&self) {
        for _ in 0..self.rng.below(4) {
            tokio::task::yield_now().await;
        }
    }

    fn record(&self, writes: &[Write]) {
        let mut seen = self.seen.lock().unwrap();
        for item in writes.iter().filter_map(Write::item) {
            if item.key.sort.as_bytes() == b"c" && seen.0.insert(item.version.to_u64()) {
                let number = |name| item.attributes.number(name).unwrap();
                seen.1.push(Change {
                    partition: item.key.partition.as_str().to_owned(),
                    epoch: u64::try_from(number("epoch")).unwrap(),
                    old: number("old"),
                    new: number("new"),
                    item,
                });
            }
        }
    }

    /// The changes of one queue so far.
    pub fn changes(&self, name: &str, queue: &str) -> Vec<Change> {
        let partition = format!("{name}/q/{queue}");
        let seen = self.seen.lock().unwrap();
        seen.1.iter().filter(|change| change.partition == partition).cloned().collect()
    }
}

#[async_trait]
impl Store for Recorder {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.meet().await;
        self.inner.get(key).await
    }
    async fn query(&self, query: Query) -> Result<Page> {
        self.meet().await;
        self.inner.query(query).await
    }
    async fn write(&self, write: Write) -> Result<()> {
        self.meet().await;
        self.inner.write(write.clone()).await?;
        self.record(&[write]);
        Ok(())
    }
    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.meet().await;
        self.inner.write_all(writes.clone()).await?;
        self.record(&writes);
        Ok(())
    }
    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.meet().await;
        self.inner.write_each(writes).await
    }
    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}

/// A sequencer's name of its own on the subject's store, with faults on request.
#[derive(Debug, Clone)]
pub struct World {
    /// The subject.
    pub subject: Subject,
    /// What fails.
    pub faulty: Arc<Faulty<Arc<Recorder>>>,
    /// What happened to cursors.
    pub recorder: Arc<Recorder>,
    /// The sequencer's name.
    pub name: String,
    /// Time and chance, as the sequencer sees them: a sleep ends at once.
    pub environment: Environment,
}

impl World {
    /// A world of its own.
    pub fn new(subject: &Subject) -> Self {
        Self::seeded(subject, Environment::system().rng.next_u64())
    }

    /// A world in which chance comes from a seed.
    pub fn seeded(subject: &Subject, seed: u64) -> Self {
        let rng: Arc<dyn Rng> = Arc::new(SeededRng::new(seed));
        let environment = Environment { rng: rng.clone(), ..subject.impatient() };
        let (inner, seen) = (subject.store.clone(), Mutex::default());
        let recorder = Arc::new(Recorder { inner, rng, seen });
        let faulty = Arc::new(Faulty::new(recorder.clone(), &environment));
        let name = format!("s{:016x}", Environment::system().rng.next_u64());
        Self { subject: subject.clone(), faulty, recorder, name, environment }
    }

    /// A handle with a memory of its own, as another process has.
    pub fn open(&self, config: Config) -> Sequencer {
        Sequencer::open(self.faulty.clone(), &self.environment, &self.name, config).unwrap()
    }

    /// Nothing fails from now on.
    pub fn calm(&self) {
        self.faulty.follow(FaultPlan::None);
    }

    /// Every row of a partition of the sequencer.
    pub async fn rows(&self, rest: &str) -> Vec<Item> {
        let partition = Partition::new(format!("{}/{rest}", self.name)).unwrap();
        collect(self.subject.store.as_ref(), Query::new(partition), 100_000).await.unwrap()
    }

    /// Rows of the index of unsettled queues.
    pub async fn index_rows(&self) -> usize {
        let mut rows = 0;
        for shard in 0..millpond_sequencer::limits::SHARDS {
            rows += self.rows(&format!("unsettled/{shard}")).await.len();
        }
        rows
    }

    /// I6, for a queue that was never set back: see [`check_history`].
    pub async fn check(&self, queue: &str, returned: &[Advance], failed: usize, case: &str) {
        let cursor = self.open(Config::default()).cursor(queue).await.unwrap();
        let stored = cursor.map(|cursor| (cursor.start, cursor.next));
        check_history(&self.recorder.changes(&self.name, queue), returned, stored, failed, case);
    }
}

/// I6: what was returned, what was announced and what is stored agree; every change starts where the former ended,
/// and numbers strictly increase. A call that `failed` could not return what it passed.
pub fn check_history(
    changes: &[Change],
    returned: &[Advance],
    stored: Option<(u64, u64)>,
    failed: usize,
    case: &str,
) {
    let mut announced: Vec<(i64, i64)> = changes
        .iter()
        .map(|change| (change.old, change.new))
        .filter(|(old, new)| old != new)
        .collect();
    announced.sort_unstable();
    let start = stored.map_or(0, |(start, _)| i64::try_from(start).unwrap());
    let mut at = start - 1;
    for (old, new) in &announced {
        assert_eq!(
            *old, at,
            "{case}: a change does not start where the former ended: {announced:?}"
        );
        assert!(new > old, "{case}: a cursor went back: {announced:?}");
        at = *new;
    }
    let next = stored.map_or(0, |(_, next)| i64::try_from(next).unwrap());
    assert_eq!(at, next - 1, "{case}: announced and stored differ");
    let mut numbers = BTreeMap::new();
    for seq in returned.iter().flat_map(Advance::numbers) {
        *numbers.entry(seq).or_insert(0) += 1;
    }
    assert!(numbers.values().all(|times| *times == 1), "{case}: returned twice: {returned:?}");
    let first = u64::try_from(start).unwrap();
    let announced_numbers = first..u64::try_from(next).unwrap();
    assert!(numbers.keys().all(|seq| announced_numbers.contains(seq)), "{case}: {returned:?}");
    if failed == 0 {
        assert!(
            numbers.into_keys().eq(announced_numbers),
            "{case}: not all returned: {returned:?}"
        );
    }
}

/// A message whose bytes depend on its number.
pub fn message(seq: u64, bytes: usize) -> Message {
    let payload: Vec<u8> = (0..bytes).map(|at| (seq as usize * 31 + at * 7) as u8).collect();
    Message::new(Bytes::from(payload)).with("number", seq.to_string())
}

/// Numbers in an order that depends on the seed.
pub fn shuffled(numbers: impl IntoIterator<Item = u64>, seed: u64) -> Vec<u64> {
    let rng = SeededRng::new(seed);
    let mut numbers: Vec<u64> = numbers.into_iter().collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, rng.below(at as u64 + 1) as usize);
    }
    numbers
}

/// One range, as a list.
pub(super) fn only(range: std::ops::Range<u64>) -> Vec<std::ops::Range<u64>> {
    Vec::from_iter([range])
}
