//! Putting messages.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use futures::StreamExt as _;
use millpond_store::{Certainty, Expect, Item, StoreError, Version, Write};

use crate::advance::Advance;
use crate::cursor::Stored;
use crate::error::{Result, SequencerError};
use crate::heal::Sure;
use crate::item::Row;
use crate::limits::{PUT_BATCH_MAX, QUEUES_IN_FLIGHT_MAX, UNKNOWN_RETRIES_MAX};
use crate::message::{Entry, Message};
use crate::names::{QueueName, kind, number_key};
use crate::sequencer::{Place, Sequencer};

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is stored.
    Stored,
    /// It was stored before; nothing was stored twice.
    Duplicate,
    /// Its number was passed so long ago that the message is not kept any more; nothing was stored.
    Passed,
    /// It came too late, and is kept aside.
    KeptAside,
    /// It came too late, and subscribers are told.
    DeliveredLate,
}

/// The answer to a put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutResult {
    /// What became of the message.
    pub arrival: Arrival,
    /// What the queue's cursor passed by this call: `(old, new]`.
    pub advanced: Option<Advance>,
}

/// The answer to a batch.
#[derive(Debug)]
pub struct BatchResult {
    /// What became of each message, in the order of the call.
    pub arrivals: Vec<Result<Arrival>>,
    /// What the cursors passed by this call, at most one piece for each queue.
    pub advanced: Vec<(QueueName, Advance)>,
}

/// The messages of one call for one queue.
pub(crate) struct Group {
    pub(crate) place: Place,
    pub(crate) puts: Vec<Put>,
    /// The life of the queue as known before anything was stored.
    life: Option<u64>,
}

/// One message on its way.
pub(crate) struct Put {
    pub(crate) index: usize,
    pub(crate) entry: Entry,
    pub(crate) version: Version,
    pub(crate) outcome: Option<Result<Arrival>>,
}

impl Put {
    fn is_there(&self) -> bool {
        matches!(self.outcome, Some(Ok(Arrival::Stored | Arrival::Duplicate)))
    }

    const fn is_open(&self) -> bool {
        self.outcome.is_none()
    }
}

impl Sequencer {
    /// Puts a message. When it returns, the message is stored, and everything up to the first number that is missing
    /// has been passed.
    ///
    /// # Errors
    /// See [`SequencerError`]. After an error of the store, put the message again: that is safe, and also heals.
    pub async fn put(
        &self,
        queue: &str,
        seq: u64,
        message: impl Into<Message>,
    ) -> Result<PutResult> {
        let entry = Entry::new(queue, seq, message)?;
        let mut result = self.put_batch(vec![entry]).await?;
        let arrival = result.arrivals.pop().expect("one message, one outcome")?;
        Ok(PutResult { arrival, advanced: result.advanced.first().map(|(_, passed)| *passed) })
    }

    /// Puts messages of any queues. Each has its own outcome.
    ///
    /// # Errors
    /// [`SequencerError::TooLarge`] when there are more than [`PUT_BATCH_MAX`]; nothing is stored then.
    pub async fn put_batch(&self, entries: Vec<Entry>) -> Result<BatchResult> {
        if entries.len() > PUT_BATCH_MAX {
            let (size, limit) = (entries.len() as u64, PUT_BATCH_MAX as u64);
            let (what, unit) = ("batch", "messages");
            return Err(SequencerError::TooLarge { what, size, unit, limit });
        }
        let mut arrivals: Vec<Option<Result<Arrival>>> = entries.iter().map(|_| None).collect();
        let mut groups = self.group(entries, &mut arrivals)?;
        for group in &mut groups {
            self.admit(group).await;
        }
        self.store_all(&mut groups).await;
        let mut advanced = Vec::new();
        let mut settled = futures::stream::iter(groups)
            .map(|group| self.settle(group))
            .buffer_unordered(QUEUES_IN_FLIGHT_MAX);
        while let Some((group, passed)) = settled.next().await {
            advanced.extend(passed.map(|passed| (group.place.queue.clone(), passed)));
            for put in group.puts {
                if let Some(slot) = arrivals.get_mut(put.index) {
                    *slot = put.outcome;
                }
            }
        }
        advanced.sort();
        let arrivals =
            arrivals.into_iter().map(|outcome| outcome.expect("every message is settled"));
        Ok(BatchResult { arrivals: arrivals.collect(), advanced })
    }

