//! What is known of a message before it is stored: whether its number was passed, and whether it fits the window.

use millpond_store::{Query, collect};

use crate::config::{Start, Window};
use crate::cursor::{Cursor, Stored};
use crate::error::{Result, SequencerError};
use crate::limits::PENDING_ROWS_MAX;
use crate::names::{kind, number_key, numbers};
use crate::put::{Arrival, Group, Put};
use crate::sequencer::{Place, Sequencer};

/// What waits ahead of a cursor.
#[derive(Debug, Default, Clone, Copy)]
struct Held {
    count: u64,
    bytes: u64,
}

impl Sequencer {
    /// Settles what need not be stored. What is remembered of the queue saves reading its cursor, unless it says that
    /// something is to be refused: then the cursor is read.
    pub(crate) async fn admit(&self, group: &mut Group) {
        if let Err(error) = self.admit_all(group).await {
            for put in group.puts.iter_mut().filter(|put| put.outcome.is_none()) {
                put.outcome = Some(Err(error.clone()));
            }
        }
    }

    async fn admit_all(&self, group: &mut Group) -> Result<()> {
        let place = group.place.clone();
        let (Some(first), Some(last)) = (
            group.puts.first().map(|put| put.entry.seq),
            group.puts.last().map(|put| put.entry.seq),
        ) else {
            return Ok(());
        };
        let remembered = self.known.hint(&place.queue).cursor.map(|stored| stored.cursor);
        let guess = match (&remembered, self.config.start) {
            (Some(cursor), _) => Some(cursor.next),
            (None, Start::At(start)) => Some(start),
            (None, _) => None,
        };
        let window = &self.config.window;
        let counted = window.count.is_some() || window.bytes.is_some();
        let plain = guess.is_some_and(|next| {
            first >= next && last - next < window.span && !(counted && last > next)
        });
        if plain {
            return Ok(());
        }
        let stored = self.look(&place, Some(first)).await?;
        let mut held = Held::default();
        if counted && last > stored.cursor.next {
            held = self.held(&place, &stored.cursor).await?;
        }
        for put in &mut group.puts {
            put.outcome = match self.admit_one(&place, &stored, put, &mut held).await {
                Ok(None) => None,
                Ok(Some(arrival)) => Some(Ok(arrival)),
                Err(error) => Some(Err(error)),
            };
        }
        Ok(())
    }

    async fn admit_one(
        &self,
        place: &Place,
        stored: &Stored,
        put: &Put,
        held: &mut Held,
    ) -> Result<Option<Arrival>> {
        let (cursor, seq) = (&stored.cursor, put.entry.seq);
        if seq >= cursor.next {
            let Err(full) = check_window(&self.config.window, place, cursor, put, held) else {
                return Ok(None);
            };
            // What is buffered already is a duplicate, however full the window is.
            let key = number_key(&place.partition, kind::ITEM, seq)?;
            return if self.store.get(&key).await?.is_some() { Ok(None) } else { Err(full) };
        }
        let key = number_key(&place.partition, kind::ITEM, seq)?;
        let there = self.store.get(&key).await?;
        if self.is_late(place, cursor, seq).await? {
            let own = there.map(|item| item.version);
            let entry = &put.entry;
            return self.receive_late(place, stored.clone(), entry, own).await.map(Some);
        }
        match there {
            // Left to be stored, which finds it there, and heals.
            Some(_) => Ok(None),
            None => Ok(Some(Arrival::Passed)),
        }
    }

    async fn held(&self, place: &Place, cursor: &Cursor) -> Result<Held> {
        let query: Query = numbers(&place.partition, kind::ITEM, cursor.next, u64::MAX)?;
        let mut held = Held::default();
        for item in collect(self.store.as_ref(), query, PENDING_ROWS_MAX).await? {
            held.count += 1;
            held.bytes += item.attributes.bytes("body")?.len() as u64;
        }
        Ok(held)
    }
}

fn check_window(
    window: &Window,
    place: &Place,
    cursor: &Cursor,
    put: &Put,
    held: &mut Held,
) -> Result<()> {
    let seq = put.entry.seq;
    held.count += 1;
    held.bytes += put.entry.message.payload.len() as u64;
    if seq == cursor.next {
        return Ok(());
    }
    let checks = [
        (seq - cursor.next + 1, "numbers", Some(window.span)),
        (held.count, "messages", window.count),
        (held.bytes, "bytes", window.bytes),
    ];
    for (size, unit, limit) in checks {
        if let Some(limit) = limit.filter(|limit| size > *limit) {
            held.count -= 1;
            held.bytes -= put.entry.message.payload.len() as u64;
            let queue = place.queue.to_string();
            let next = cursor.next;
            return Err(SequencerError::WindowFull { queue, seq, next, held: size, unit, limit });
        }
    }
    Ok(())
}
