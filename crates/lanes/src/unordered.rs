//! Unordered lanes: writers never meet.

use bytes::Bytes;
use millpond_store::{ChangeHint, Expiry, Result, Store as _, StoreError, UniqueId};

use crate::append::Append;
use crate::commit::{Bounds, Commit, GroupCommit};
use crate::config::{Ground, LaneConfig};
use crate::message::Message;
use crate::rows::{Removal, Rows};
use crate::scan::{Scan, SegmentPage};
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

/// A lane whose rows have time-ordered unique ids: two writers never conflict, and order is only as good as their
/// clocks. For standard and LIFO queues.
#[derive(Debug)]
pub struct UnorderedLane {
    writer: GroupCommit<Rows>,
}

impl UnorderedLane {
    /// Opens the lane called `name`. There is nothing to create: a lane exists while it has rows.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] or [`StoreError::Invalid`] when the name cannot be one.
    pub fn open(ground: &Ground, name: &str, config: LaneConfig) -> Result<Self> {
        let rows = Rows::open(ground, name, config, Kind::Unordered)?;
        let bounds = Bounds {
            messages_max: config.segment_messages_max,
            bytes_max: config.segment_bytes_max,
            in_flight_max: if rows.profile.groups_cheap { IN_FLIGHT_WHERE_CHEAP } else { 1 },
        };
        Ok(Self { writer: GroupCommit::new(rows, bounds) })
    }

    fn rows(&self) -> &Rows {
        self.writer.commit()
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

    /// A scan over all segments, oldest first.
    ///
    /// # Errors
    /// None in practice.
    pub fn scan(&self) -> Result<Scan> {
        self.rows().scan()
    }

    /// One page of a scan.
    ///
    /// # Errors
    /// As the store's.
    pub async fn page(&self, scan: Scan) -> Result<SegmentPage> {
        self.rows().page(scan).await
    }

    /// A segment's messages.
    ///
    /// # Errors
    /// As the store's, and [`StoreError::Corrupt`] when they are not what was appended.
    pub async fn load(&self, segment: &Segment) -> Result<Vec<Message>> {
        self.rows().load(segment).await
    }

    /// Replaces a segment's delivery state. Returns the segment as it is now.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the row has changed since: [`current`](Self::current) reads what it is now.
    pub async fn update(&self, segment: &Segment, state: Bytes) -> Result<Segment> {
        self.rows().update(segment, state).await
    }

    /// The segment that a conflict found; nothing when it is removed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    pub fn current(&self, conflict: &StoreError) -> Result<Option<Segment>> {
        self.rows().current(conflict)
    }

    /// Removes a segment whose messages are all done. Where a writer may still try again what it does not know to
    /// have worked, a small husk stays for that long, so that the segment cannot come back.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the row has changed since it was read.
    pub async fn finish(&self, segment: &Segment) -> Result<()> {
        let rows = self.rows();
        let window = rows.profile.outcome_window;
        let age = rows.environment.now().since(segment.appended);
        let removal = if age >= window * 2 {
            Removal::Delete
        } else {
            Removal::Husk(Some(Expiry::at(rows.environment.now().plus(window))))
        };
        rows.remove(segment, removal).await.map(|_| ())
    }

    /// A hint that the lane may have changed.
    #[must_use]
    pub fn changed(&self) -> ChangeHint {
        self.rows().store.changed(&self.rows().lane)
    }
}

impl Commit for Rows {
    type Position = Position;

    async fn commit(&self, messages: Vec<Message>) -> Result<Vec<Position>> {
        let mut append = Append::new(&self.environment, &messages)?;
        let segment = append_to(self, &mut append).await?;
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