    /// Sorts messages by queue and number. What is wrong or there twice is settled at once.
    fn group(
        &self,
        entries: Vec<Entry>,
        arrivals: &mut [Option<Result<Arrival>>],
    ) -> Result<Vec<Group>> {
        use crate::config::ConflictRule;
        let mut queues: BTreeMap<QueueName, BTreeMap<u64, Put>> = BTreeMap::new();
        for ((index, entry), arrival) in entries.into_iter().enumerate().zip(arrivals) {
            if let Err(error) = entry.check() {
                *arrival = Some(Err(error));
                continue;
            }
            let queue = queues.entry(entry.queue.clone()).or_default();
            match queue.entry(entry.seq) {
                Slot::Vacant(slot) => {
                    let version = self.environment.version();
                    slot.insert(Put { index, entry, version, outcome: None });
                }
                Slot::Occupied(first) => {
                    let same = first.get().entry.message == entry.message
                        || self.config.conflicts == ConflictRule::KeepFirst;
                    let (queue, seq) = (entry.queue.to_string(), entry.seq);
                    let conflict = SequencerError::Conflict { queue, seq };
                    *arrival = Some(if same { Ok(Arrival::Duplicate) } else { Err(conflict) });
                }
            }
        }
        let groups = queues.into_iter().map(|(queue, puts)| {
            let place = self.place_of(&queue)?;
            let life = self.known.hint(&queue).cursor.map(|stored| stored.cursor.life);
            Ok(Group { place, puts: puts.into_values().collect(), life })
        });
        groups.collect()
    }

    /// Stores the messages of all groups in as few requests as the backend can.
    async fn store_all(&self, groups: &mut [Group]) {
        let now = self.environment.now();
        let mut writes = Vec::new();
        for group in groups.iter_mut() {
            for put in group.puts.iter_mut().filter(|put| put.is_open()) {
                let row = Row { seq: put.entry.seq, at: now, message: put.entry.message.clone() };
                match row.write(&group.place.partition, put.version) {
                    Ok(write) => writes.push(write),
                    Err(error) => put.outcome = Some(Err(error)),
                }
            }
        }
        let outcomes: Vec<millpond_store::Result<()>> = match (writes.len(), writes.first()) {
            (0, _) => return,
            (1, Some(only)) => vec![self.store.write(only.clone()).await],
            (count, _) => match self.store.write_each(writes.clone()).await {
                Ok(outcomes) => outcomes,
                Err(error) => vec![Err(error); count],
            },
        };
        let mut outcomes = writes.into_iter().zip(outcomes);
        for group in groups {
            for put in group.puts.iter_mut().filter(|put| put.is_open()) {
                if let Some((write, outcome)) = outcomes.next() {
                    let stored = self.resolve(&group.place, &put.entry, write, outcome).await;
                    if matches!(stored, Err(SequencerError::Store(_))) {
                        self.known.suspect(&group.place.queue);
                    }
                    put.outcome = Some(stored);
                }
            }
        }
    }

    /// What became of one message's write. A lost answer is asked for again, by the same version.
    async fn resolve(
        &self,
        place: &Place,
        entry: &Entry,
        write: Write,
        mut outcome: millpond_store::Result<()>,
    ) -> Result<Arrival> {
        for left in (0..=UNKNOWN_RETRIES_MAX).rev() {
            let error = match outcome {
                Ok(()) => return Ok(Arrival::Stored),
                Err(error) => error,
            };
            if let StoreError::Conflict(conflicts) = &error
                && let Some(there) = &conflicts.first().current
            {
                let own = Some(there.version) == write.version();
                return if own { Ok(Arrival::Stored) } else { self.compare(place, entry, there) };
            }
            // Refused although nothing is there means that somebody removed it in between.
            let again = error.is_conflict() || error.certainty() == Certainty::Unknown;
            if !again || left == 0 {
                return Err(error.into());
            }
            outcome = self.store.write(write.clone()).await;
        }
        Err(SequencerError::contended("put"))
    }

