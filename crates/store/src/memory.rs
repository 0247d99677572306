//! A store in memory: for tests and examples. It is not durable, and says so in its profile.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::environment::Environment;
use crate::error::{Result, StoreError};
use crate::hints::{ChangeHint, Hints};
use crate::item::Item;
use crate::key::{Key, Partition, SortKey};
use crate::limits::PAGE_BYTES_MAX;
use crate::query::{Direction, Page, Query};
use crate::store::{Profile, Store};
use crate::write::{Change, Verdict, Write, check_each, check_group, judge_group, judge_write};

type Rows = BTreeMap<SortKey, Item>;

/// Items in memory, gone with the process. Clones share the same items.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    partitions: Arc<Mutex<BTreeMap<Partition, Rows>>>,
    hints: Hints,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        Self {
            partitions: Arc::default(),
            hints: Hints::new(),
            clock: Arc::clone(&environment.clock),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Partition, Rows>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The live item under `key`.
    fn find<'a>(&self, partitions: &'a BTreeMap<Partition, Rows>, key: &Key) -> Option<&'a Item> {
        let item = partitions.get(&key.partition)?.get(&key.sort)?;
        item.is_live(self.clock.now()).then_some(item)
    }

    fn write_one(&self, write: Write) -> Result<()> {
        write.check()?;
        let mut partitions = self.lock();
        let current = self.find(&partitions, &write.key);
        match judge_write(&write, current.map(|item| item.version)) {
            Verdict::Apply => apply(&mut partitions, &write),
            Verdict::AlreadyApplied => {}
            Verdict::Conflict => return Err(StoreError::conflict(write.key, current.cloned())),
        }
        drop(partitions);
        self.hints.touch(&write.key.partition);
        Ok(())
    }
}

fn apply(partitions: &mut BTreeMap<Partition, Rows>, write: &Write) {
    match (&write.change, write.item()) {
        (Change::Put { .. }, Some(item)) => {
            let rows = partitions.entry(write.key.partition.clone()).or_default();
            rows.insert(write.key.sort.clone(), item);
        }
        _ => {
            if let Some(rows) = partitions.get_mut(&write.key.partition) {
                rows.remove(&write.key.sort);
                if rows.is_empty() {
                    partitions.remove(&write.key.partition);
                }
            }
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn profile(&self) -> Profile {
        Profile {
            durable: false,
            small_item_bytes: 1_024,
            groups_cheap: true,
            expiry_free: false,
            relaxed_cheaper: false,
            outcome_window: Duration::ZERO,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let partitions = self.lock();
        Ok(self.find(&partitions, key).cloned())
    }

    async fn query(&self, query: Query) -> Result<Page> {
        query.check()?;
        let range = query.remaining();
        if range.is_empty() {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let now = self.clock.now();
        let partitions = self.lock();
        let Some(rows) = partitions.get(&query.partition) else {
            return Ok(Page { items: Vec::new(), next: None });
        };
        let start = range.start.map_or(Bound::Unbounded, Bound::Included);
        let end = range.end.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = rows.range((start, end)).map(|(_, item)| item);
        let rows: Box<dyn Iterator<Item = &Item>> = match query.direction {
            Direction::Forward => Box::new(rows),
            Direction::Reverse => Box::new(rows.rev()),
        };
        let mut items: Vec<Item> = Vec::new();
        let mut bytes = 0;
        for item in rows.filter(|item| item.is_live(now)) {
            if items.len() == query.limit || bytes >= PAGE_BYTES_MAX {
                let next = items.last().map(|last| query.after(last.key.sort.clone()));
                return Ok(Page { items, next });
            }
            bytes += item.size();
            items.push(item.clone());
        }
        Ok(Page { items, next: None })
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.write_one(write)
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        check_group(&writes)?;
        let mut partitions = self.lock();
        let verdict = judge_group(&writes, |_, write| self.find(&partitions, &write.key))?;
        if verdict == Verdict::Apply {
            writes.iter().for_each(|write| apply(&mut partitions, write));
        }
        drop(partitions);
        writes.iter().for_each(|write| self.hints.touch(&write.key.partition));
        Ok(())
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        check_each(&writes)?;
        Ok(writes.into_iter().map(|write| self.write_one(write)).collect())
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.hints.subscribe(partition)
    }
}
