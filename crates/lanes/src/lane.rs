//! What both kinds of lane offer.

use bytes::Bytes;
use millpond_store::{ChangeHint, Result, Store as _, StoreError, Write};

use crate::message::Message;
use crate::scan::{Scan, SegmentPage};
use crate::segment::{Place, Segment};

pub(crate) mod private {
    use crate::rows::Rows;

    /// Only the lanes of this crate are lanes.
    pub trait HasRows: Sync {
        fn rows(&self) -> &Rows;
    }
}

/// Reading, changing and removing the segments of a lane, be it unordered or sequenced.
pub trait Lane: private::HasRows {
    /// A scan over all segments, oldest first.
    ///
    /// # Errors
    /// None in practice.
    fn scan(&self) -> Result<Scan> {
        self.rows().scan()
    }

    /// One page of a scan.
    ///
    /// # Errors
    /// As the store's.
    fn page(&self, scan: Scan) -> impl Future<Output = Result<SegmentPage>> + Send {
        self.rows().page(scan)
    }

    /// The segment at a place, unless it was removed.
    ///
    /// # Errors
    /// As the store's.
    fn get(&self, place: Place) -> impl Future<Output = Result<Option<Segment>>> + Send {
        self.rows().get(place)
    }

    /// A segment's messages.
    ///
    /// # Errors
    /// As the store's, and [`StoreError::Corrupt`] when they are not what was appended.
    fn load(&self, segment: &Segment) -> impl Future<Output = Result<Vec<Message>>> + Send {
        self.rows().load(segment)
    }

    /// Replaces a segment's delivery state. Returns the segment as it is now.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the row has changed since: [`current`](Self::current) reads what it is now.
    fn update(
        &self,
        segment: &Segment,
        state: Bytes,
    ) -> impl Future<Output = Result<Segment>> + Send {
        self.rows().update(segment, state)
    }

    /// The segment that a conflict found; nothing when it is removed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    fn current(&self, conflict: &StoreError) -> Result<Option<Segment>> {
        self.rows().current(conflict)
    }

    /// Removes a segment whose messages are all done. Where it could otherwise come back, or its numbers be given
    /// again, a small husk stays for a while.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the row has changed since it was read.
    fn finish(&self, segment: &Segment) -> impl Future<Output = Result<()>> + Send {
        self.finish_with(segment, Vec::new())
    }

    /// The same, in one atomic group with other writes.
    ///
    /// # Errors
    /// As [`finish`](Self::finish); when one of the writes is refused, nothing was written.
    fn finish_with(
        &self,
        segment: &Segment,
        also: Vec<Write>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// A hint that the lane may have changed.
    fn changed(&self) -> ChangeHint {
        self.rows().store.changed(&self.rows().lane)
    }
}