    /// With the messages stored: moves the cursor, and finds out which of them came too late.
    async fn settle(&self, mut group: Group) -> (Group, Option<Advance>) {
        if !group.puts.iter().any(Put::is_there) {
            return (group, None);
        }
        match self.advance(&group).await {
            Ok((stored, passed)) => {
                self.settle_late(&mut group, &stored, passed).await;
                if passed.is_some() {
                    self.retain(&group.place, &stored).await;
                }
                (group, passed)
            }
            Err(error) => {
                self.known.suspect(&group.place.queue);
                for put in group.puts.iter_mut().filter(|put| put.is_there()) {
                    put.outcome = Some(Err(error.clone()));
                }
                (group, None)
            }
        }
    }

    async fn advance(&self, group: &Group) -> Result<(Stored, Option<Advance>)> {
        let place = &group.place;
        let numbers = group.puts.iter().filter(|put| put.is_there()).map(|put| put.entry.seq);
        let mut sure = Sure { numbers: numbers.collect(), life: group.life, highest: 0 };
        let last = sure.numbers.last().copied();
        self.known.update(&place.queue, |hint| {
            hint.highest = hint.highest.max(last.map_or(0, |last| last + 1));
            sure.highest = hint.highest;
        });
        // A compare-and-swap from a remembered cursor is as good as reading it: it succeeds only if the cursor is
        // still the same, after the messages were stored.
        let remembered = self.known.hint(&place.queue).cursor.filter(|stored| {
            sure.run_end(&stored.cursor) > stored.cursor.next && stored.cursor.reset_to.is_none()
        });
        let stored = match remembered {
            Some(stored) => stored,
            None => self.look(place, sure.numbers.first().copied()).await?,
        };
        let awaited = sure.run_end(&stored.cursor);
        let is_ahead = |awaited: u64| last.is_some_and(|last| last >= awaited);
        if is_ahead(awaited) {
            self.touch(place, awaited).await?;
        }
        let healed = self.heal(place, stored, &sure).await?;
        let next = healed.stored.cursor.next;
        if is_ahead(next)
            && let Err(error) = self.touch(place, next).await
        {
            // The row from before stands; only the time of first sight is not noted yet.
            tracing::debug!(queue = %place.queue, %error, "left for the sweeper");
            self.known.suspect(&place.queue);
        }
        Ok((healed.stored, healed.advance))
    }

    /// Messages whose number the cursor had passed without them.
    async fn settle_late(&self, group: &mut Group, stored: &Stored, passed: Option<Advance>) {
        let cursor = &stored.cursor;
        for put in group.puts.iter_mut().filter(|put| put.is_there()) {
            let seq = put.entry.seq;
            let by_us = passed.is_some_and(|passed| passed.numbers().contains(&seq));
            if seq >= cursor.next || by_us {
                continue;
            }
            put.outcome = Some(self.judge_passed(&group.place, stored, put).await);
        }
    }

    async fn judge_passed(&self, place: &Place, stored: &Stored, put: &Put) -> Result<Arrival> {
        let (cursor, seq) = (&stored.cursor, put.entry.seq);
        let was = put.outcome.clone().unwrap_or(Ok(Arrival::Stored))?;
        let key = number_key(&place.partition, kind::ITEM, seq)?;
        if self.is_late(place, cursor, seq).await? {
            // Somebody's leftover is treated like one's own.
            let own = match was {
                Arrival::Stored => Some(put.version),
                _ => self.store.get(&key).await?.map(|item: Item| item.version),
            };
            return self.receive_late(place, stored.clone(), &put.entry, own).await;
        }
        if seq < cursor.floor && was == Arrival::Stored {
            self.remove_own(Some(Write::delete(key, Expect::Version(put.version)))).await?;
            return Ok(Arrival::Passed);
        }
        Ok(was)
    }
}
