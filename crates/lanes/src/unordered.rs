//! Unordered lanes: writers never meet.

use std::sync::{Mutex, PoisonError};

use millpond_store::{Expiry, Result, UniqueId, Write};

use crate::append::Append;
use crate::commit::{Bounds, Commit, GroupCommit};
use crate::config::{Ground, LaneConfig};
use crate::lane::Lane;
use crate::lane::private::HasRows;
use crate::message::Message;
use crate::rows::{Removal, Rows};
use crate::segment::{Kind, Place, Segment};

/// How often an append is tried again when it is refused although nothing is in its way.
const SPURIOUS_CONFLICTS_MAX: usize = 8;

/// Segments in flight where a write costs little: while the store syncs one, the next is made ready. Where each row
/// has its price, one at a time makes them larger.
const IN_FLIGHT_WHERE_CHEAP: usize = 2;

/// Where a message is in an unordered lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// Its segment.
    pub segment: UniqueId,
    /// Its place in the segment, from 0.
    pub slot: usize,
}

/// A lane whose rows have time-ordered unique ids: two writers never conflict. What is appended through one handle
/// after another append was acknowledged is behind it; between handles, order is only as good as their clocks. For
/// standard and LIFO queues.
#[derive(Debug)]
pub struct UnorderedLane {
    writer: GroupCommit<Unordered>,
}

#[derive(Debug)]
struct Unordered {
    rows: Rows,
    /// The last id given here, so that what one caller sends after another is behind it.
    last_id: Mutex<UniqueId>,
}

impl UnorderedLane {
    /// Opens the lane called `name`. There is nothing to create: a lane exists while it has rows.
    ///
    /// # Errors
    /// [`TooLarge`](millpond_store::StoreError::TooLarge) or
    /// [`Invalid`](millpond_store::StoreError::Invalid) when the name cannot be one.
    pub fn open(ground: &Ground, name: &str, config: LaneConfig) -> Result<Self> {
        let rows = Rows::open(ground, name, config, Kind::Unordered)?;
        let bounds = Bounds {
            messages_max: config.segment_messages_max,
            bytes_max: config.segment_bytes_max,
            in_flight_max: if rows.profile.groups_cheap { IN_FLIGHT_WHERE_CHEAP } else { 1 },
        };
        let last_id = Mutex::new(UniqueId::from_bytes([0; UniqueId::LEN]));
        Ok(Self { writer: GroupCommit::new(Unordered { rows, last_id }, bounds) })
    }

    /// Appends messages, together with what others append at the same time. Acknowledged means stored.
    ///
    /// # Errors
    /// When a message is too large; then nothing is appended. Each message has its own outcome otherwise.
    pub async fn append(&self, messages: Vec<Message>) -> Result<Vec<Result<Position>>> {
        self.writer.append(messages).await
    }

    /// Appends one prepared segment by itself. When the outcome is unknown, call it again with the same append.
    ///
    /// # Errors
    /// As the store's; by their certainty the segment may be in the lane.
    pub async fn append_prepared(&self, append: &mut Append) -> Result<UniqueId> {
        append_to(self.rows(), append).await
    }
}

impl HasRows for UnorderedLane {
    fn rows(&self) -> &Rows {
        &self.writer.commit().rows
    }
}

impl Lane for UnorderedLane {
    /// Where a writer may still try again what it does not know to have worked, a husk stays for that long.
    async fn finish_with(&self, segment: &Segment, also: Vec<Write>) -> Result<()> {
        let rows = self.rows();
        let window = rows.profile.outcome_window;
        let now = rows.environment.now();
        let removal = if now.since(segment.appended) >= window * 2 {
            Removal::Delete
        } else {
            Removal::Husk(Some(Expiry::at(now.plus(window))))
        };
        rows.remove(segment, removal, also).await.map(|_| ())
    }
}

impl Commit for Unordered {
    type Position = Position;

    async fn commit(&self, messages: Vec<Message>) -> Result<Vec<Position>> {
        let mut append = Append::new(&self.rows.environment, &messages)?;
        {
            let mut last = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
            append.id = append.id.or_after(*last);
            *last = append.id;
        }
        let segment = append_to(&self.rows, &mut append).await?;
        Ok((0..messages.len()).map(|slot| Position { segment, slot }).collect())
    }
}

async fn append_to(rows: &Rows, append: &mut Append) -> Result<UniqueId> {
    let place = Place::Id(append.id);
    let mut refused = 0;
    loop {
        let error = match rows.write_append(append, place).await {
            Ok(()) => return Ok(append.id),
            Err(error) => error,
        };
        // Nobody else makes a row with this id: what is there is ours, from an attempt whose answer was lost.
        if rows.refused_row(&error, place)?.is_some() {
            return Ok(append.id);
        }
        refused += 1;
        if !error.is_conflict() || refused > SPURIOUS_CONFLICTS_MAX {
            return Err(error);
        }
    }
}
