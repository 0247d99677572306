//! Reading a partition.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, stream};
use millpond_lanes::cargo::CargoRef;
use millpond_lanes::{Lane as _, Place, Scan, Segment, SequencedLane};

use crate::cache::Messages;
use crate::error::{LogError, Result};
use crate::limits::{READ_BYTES_MAX, READ_RECORDS_MAX, READ_REQUESTS_MAX, READ_ROWS};
use crate::record::Record;
use crate::topic::{Topic, first_segment};

/// Records that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first offset that is missing.
    pub from: u64,
    /// The first one that is not.
    pub to: u64,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The partition.
    pub partition: u32,
    /// The records, by rising offset, without a gap among them.
    pub records: Vec<Record>,
    /// Before them, what retention has removed of what was asked for.
    pub gap: Option<Gap>,
    /// Where to read on.
    pub next: u64,
    /// Whether there was more at the time.
    pub more: bool,
}

impl Batch {
    /// Whether there is nothing in it, not even a gap.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty() && self.gap.is_none()
    }
}

/// Where a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub next: u64,
    /// Whether a segment begins there, if there is one: then it is found without a search.
    pub aligned: bool,
}

impl Topic {
    /// Reads up to `max` records of a partition, from offset `from` on. It sees everything that was acknowledged
    /// before it began. A read also ends at 8 MiB; the answer says whether more remains.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], [`LogError::OutOfRange`] when `from` is behind the end, [`LogError::Invalid`]
    /// when `max` is zero, and as the store's.
    pub async fn read(&self, partition: u32, from: u64, max: usize) -> Result<Batch> {
        let lane = self.lane(partition).await?;
        let mut cursor = Cursor { next: from, aligned: false };
        let batch = self.read_at(&lane, partition, &mut cursor, max).await?;
        if !batch.is_empty() {
            return Ok(batch);
        }
        let latest = lane.tail().await?;
        if from > latest {
            let earliest = earliest(&lane, latest).await?;
            return Err(LogError::OutOfRange { partition, wanted: from, earliest, latest });
        }
        if from == latest {
            return Ok(batch);
        }
        // Something came meanwhile, or everything has gone.
        let batch = self.read_at(&lane, partition, &mut cursor, max).await?;
        if !batch.is_empty() {
            return Ok(batch);
        }
        let gap = Some(Gap { from, to: latest });
        Ok(Batch { gap, next: latest, ..batch })
    }

    /// Reads on from where the cursor is, and moves it. Finds nothing at the end, and where everything is removed.
    pub(crate) async fn read_at(
        &self,
        lane: &SequencedLane,
        partition: u32,
        cursor: &mut Cursor,
        max: usize,
    ) -> Result<Batch> {
        if max == 0 {
            return Err(LogError::invalid("max", "is zero"));
        }
        let max = max.min(READ_RECORDS_MAX);
        let from = cursor.next;
        let scan = if cursor.aligned {
            lane.scan()?.from(Place::Number(from))?
        } else {
            lane.scan_from(from).await?
        };
        let found = find(lane, scan, from, max).await?;
        let first = found.segments.first().and_then(Segment::first).unwrap_or(from);
        let gap = (first > from).then_some(Gap { from, to: first });
        let start = first.max(from);
        let records = self.load(lane, partition, &found.segments, start, max).await?;
        let next = start + records.len() as u64;
        let ends_segment = found.segments.last().and_then(end) == Some(next);
        if !records.is_empty() {
            *cursor = Cursor { next, aligned: ends_segment };
        }
        let more = found.more || (!records.is_empty() && !ends_segment);
        Ok(Batch { partition, records, gap, next, more })
    }

    async fn load(
        &self,
        lane: &SequencedLane,
        partition: u32,
        segments: &[Segment],
        start: u64,
        max: usize,
    ) -> Result<Vec<Record>> {
        // Made beforehand: a stream that makes them would tie this future to one lifetime.
        let loads: Vec<_> =
            segments.iter().map(|segment| self.messages(lane, segment).boxed()).collect();
        let mut loads = stream::iter(loads).buffered(READ_REQUESTS_MAX).zip(stream::iter(segments));
        let mut records = Vec::new();
        while let Some((messages, segment)) = loads.next().await {
            let messages = messages?;
            let first = segment.first().unwrap_or_default();
            let skipped = usize::try_from(start.saturating_sub(first)).unwrap_or(usize::MAX);
            let wanted = (first..).zip(messages.iter()).skip(skipped).take(max - records.len());
            for (offset, message) in wanted {
                records.push(Record::of(partition, offset, segment.appended, message)?);
            }
        }
        Ok(records)
    }

    async fn messages(&self, lane: &SequencedLane, segment: &Segment) -> Result<Messages> {
        let cache = &self.0.log.0.cache;
        let afar = match segment.cargo {
            CargoRef::Inline(_) => false,
            CargoRef::Object { .. } | CargoRef::Shared { .. } => true,
            CargoRef::Items { .. } => self.0.log.0.store.profile().relaxed_cheaper,
        };
        if !afar {
            return Ok(Arc::new(lane.load(segment).await?));
        }
        if let Some(messages) = cache.get(segment.id) {
            return Ok(messages);
        }
        let messages = Arc::new(lane.load(segment).await?);
        cache.keep(segment.id, &messages);
        Ok(messages)
    }

    /// Bytes of payload that are kept in memory for who reads them next.
    #[must_use]
    pub fn cached_bytes(&self) -> usize {
        self.0.log.0.cache.bytes()
    }
}

struct Found {
    segments: Vec<Segment>,
    more: bool,
}

/// The segments that hold up to `max` records from `from` on, each beginning where the last one ended.
async fn find(lane: &SequencedLane, scan: Scan, from: u64, max: usize) -> Result<Found> {
    let (first_page, later_page) = READ_ROWS;
    let mut found = Found { segments: Vec::new(), more: false };
    let (mut records, mut bytes, mut expected) = (0_u64, 0, None);
    let mut next = Some(scan.limit(first_page.max(max / 64).min(later_page)));
    while let Some(scan) = next {
        let page = lane.page(scan).await?;
        for segment in page.segments {
            let Some((first, end)) = segment.first().zip(end(&segment)) else { continue };
            if end <= from {
                continue;
            }
            // Behind a hole, or enough: it is for the next read to say.
            let is_behind_hole = expected.is_some_and(|expected| first != expected);
            if is_behind_hole || records >= max as u64 || bytes >= READ_BYTES_MAX {
                found.more = true;
                return Ok(found);
            }
            records += end - first.max(from);
            bytes += segment.cargo.len();
            expected = Some(end);
            found.segments.push(segment);
        }
        let enough = records >= max as u64 || bytes >= READ_BYTES_MAX;
        next = page.next.map(|scan| scan.limit(if enough { 1 } else { later_page }));
    }
    Ok(found)
}

fn end(segment: &Segment) -> Option<u64> {
    segment.first()?.checked_add(segment.count as u64)
}

/// The first offset that is still there, or the end where nothing is.
pub(crate) async fn earliest(lane: &SequencedLane, latest: u64) -> Result<u64> {
    let first = first_segment(lane).await?;
    Ok(first.as_ref().and_then(Segment::first).unwrap_or(latest))
}
