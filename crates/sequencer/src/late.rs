//! Messages that came after their number was skipped, or before the queue's first number.
//!
//! Kept aside as two rows in the partition `NAME/q/QUEUE`, written together with the cursor that counts them: `l`, the
//! queue's life (8 bytes) and the number (8 bytes) with the same attributes as a message's row; and `m`, the life and
//! the count (8 bytes each) with `seq`, the number, so that they can be read in the order in which they came.

use millpond_store::{Attributes, Expect, Item, StoreError, Version, Write, collect};

use crate::config::LatePolicy;
use crate::cursor::{Cursor, Stored};
use crate::error::{Result, SequencerError};
use crate::item::{Row, natural, stored};
use crate::limits::{CONFLICTS_MAX, LISTING_MAX};
use crate::message::Entry;
use crate::names::{kind, life_key, life_numbers, number_key};
use crate::put::Arrival;
use crate::read::Delivered;
use crate::sequencer::{Place, Sequencer, Swap};

impl Sequencer {
    /// Late arrivals that were kept aside, in the order in which they came, from the `from`-th on.
    ///
    /// # Errors
    /// When the name cannot be one, or as the store's.
    pub async fn late(&self, queue: &str, from: u64) -> Result<Vec<Delivered>> {
        let place = self.place(queue)?;
        match self.stored_cursor(&place).await? {
            Some(stored) => self.late_of(&place, &stored.cursor, from).await,
            None => Ok(Vec::new()),
        }
    }

    pub(crate) async fn late_of(
        &self,
        place: &Place,
        cursor: &Cursor,
        from: u64,
    ) -> Result<Vec<Delivered>> {
        let (partition, life) = (&place.partition, cursor.life);
        let query = life_numbers(partition, kind::LATE_ORDER, life, from, cursor.lates)?;
        let mut found = Vec::new();
        for order in collect(self.store.as_ref(), query, LISTING_MAX).await? {
            let key = life_key(partition, kind::LATE, life, natural(&order, "seq")?)?;
            let item = self.store.get(&key).await?;
            let item = item.ok_or_else(|| {
                StoreError::corrupt(format!("item {key}"), "a late arrival has no message")
            })?;
            found.push(Delivered::from_row(Row::decode(&item)?));
        }
        Ok(found)
    }

    /// Whether a message with this number, stored when the cursor had passed it, came too late.
    pub(crate) async fn is_late(&self, place: &Place, cursor: &Cursor, seq: u64) -> Result<bool> {
        if seq < cursor.start {
            return Ok(true);
        }
        Ok(cursor.gaps > 0 && self.gap_over(place, cursor.life, seq).await?.is_some())
    }

    /// Treats a late arrival as configured. `own` is the version of its row, where it was stored.
    pub(crate) async fn receive_late(
        &self,
        place: &Place,
        mut stored: Stored,
        entry: &Entry,
        own: Option<Version>,
    ) -> Result<Arrival> {
        let removal = match own {
            Some(version) => {
                let key = number_key(&place.partition, kind::ITEM, entry.seq)?;
                Some(Write::delete(key, Expect::Version(version)))
            }
            None => None,
        };
        if self.config.late == LatePolicy::Reject {
            self.remove_own(removal).await?;
            return Err(late(place, &stored.cursor, entry.seq));
        }
        for _ in 0..CONFLICTS_MAX {
            let key = life_key(&place.partition, kind::LATE, stored.cursor.life, entry.seq)?;
            if let Some(first) = self.store.get(&key).await? {
                self.remove_own(removal).await?;
                return self.compare(place, entry, &first);
            }
            let writes = self.late_writes(place, &stored.cursor, entry)?;
            let becomes = Cursor { lates: stored.cursor.lates + 1, ..stored.cursor.clone() };
            match self.swap(place, &stored, becomes, writes).await? {
                Swap::Done(_) => {
                    self.remove_own(removal).await?;
                    return Ok(match self.config.late {
                        LatePolicy::Deliver => Arrival::DeliveredLate,
                        _ => Arrival::KeptAside,
                    });
                }
                Swap::Lost(current) => stored = current,
            }
        }
        Err(SequencerError::contended("put"))
    }

    fn late_writes(&self, place: &Place, cursor: &Cursor, entry: &Entry) -> Result<Vec<Write>> {
        let (partition, life) = (&place.partition, cursor.life);
        let row =
            Row { seq: entry.seq, at: self.environment.now(), message: entry.message.clone() };
        let message = life_key(partition, kind::LATE, life, entry.seq)?;
        let order = life_key(partition, kind::LATE_ORDER, life, cursor.lates)?;
        let number = Attributes::new().with("seq", stored(entry.seq));
        Ok(vec![
            Write::put(message, row.encode(), Expect::Absent, self.environment.version()),
            Write::put(order, number, Expect::Absent, self.environment.version()),
        ])
    }

    /// Removes a row that no reader sees, since its number is in a gap or below what is kept. Another's removal will
    /// do as well.
    pub(crate) async fn remove_own(&self, removal: Option<Write>) -> Result<()> {
        let Some(write) = removal else { return Ok(()) };
        match self.store.write(write).await {
            Err(error) if !error.is_conflict() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Whether a message that is there already is the same.
    pub(crate) fn compare(&self, place: &Place, entry: &Entry, there: &Item) -> Result<Arrival> {
        use crate::config::ConflictRule;
        let same = Row::decode(there)?.message == entry.message;
        if same || self.config.conflicts == ConflictRule::KeepFirst {
            return Ok(Arrival::Duplicate);
        }
        Err(SequencerError::Conflict { queue: place.queue.to_string(), seq: entry.seq })
    }
}

pub(crate) fn late(place: &Place, cursor: &Cursor, seq: u64) -> SequencerError {
    let queue = place.queue.to_string();
    SequencerError::Late { queue, seq, start: cursor.start, next: cursor.next }
}
