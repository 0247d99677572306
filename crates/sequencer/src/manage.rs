//! Setting a queue back, starting it over, and removing what is not needed any more.

use millpond_store::{Expect, Query, Write};

use crate::advance::Advance;
use crate::config::{Retention, check_seq};
use crate::cursor::{Cursor, Stored};
use crate::error::{Result, SequencerError};
use crate::gap::StoredGap;
use crate::heal::Sure;
use crate::item::Row;
use crate::limits::{CONFLICTS_MAX, LISTING_MAX, TRIM_LAG, TRIM_ROWS_MAX};
use crate::names::{all, kind, life_numbers, numbers};
use crate::sequencer::{Place, Sequencer, Swap};

/// What `trim` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trimmed {
    /// The first number that is kept now.
    pub floor: u64,
    /// Rows that were removed.
    pub removed: usize,
    /// Whether rows are left to remove: call it again.
    pub more: bool,
}

impl Sequencer {
    /// Sets a queue's cursor back to `to`, in a new epoch: everything from there on is announced again. Returns what
    /// was passed again by this call. Gaps stay gaps; a place within one means its beginning.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`] when `to` is ahead of the cursor or not kept any more.
    pub async fn rewind(&self, queue: &str, to: u64) -> Result<Option<Advance>> {
        let place = self.place(queue)?;
        for _ in 0..CONFLICTS_MAX {
            let stored = self.look(&place, None).await?;
            let cursor = &stored.cursor;
            if to < cursor.floor || to > cursor.next {
                let (queue, first, next) = (queue.to_owned(), cursor.floor, cursor.next);
                let (what, asked) = ("rewind to", to);
                return Err(SequencerError::OutOfRange { queue, what, asked, first, next });
            }
            let mut base = to;
            let mut gaps_ahead = 0;
            if cursor.gaps > 0 {
                let over = self.gap_over(&place, cursor.life, to).await?;
                base = over.map_or(to, |gap| gap.first);
                let (gaps, _) = self.gaps_from(&place, cursor.life, base, LISTING_MAX / 10).await?;
                gaps_ahead = gaps.len() as u64;
            }
            let epoch = cursor.epoch + 1;
            let becomes =
                Cursor { next: base, base, epoch, gaps_ahead, parked: None, ..cursor.clone() };
            if let Swap::Done(made) = self.swap(&place, &stored, becomes, Vec::new()).await? {
                return Ok(self.heal(&place, made, &Sure::default()).await?.advance);
            }
        }
        Err(SequencerError::contended("rewind"))
    }

    /// Starts a queue over at `start`, in a new epoch: its messages, gaps, late arrivals and readers are removed. Also
    /// gives a queue that has not begun its first number. Puts at the same time come before it or after it, or are
    /// refused as [`SequencerError::Resetting`]. After a failure, call it again.
    ///
    /// # Errors
    /// As the store's.
    pub async fn reset(&self, queue: &str, start: u64) -> Result<()> {
        check_seq("start", start)?;
        let place = self.place(queue)?;
        for _ in 0..CONFLICTS_MAX {
            let Some(stored) = self.stored_cursor(&place).await? else {
                let absent = Stored::absent(start);
                match self.swap(&place, &absent, Cursor::starting(start), Vec::new()).await? {
                    Swap::Done(_) => return Ok(()),
                    Swap::Lost(_) => continue,
                }
            };
            let marked = Cursor { reset_to: Some(start), ..stored.cursor.clone() };
            let Swap::Done(marked) = self.swap(&place, &stored, marked, Vec::new()).await? else {
                continue;
            };
            for kind in [kind::ITEM, kind::GAP, kind::LATE, kind::LATE_ORDER, kind::READER] {
                while self.remove_some(all(&place.partition, kind)?).await?.more {}
            }
            let cursor = &marked.cursor;
            let anew = Cursor {
                epoch: cursor.epoch + 1,
                life: cursor.life + 1,
                ..Cursor::starting(start)
            };
            if let Swap::Done(made) = self.swap(&place, &marked, anew, Vec::new()).await? {
                self.known.forget(&place.queue);
                self.heal(&place, made, &Sure::default()).await?;
                return Ok(());
            }
        }
        Err(SequencerError::contended("reset"))
    }

