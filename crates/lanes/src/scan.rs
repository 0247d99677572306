//! Going through a lane's segments.

use millpond_store::{Partition, Query, Result, SortKey, SortRange};

use crate::segment::{Place, ROW_PREFIX, Segment};

/// Which segments to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan(pub(crate) Query);

impl Scan {
    /// All rows of a lane.
    pub(crate) fn all(lane: &Partition) -> Result<Self> {
        let rows = SortRange::prefix(SortKey::new(vec![ROW_PREFIX])?);
        Ok(Self(Query::new(lane.clone()).range(rows)))
    }

    /// From this place on (it included), by rising place.
    ///
    /// # Errors
    /// None in practice: a place is always a valid key.
    pub fn from(mut self, place: Place) -> Result<Self> {
        self.0.range.start = Some(place.sort_key()?);
        Ok(self)
    }

    /// Up to this place (it not included).
    ///
    /// # Errors
    /// None in practice: a place is always a valid key.
    pub fn to(mut self, place: Place) -> Result<Self> {
        self.0.range.end = Some(place.sort_key()?);
        Ok(self)
    }

    /// The last ones first.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self(self.0.reverse())
    }

    /// At most this many rows a page.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self(self.0.limit(limit))
    }

    /// A stale answer will do: at half the price on DynamoDB.
    #[must_use]
    pub fn relaxed(self) -> Self {
        Self(self.0.relaxed())
    }
}

/// Part of a scan's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPage {
    /// The segments, in the scan's order. Removed ones are left out.
    pub segments: Vec<Segment>,
    /// The first row that was read, removed or not.
    pub first: Option<Place>,
    /// The last row that was read, removed or not.
    pub last: Option<Place>,
    /// The scan that reads on; nothing when there is no more. The next page may turn out empty.
    pub next: Option<Scan>,
}
