//! The handle, and the few requests that everything else is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use millpond_store::{
    Attributes, Certainty, Environment, Expect, Key, Partition, Query, Store, StoreError, Write,
    collect,
};

use crate::config::{Config, Start};
use crate::cursor::{Cursor, Fate, Stored};
use crate::error::{Result, SequencerError};
use crate::gap::{Gap, StoredGap};
use crate::hub::Hub;
use crate::item::millis;
use crate::known::Known;
use crate::limits::{LISTING_MAX, SHARDS, UNKNOWN_RETRIES_MAX};
use crate::names::{Names, QueueName, key, kind, life_numbers, number_of, numbers};

/// Queues whose messages are put in any order and read in order. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct Sequencer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) environment: Environment,
    pub(crate) config: Config,
    pub(crate) names: Names,
    pub(crate) known: Arc<Known>,
    pub(crate) hub: Hub,
}

/// A queue and its partition.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) queue: QueueName,
    pub(crate) partition: Partition,
}

/// How an attempt to change a cursor ended.
#[derive(Debug)]
pub(crate) enum Swap {
    /// It is changed; this is what was made.
    Done(Stored),
    /// Somebody else changed it first, or something that was to change with it was not as expected.
    Lost(Stored),
}

impl Sequencer {
    /// Opens the sequencer called `name` on a store. There is nothing to create: a queue begins with its first
    /// message.
    ///
    /// # Errors
    /// [`SequencerError::Invalid`] or [`SequencerError::TooLarge`] when the name or the configuration makes no sense.
    pub fn open(
        store: Arc<dyn Store>,
        environment: &Environment,
        name: &str,
        config: Config,
    ) -> Result<Self> {
        config.check()?;
        Ok(Self {
            store,
            environment: environment.clone(),
            config,
            names: Names::new(name)?,
            known: Arc::default(),
            hub: Hub::default(),
        })
    }

    /// How the sequencer treats its queues.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Where a queue is; nothing when it has not begun.
    ///
    /// # Errors
    /// When the name cannot be one, or as the store's.
    pub async fn cursor(&self, queue: &str) -> Result<Option<Cursor>> {
        let place = self.place(queue)?;
        Ok(self.stored_cursor(&place).await?.map(|stored| stored.cursor))
    }

