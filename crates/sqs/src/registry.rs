//! The queues that are known: their rows, what these mean, and the handles of the queues below.
//!
//! The row is the authority. A queue below that is missing, or configured otherwise, is brought in line with it when
//! the row is read; so a process that died between the two writes leaves nothing half-made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millpond_lanes::Ground;
use millpond_queue::{Queue, QueueError, Queues};
use millpond_store::{
    Expect, Item, Monotonic, Partition, Query, SortKey, SortRange, StoreError, Version, collect,
};

use crate::attributes::Settings;
use crate::error::{Code, Failure, Result};
use crate::limits::{
    QUEUE_AGE_MAX, QUEUE_NAME_CHARS_MAX, QUEUES_KNOWN_MAX, QUEUES_LISTED_MAX, ROW_CONFLICTS_MAX,
};
use crate::live::Live;
use crate::place::Place;
use crate::record::{Record, key, partition};

/// The queues that are known.
#[derive(Debug)]
pub struct Registry {
    pub queues: Queues,
    pub ground: Ground,
    /// What Millpond's own attributes begin with.
    pub prefix: String,
    known: Mutex<HashMap<Place, Entry>>,
    /// Numbers what is read: a row that was asked for earlier does not replace one that was asked for later.
    tickets: AtomicU64,
}

/// When a row was asked for, among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

#[derive(Debug)]
struct Entry {
    known: Arc<Known>,
    ticket: Ticket,
    read: Monotonic,
    used: Monotonic,
}

/// What is known of a queue.
#[derive(Debug)]
pub struct Known {
    pub place: Place,
    pub record: Record,
    pub settings: Settings,
    pub live: Arc<Live>,
}

impl Registry {
    pub fn new(ground: &Ground, prefix: String) -> Self {
        let queues = Queues::new(ground);
        Self {
            queues,
            ground: ground.clone(),
            prefix,
            known: Mutex::default(),
            tickets: AtomicU64::new(0),
        }
    }

    /// A queue that exists, as of at most five seconds ago.
    pub async fn get(&self, place: &Place) -> Result<Arc<Known>> {
        if let Some(known) = self.recall(place) {
            return Ok(known);
        }
        self.read(place).await
    }

    /// A queue that exists, as of now.
    pub async fn read(&self, place: &Place) -> Result<Arc<Known>> {
        let ticket = self.ticket();
        let outcome = match self.ground.store.get(&key(place)?).await {
            Ok(Some(item)) => self.learn_as_of(place, Record::read(&item)?, ticket).await,
            Ok(None) => Err(Failure::no_queue()),
            Err(error) => Err(error.into()),
        };
        // Whatever else is wrong passes, and those who wait there wait on.
        if outcome.as_ref().is_err_and(|failure| failure.code == Code::QueueDoesNotExist) {
            self.forget(place);
        }
        outcome
    }

    /// The row of a queue, also of a deleted one.
    pub async fn row(&self, place: &Place) -> Result<Option<(Record, Version)>> {
        match self.ground.store.get(&key(place)?).await? {
            Some(item) => Ok(Some((Record::read(&item)?, item.version))),
            None => Ok(None),
        }
    }

    /// What is known, without asking. Of several who find it old, one is sent to read it again.
    fn recall(&self, place: &Place) -> Option<Arc<Known>> {
        let now = self.ground.environment.clock.monotonic();
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.get_mut(place)?;
        entry.used = now;
        if now.since(entry.read) < QUEUE_AGE_MAX {
            return Some(Arc::clone(&entry.known));
        }
        entry.read = now;
        None
    }

