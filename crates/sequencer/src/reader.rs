//! Named cursors: independent readers of one queue, each with its own place.
//!
//! A row in the partition `NAME/q/QUEUE`, sort key `r` and the reader's name: `new`, the last number that was
//! committed (−1 before number 0), and `at`, when, ms since 1970.

use millpond_store::{Attributes, Expect, Item, StoreError, Version, Write, collect};

use crate::advance::position;
use crate::cursor::Cursor;
use crate::error::{Result, SequencerError};
use crate::item::millis;
use crate::limits::{CONFLICTS_MAX, LISTING_MAX, READER_BYTES_MAX};
use crate::names::{all, key, kind};
use crate::read::{Read, check_range};
use crate::sequencer::{Place, Sequencer};

/// One reader of one queue.
#[derive(Clone, Debug)]
pub struct Reader {
    sequencer: Sequencer,
    place: Place,
    name: String,
}

impl Sequencer {
    /// The reader called `name`. There is nothing to create: it begins with the first message that is kept.
    ///
    /// # Errors
    /// When one of the names cannot be one.
    pub fn reader(&self, queue: &str, name: &str) -> Result<Reader> {
        if name.is_empty() {
            return Err(SequencerError::invalid("reader name", "is empty"));
        }
        SequencerError::check_size("reader name", name.len(), READER_BYTES_MAX)?;
        Ok(Reader { sequencer: self.clone(), place: self.place(queue)?, name: name.to_owned() })
    }

    /// The readers of a queue that have committed something, each with the number it reads next.
    ///
    /// # Errors
    /// As the store's.
    pub async fn readers(&self, queue: &str) -> Result<Vec<(String, u64)>> {
        let query = all(&self.place(queue)?.partition, kind::READER)?;
        let rows = collect(self.store.as_ref(), query, LISTING_MAX).await?;
        rows.iter()
            .map(|row| {
                let name = row.key.sort.as_bytes().get(1..).unwrap_or_default();
                Ok((String::from_utf8_lossy(name).into_owned(), next_of(row)?))
            })
            .collect()
    }
}

impl Reader {
    /// The number that the reader reads next: what it committed, or the first that is kept.
    ///
    /// # Errors
    /// As the store's.
    pub async fn position(&self) -> Result<u64> {
        match self.committed().await? {
            Some((next, _)) => Ok(next),
            None => Ok(self.cursor().await?.floor),
        }
    }

    /// Messages and gaps from the reader's place on, at most `max` numbers. It does not move the reader: commit what
    /// was dealt with.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`] when the reader's place is not kept any more: `seek` to what is.
    pub async fn read(&self, max: u64) -> Result<Read> {
        let cursor = self.cursor().await?;
        let from = self.committed().await?.map_or(cursor.floor, |(next, _)| next);
        let to = from.saturating_add(max).min(cursor.next);
        if to <= from && from >= cursor.floor {
            return Ok(Read { outputs: Vec::new(), next: from });
        }
        check_range(&self.place, &cursor, &(from..to))?;
        self.sequencer.read_range(&self.place, &cursor, from..to).await
    }

    /// Says that everything before `next` was dealt with. It never moves the reader back. Returns the number that the
    /// reader reads next.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`] when `next` is ahead of the queue's cursor.
    pub async fn commit(&self, next: u64) -> Result<u64> {
        self.check(next).await?;
        self.store_place(next, false).await
    }

    /// Moves the reader, back or forward.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`] when that is not kept, or ahead of the queue's cursor.
    pub async fn seek(&self, next: u64) -> Result<u64> {
        self.check(next).await?;
        self.store_place(next, true).await
    }

    async fn check(&self, next: u64) -> Result<()> {
        let cursor = self.cursor().await?;
        check_range(&self.place, &cursor, &(next..next))
    }

    async fn cursor(&self) -> Result<Cursor> {
        let stored = self.sequencer.stored_cursor(&self.place).await?;
        Ok(stored.map_or(Cursor::starting(0), |stored| stored.cursor))
    }

    fn key(&self) -> Result<millpond_store::Key> {
        key(&self.place.partition, kind::READER, self.name.as_bytes())
    }

    async fn committed(&self) -> Result<Option<(u64, Version)>> {
        let item = self.sequencer.store.get(&self.key()?).await?;
        item.map(|item| Ok((next_of(&item)?, item.version))).transpose()
    }

    async fn store_place(&self, next: u64, back: bool) -> Result<u64> {
        let environment = &self.sequencer.environment;
        let mut known = self.committed().await?;
        for _ in 0..CONFLICTS_MAX {
            if let Some((reached, _)) = known.filter(|(reached, _)| !back && *reached >= next) {
                return Ok(reached);
            }
            let expect = known.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
            let attributes =
                Attributes::new().with("new", position(next)).with("at", millis(environment.now()));
            let write = Write::put(self.key()?, attributes, expect, environment.version());
            match self.sequencer.store.write(write).await {
                Ok(()) => return Ok(next),
                Err(StoreError::Conflict(conflicts)) => {
                    let current = conflicts.first().current.as_ref();
                    known = current
                        .map(|item| Ok::<_, SequencerError>((next_of(item)?, item.version)))
                        .transpose()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(SequencerError::contended("commit"))
    }
}

fn next_of(item: &Item) -> Result<u64> {
    let next = item.attributes.number("new")?.checked_add(1);
    next.and_then(|next| u64::try_from(next).ok()).ok_or_else(|| {
        StoreError::corrupt(format!("item {}", item.key), "its position is no number").into()
    })
}
