//! Removing what is too old or too much, oldest first.

use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use millpond_lanes::cargo::SweepReport;
use millpond_lanes::{Lane as _, Segment, SequencedLane};
use millpond_store::{StoreError, Timestamp};

use crate::config::TopicConfig;
use crate::error::Result;
use crate::limits::{PARTITIONS_AT_A_TIME, TRIM_SEGMENTS_MAX};
use crate::topic::Topic;

/// What a trim removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// Segments.
    pub segments: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes stored for them.
    pub bytes: u64,
    /// Whether there is more to remove: call it again.
    pub more: bool,
}

impl Trimmed {
    const fn plus(self, other: Self) -> Self {
        Self {
            segments: self.segments + other.segments,
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
            more: self.more || other.more,
        }
    }
}

impl Topic {
    /// Removes what the topic's retention says, whole segments, oldest first. It can be interrupted at any point, and
    /// several may run at once: what is missing is always a prefix. Objects that no segment names any more are left
    /// to [`sweep`](Self::sweep).
    ///
    /// # Errors
    /// As the store's.
    pub async fn trim(&self) -> Result<Trimmed> {
        let item = self.refresh().await?;
        let config = item.config;
        if config.retention_age.is_none() && config.retention_bytes.is_none() {
            return Ok(Trimmed::default());
        }
        let now = self.environment().now();
        let trims: Vec<_> = (0..config.partitions)
            .map(|partition| self.trim_partition(partition, config, now).boxed())
            .collect();
        stream::iter(trims)
            .buffer_unordered(PARTITIONS_AT_A_TIME)
            .try_fold(Trimmed::default(), |sum, one| async move { Ok(sum.plus(one)) })
            .await
    }

    async fn trim_partition(
        &self,
        partition: u32,
        config: TopicConfig,
        now: Timestamp,
    ) -> Result<Trimmed> {
        let lane = self.0.lanes.lane(partition)?;
        trim_lane(&lane, &config, now).await
    }

    /// Finds objects that no segment names, and removes them unless it is a dry run: those of trimmed segments, and
    /// those of appends that never came to be. Younger ones than an hour are left alone.
    ///
    /// # Errors
    /// As the store's and the object store's, and `Misconfigured` when there is no object store.
    pub async fn sweep(&self, dry_run: bool) -> Result<SweepReport> {
        let partitions = self.refresh().await?.config.partitions;
        let lanes = (0..partitions).map(|partition| self.0.lanes.lane(partition));
        let lanes = lanes.collect::<Result<Vec<_>>>()?;
        let lanes: Vec<&SequencedLane> = lanes.iter().map(AsRef::as_ref).collect();
        let shelf = self.0.lanes.shelf.as_ref().ok_or_else(|| {
            StoreError::misconfigured(
                "there is no object store to sweep",
                "name the one that the store was written with",
            )
        })?;
        Ok(shelf.sweep(&lanes, Duration::ZERO, dry_run).await?)
    }
}

async fn trim_lane(lane: &SequencedLane, config: &TopicConfig, now: Timestamp) -> Result<Trimmed> {
    let mut trimmed = Trimmed::default();
    let Some(last) = lane.last_before(None).await? else { return Ok(trimmed) };
    let is_due = |segment: &Segment| {
        let too_old = config.retention_age.is_some_and(|age| now.since(segment.appended) >= age);
        let behind = last.carry.bytes.saturating_sub(segment.carry.bytes);
        too_old || config.retention_bytes.is_some_and(|most| behind >= most)
    };
    let mut next = Some(lane.scan()?);
    while let Some(scan) = next {
        let page = lane.page(scan).await?;
        for segment in &page.segments {
            if !is_due(segment) {
                return Ok(trimmed);
            }
            if trimmed.segments >= TRIM_SEGMENTS_MAX as u64 {
                trimmed.more = true;
                return Ok(trimmed);
            }
            match lane.finish(segment).await {
                Ok(()) => {
                    trimmed.segments += 1;
                    trimmed.records += segment.count as u64;
                    trimmed.bytes += segment.cargo.len() as u64;
                }
                // Somebody else has removed it; if not, what comes behind it must wait for it.
                Err(error) if error.is_conflict() && lane.current(&error)?.is_none() => {}
                Err(error) if error.is_conflict() => {
                    trimmed.more = true;
                    return Ok(trimmed);
                }
                Err(error) => return Err(error.into()),
            }
        }
        next = page.next;
    }
    Ok(trimmed)
}