    /// Removes delivered messages before `floor`, some at a time; they cannot be read or gone back to any more.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`] when `floor` is ahead of the cursor, or before what is kept.
    pub async fn trim(&self, queue: &str, floor: u64) -> Result<Trimmed> {
        let place = self.place(queue)?;
        for _ in 0..CONFLICTS_MAX {
            let stored = self.look(&place, None).await?;
            let cursor = &stored.cursor;
            if floor < cursor.floor || floor > cursor.next {
                let (queue, first, next) = (queue.to_owned(), cursor.floor, cursor.next);
                let (what, asked) = ("trim to", floor);
                return Err(SequencerError::OutOfRange { queue, what, asked, first, next });
            }
            if let Some(trimmed) = self.trim_from(&place, &stored, floor).await? {
                return Ok(trimmed);
            }
        }
        Err(SequencerError::contended("trim"))
    }

    /// Raises the floor first, so that nobody reads what is half removed. Nothing when the cursor changed meanwhile.
    async fn trim_from(
        &self,
        place: &Place,
        stored: &Stored,
        floor: u64,
    ) -> Result<Option<Trimmed>> {
        let cursor = &stored.cursor;
        if floor > cursor.floor {
            let becomes = Cursor { floor, ..cursor.clone() };
            if let Swap::Lost(_) = self.swap(place, stored, becomes, Vec::new()).await? {
                return Ok(None);
            }
        }
        let query = numbers(&place.partition, kind::ITEM, 0, floor)?;
        let mut trimmed = self.remove_some(query).await?;
        trimmed.floor = floor;
        if cursor.gaps > 0 {
            trimmed.removed += self.remove_gaps(place, cursor.life, floor).await?;
        }
        Ok(Some(trimmed))
    }

    async fn remove_gaps(&self, place: &Place, life: u64, floor: u64) -> Result<usize> {
        let query = life_numbers(&place.partition, kind::GAP, life, 0, floor)?;
        let page = self.store.query(query.limit(TRIM_ROWS_MAX)).await?;
        let mut writes = Vec::new();
        for item in &page.items {
            let gap = StoredGap::decode(item)?;
            if gap.gap.end <= floor {
                writes.push(gap.delete(&place.partition, life)?);
            }
        }
        self.remove_rows(writes).await
    }

    async fn remove_some(&self, query: Query) -> Result<Trimmed> {
        let page = self.store.query(query.limit(TRIM_ROWS_MAX)).await?;
        let deletes = page.items.into_iter().map(|item| Write::delete(item.key, Expect::Any));
        let deletes: Vec<Write> = deletes.collect();
        let asked = deletes.len();
        let removed = self.remove_rows(deletes).await?;
        Ok(Trimmed { floor: 0, removed, more: page.next.is_some() || removed < asked })
    }

    async fn remove_rows(&self, writes: Vec<Write>) -> Result<usize> {
        let mut removed = 0;
        for outcome in self.store.write_each(writes).await? {
            match outcome {
                Ok(()) => removed += 1,
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }

    /// Retention, as part of a put that advanced the queue. A failure is left to the next one.
    pub(crate) async fn retain(&self, place: &Place, stored: &Stored) {
        let cursor = &stored.cursor;
        let looked = self.known.hint(&place.queue).retained;
        let due = self.config.retention != Retention::Forever
            && cursor.next.saturating_sub(looked.max(cursor.floor)) >= TRIM_LAG;
        if !due {
            return;
        }
        self.known.update(&place.queue, |hint| hint.retained = cursor.next);
        let outcome = match self.retained_from(place, cursor).await {
            Ok(floor) if floor > cursor.floor => self.trim_from(place, stored, floor).await,
            Ok(_) => return,
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(queue = %place.queue, %error, "retention is left to a later put");
        }
    }

    /// The first number that retention keeps.
    async fn retained_from(&self, place: &Place, cursor: &Cursor) -> Result<u64> {
        match self.config.retention {
            Retention::Forever => Ok(cursor.floor),
            Retention::Last(count) => Ok(cursor.next.saturating_sub(count).max(cursor.floor)),
            Retention::For(age) => {
                let oldest = self.environment.now().minus(age);
                let mut floor = cursor.floor;
                let query = numbers(&place.partition, kind::ITEM, floor, cursor.next)?;
                for item in self.store.query(query.limit(TRIM_ROWS_MAX)).await?.items {
                    let row = Row::decode(&item)?;
                    if row.at >= oldest {
                        break;
                    }
                    floor = row.seq + 1;
                }
                Ok(floor)
            }
        }
    }
}