    /// What is known, however old.
    pub fn glance(&self, place: &Place) -> Option<Arc<Known>> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(place).map(|entry| Arc::clone(&entry.known))
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// The handles of all queues that are known.
    pub fn lives(&self) -> Vec<Arc<Live>> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(|entry| Arc::clone(&entry.known.live)).collect()
    }

    /// Takes in a row that was written just now.
    pub async fn learn(&self, place: &Place, record: Record) -> Result<Arc<Known>> {
        let ticket = self.ticket();
        self.learn_as_of(place, record, ticket).await
    }

    /// Takes in a row, unless a newer one is known.
    async fn learn_as_of(
        &self,
        place: &Place,
        record: Record,
        ticket: Ticket,
    ) -> Result<Arc<Known>> {
        if record.deleted_ms.is_some() {
            return Err(Failure::no_queue());
        }
        let settings = Settings::of(place, &record.attributes, &self.prefix)?;
        let live = self.live(place, &settings).await?;
        let known = Arc::new(Known { place: place.clone(), record, settings, live });
        let now = self.ground.environment.clock.monotonic();
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newer) = all.get(place).filter(|entry| entry.ticket > ticket) {
            return Ok(Arc::clone(&newer.known));
        }
        let entry = Entry { known: Arc::clone(&known), ticket, read: now, used: now };
        all.insert(place.clone(), entry);
        if all.len() > QUEUES_KNOWN_MAX {
            make_room(&mut all);
        }
        Ok(known)
    }

    /// The handles of a queue, made if need be, and the queue in line with its settings.
    async fn live(&self, place: &Place, settings: &Settings) -> Result<Arc<Live>> {
        if let Some(known) = self.glance(place) {
            match known.live.queue.config().await {
                Ok(config) if *config == settings.config => return Ok(Arc::clone(&known.live)),
                Ok(_) => {
                    self.configure(place, &known.live.queue, settings).await?;
                    return Ok(Arc::clone(&known.live));
                }
                // It was deleted, and perhaps created again.
                Err(QueueError::NotFound { .. }) => self.end(place, &known.live),
                Err(error) => return Err(error.into()),
            }
        }
        let name = place.stored_name();
        let queue = match self.queues.open(&name).await {
            Err(QueueError::NotFound { .. }) => {
                self.queues.create(&name, settings.config.clone()).await?
            }
            other => other?,
        };
        if *queue.config().await? != settings.config {
            self.configure(place, &queue, settings).await?;
        }
        Ok(Arc::new(Live::new(queue)?))
    }

    /// Configures the queue below as its row says.
    async fn configure(&self, place: &Place, queue: &Queue, settings: &Settings) -> Result<()> {
        match queue.update_config(settings.config.clone()).await {
            Err(error @ (QueueError::Invalid { .. } | QueueError::Exists { .. })) => {
                // The row is what was promised to the user; the rest of the queue works on.
                tracing::warn!(queue = ?place, %error, "the queue cannot be configured as it should be");
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Changes the row of a queue that exists. `change` may run several times.
    pub async fn change(
        &self,
        place: &Place,
        mut change: impl FnMut(&mut Record) -> Result<()>,
    ) -> Result<Record> {
        for _ in 0..ROW_CONFLICTS_MAX {
            let row = self.row(place).await?;
            let Some((mut record, version)) = row.filter(|(row, _)| row.deleted_ms.is_none())
            else {
                self.forget(place);
                return Err(Failure::no_queue());
            };
            let before = record.clone();
            change(&mut record)?;
            if record == before {
                return Ok(record);
            }
            let next = self.ground.environment.version();
            let put = record.put(place, Expect::Version(version), next)?;
            match self.ground.store.write(put).await {
                Ok(()) => return Ok(record),
                // Another change came between: make this one on what it left.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::too_many_changes())
    }

    /// Forgets a queue, and tells who waits there that it is gone.
    pub fn forget(&self, place: &Place) {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = all.remove(place) {
            entry.known.live.end();
        }
    }

    /// Tells who waits at a queue that it is gone, and forgets it unless another of its name is known by now.
    fn end(&self, place: &Place, live: &Arc<Live>) {
        live.end();
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(place).is_some_and(|entry| Arc::ptr_eq(&entry.known.live, live)) {
            all.remove(place);
        }
    }

    /// The rows of an account in a region that exist, by name, behind `after`.
    pub async fn list(
        &self,
        of: &Place,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(Place, Record)>> {
        if prefix.len() > QUEUE_NAME_CHARS_MAX {
            return Ok(Vec::new());
        }
        let mut query = Query::new(Partition::new(partition(of))?);
        if !prefix.is_empty() {
            query = query.range(SortRange::prefix(SortKey::new(prefix.as_bytes().to_vec())?));
        }
        if let Some(after) = after {
            query = query.after(SortKey::new(after.as_bytes().to_vec())?);
        }
        let mut found = Vec::new();
        let mut next = Some(query);
        while let Some(query) = next.filter(|_| found.len() < most) {
            let page = self.ground.store.query(query).await?;
            next = page.next;
            for item in &page.items {
                let record = Record::read(item)?;
                if record.deleted_ms.is_none() {
                    found.push((place_of(of, item), record));
                }
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// All rows of an account in a region that exist.
    pub async fn all(&self, of: &Place) -> Result<Vec<(Place, Record)>> {
        let query = Query::new(Partition::new(partition(of))?);
        let items = collect(self.ground.store.as_ref(), query, QUEUES_LISTED_MAX).await?;
        let rows = items.iter().map(|item| Ok((place_of(of, item), Record::read(item)?)));
        let rows: Vec<_> = rows.collect::<Result<_, StoreError>>()?;
        Ok(rows.into_iter().filter(|(_, record)| record.deleted_ms.is_none()).collect())
    }
}

fn place_of(of: &Place, item: &Item) -> Place {
    let name = String::from_utf8_lossy(item.key.sort.as_bytes()).into_owned();
    Place { name, ..of.clone() }
}

/// Forgets half of the queues: those that were not used for the longest time. Where somebody waits, it is not forgotten.
fn make_room(all: &mut HashMap<Place, Entry>) {
    let mut times: Vec<Monotonic> = all.values().map(|entry| entry.used).collect();
    times.sort_unstable();
    let Some(middle) = times.get(times.len() / 2).copied() else { return };
    all.retain(|_, entry| entry.used > middle || Arc::strong_count(&entry.known.live) > 1);
}