    /// The names of all queues that have begun, up to [`LISTING_MAX`] in each part of the list.
    ///
    /// # Errors
    /// As the store's.
    pub async fn queues(&self) -> Result<Vec<QueueName>> {
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            let query = Query::new(self.names.queues(shard)?);
            for item in collect(self.store.as_ref(), query, LISTING_MAX).await? {
                found.push(queue_of(&item.key)?);
            }
        }
        found.sort();
        Ok(found)
    }

    pub(crate) fn place(&self, queue: &str) -> Result<Place> {
        self.place_of(&QueueName::new(queue)?)
    }

    pub(crate) fn place_of(&self, queue: &QueueName) -> Result<Place> {
        Ok(Place { queue: queue.clone(), partition: self.names.partition(queue)? })
    }

    /// The cursor as it is stored. An error is an error: only what the store says is absent is a new queue.
    pub(crate) async fn stored_cursor(&self, place: &Place) -> Result<Option<Stored>> {
        let key = key(&place.partition, kind::CURSOR, &[])?;
        let stored = self.store.get(&key).await?.as_ref().map(Stored::decode).transpose()?;
        if let Some(stored) = &stored {
            self.known.saw(&place.queue, stored);
        }
        Ok(stored)
    }

    /// The cursor, or where the queue will begin. `first` is the least number at hand, for queues that begin with
    /// what comes first.
    pub(crate) async fn look(&self, place: &Place, first: Option<u64>) -> Result<Stored> {
        let stored = match (self.stored_cursor(place).await?, self.config.start) {
            (Some(stored), _) => stored,
            (None, Start::At(seq)) => Stored::absent(seq),
            (None, Start::FirstSeen) => Stored::absent(first.ok_or_else(|| not_started(place))?),
            (None, Start::Stored) => return Err(not_started(place)),
        };
        match stored.cursor.reset_to {
            Some(start) => Err(SequencerError::Resetting { queue: place.queue.to_string(), start }),
            None => Ok(stored),
        }
    }

    /// Changes the cursor from what it `was`, together with `others`, all or nothing. An answer that was lost is
    /// found out by the version of the write.
    pub(crate) async fn swap(
        &self,
        place: &Place,
        was: &Stored,
        becomes: Cursor,
        others: Vec<Write>,
    ) -> Result<Swap> {
        if was.version.is_none() {
            self.list_queue(place).await?;
        }
        let (write, made) = was.replace(&place.partition, &self.environment, becomes)?;
        let cursor_key = write.key.clone();
        let mut writes = vec![write];
        writes.extend(others);
        let mut uncertain = None;
        for _ in 0..=UNKNOWN_RETRIES_MAX {
            let error = match self.write_group(writes.clone()).await {
                Ok(()) => {
                    self.known.saw(&place.queue, &made);
                    return Ok(Swap::Done(made));
                }
                Err(error) => error,
            };
            if let StoreError::Conflict(conflicts) = &error {
                let own = conflicts.iter().find(|conflict| conflict.key == cursor_key);
                let current = match own.and_then(|conflict| conflict.current.as_ref()) {
                    Some(item) => Some(Stored::decode(item)?),
                    None => self.stored_cursor(place).await?,
                };
                let certain = uncertain.is_none() && !conflicts.after_unknown();
                return self.judge(place, was, made, current, certain);
            }
            match (error.certainty(), &uncertain) {
                (Certainty::Unknown, _) => uncertain = Some(error),
                (Certainty::Definite, Some(_)) => return Err(error.after_unknown("put").into()),
                (Certainty::Definite, None) => return Err(error.into()),
            }
        }
        let current = self.stored_cursor(place).await?;
        match (current, uncertain) {
            // As long as the expected version is current, the lost request may still come.
            (current, Some(error))
                if current.as_ref().and_then(|stored| stored.version) == was.version =>
            {
                Err(error.into())
            }
            (current, _) => self.judge(place, was, made, current, false),
        }
    }

    fn judge(
        &self,
        place: &Place,
        was: &Stored,
        made: Stored,
        current: Option<Stored>,
        certain: bool,
    ) -> Result<Swap> {
        let Some(current) = current else {
            return Ok(Swap::Lost(Stored::absent(was.cursor.start)));
        };
        self.known.saw(&place.queue, &current);
        let version = made.version.expect("what is made has a version");
        match current.fate(version, was.version) {
            Fate::Applied => Ok(Swap::Done(made)),
            Fate::NotApplied => Ok(Swap::Lost(current)),
            Fate::Unknown if certain => Ok(Swap::Lost(current)),
            Fate::Unknown => {
                let detail = format!("{} was changed many times since", place.queue);
                Err(StoreError::UnknownOutcome { operation: "put", detail, cause: None }.into())
            }
        }
    }

    async fn write_group(&self, mut writes: Vec<Write>) -> millpond_store::Result<()> {
        match (writes.len(), writes.pop()) {
            (1, Some(only)) => self.store.write(only).await,
            (_, last) => {
                writes.extend(last);
                self.store.write_all(writes).await
            }
        }
    }

    /// Enters a queue that begins in the list of queues, before it begins.
    async fn list_queue(&self, place: &Place) -> Result<()> {
        let partition = self.names.queues(place.queue.shard())?;
        let key = Key::new(partition.as_str(), place.queue.as_str().as_bytes().to_vec())?;
        let attributes = Attributes::new().with("at", millis(self.environment.now()));
        let write = Write::put(key, attributes, Expect::Any, self.environment.version());
        Ok(self.store.write(write).await?)
    }

    /// Numbers of stored messages from `first` on, at most `limit`, and up to where that is all there is.
    pub(crate) async fn stored_numbers(
        &self,
        place: &Place,
        first: u64,
        limit: usize,
    ) -> Result<(BTreeSet<u64>, u64)> {
        let mut query = numbers(&place.partition, kind::ITEM, first, u64::MAX)?.limit(limit);
        loop {
            let page = self.store.query(query).await?;
            let found = page.items.iter().map(|item| number_of(&item.key));
            let found = found.collect::<Result<BTreeSet<u64>>>()?;
            match (page.next, found.last()) {
                (None, _) => return Ok((found, u64::MAX)),
                (Some(_), Some(last)) => return Ok((found.clone(), last + 1)),
                // A page may be empty although there is more behind it.
                (Some(next), None) => query = next,
            }
        }
    }

    /// Gap records that begin at `first` or behind it, at most `limit`, and up to where that is all there is.
    pub(crate) async fn gaps_from(
        &self,
        place: &Place,
        life: u64,
        first: u64,
        limit: usize,
    ) -> Result<(Vec<StoredGap>, u64)> {
        let query = life_numbers(&place.partition, kind::GAP, life, first, u64::MAX)?.limit(limit);
        let mut query = query;
        loop {
            let page = self.store.query(query).await?;
            let found = page.items.iter().map(StoredGap::decode).collect::<Result<Vec<_>>>()?;
            match (page.next, found.last()) {
                (None, _) => return Ok((found, u64::MAX)),
                (Some(_), Some(last)) => {
                    let end = last.gap.end;
                    return Ok((found, end));
                }
                (Some(next), None) => query = next,
            }
        }
    }

    /// The gap that `seq` lies in.
    pub(crate) async fn gap_over(&self, place: &Place, life: u64, seq: u64) -> Result<Option<Gap>> {
        let query = life_numbers(&place.partition, kind::GAP, life, 0, seq.saturating_add(1))?;
        let mut next = Some(query.reverse().limit(1));
        while let Some(query) = next {
            let page = self.store.query(query).await?;
            if let Some(item) = page.items.first() {
                let gap = StoredGap::decode(item)?.gap;
                return Ok(Some(gap).filter(|gap| gap.covers(seq)));
            }
            next = page.next;
        }
        Ok(None)
    }
}

fn not_started(place: &Place) -> SequencerError {
    SequencerError::NotStarted { queue: place.queue.to_string() }
}

/// The queue whose name is the sort key.
pub(crate) fn queue_of(key: &Key) -> Result<QueueName> {
    let name = std::str::from_utf8(key.sort.as_bytes());
    let name =
        name.map_err(|_| StoreError::corrupt(format!("item {key}"), "its name is no text"))?;
    QueueName::new(name)
}
