//! Removing objects that no row names.

use std::collections::HashSet;
use std::time::Duration;

use futures::TryStreamExt as _;
use millpond_store::{Operation, Result, StoreError, Timestamp, UniqueId};
use object_store::ObjectMeta;
use object_store::path::Path;

use super::objects::{Objects, failed};
use crate::config::Ground;
use crate::limits::ORPHAN_AGE_MIN;
use crate::rows::Rows;
use crate::{LaneConfig, LaneKind};

/// What to sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The lane.
    pub lane: String,
    /// Its kind.
    pub kind: LaneKind,
    /// Only count, remove nothing. Default: true.
    pub dry_run: bool,
    /// Leave what is younger than this: its row may be on the way. Default and least: an hour.
    pub age_min: Duration,
}

impl Sweep {
    /// A dry run over one lane.
    #[must_use]
    pub fn new(lane: impl Into<String>, kind: LaneKind) -> Self {
        Self { lane: lane.into(), kind, dry_run: true, age_min: ORPHAN_AGE_MIN }
    }
}

/// What a sweep found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// Objects looked at.
    pub objects: u64,
    /// Objects that a row names.
    pub named: u64,
    /// Objects too young to tell.
    pub young: u64,
    /// Objects that no row names.
    pub orphans: u64,
    /// Bytes in them.
    pub orphan_bytes: u64,
    /// Orphans removed: none in a dry run.
    pub removed: u64,
    /// Objects whose name is not one of ours; they are left alone.
    pub foreign: u64,
}

/// Finds the objects of a lane that no row names, and removes them unless it is a dry run.
///
/// Objects are listed before the rows are read, and only those old enough are judged, so that an object whose row
/// is on the way is never taken.
///
/// # Errors
/// As the store's and the object store's, and [`StoreError::Misconfigured`] when there is no object store.
pub async fn sweep(ground: &Ground, sweep: &Sweep) -> Result<SweepReport> {
    let Some(objects) = &ground.objects else {
        return Err(StoreError::misconfigured(
            "there is no object store to sweep",
            "name the one that the store was written with",
        ));
    };
    let rows = Rows::open(ground, &sweep.lane, LaneConfig::default(), sweep.kind)?;
    let prefix = objects.lane_prefix(&rows.lane);
    let now = ground.environment.now();
    let age_min = sweep.age_min.max(ORPHAN_AGE_MIN);

    let listed = list(objects, &prefix).await?;
    let named = named_objects(&rows).await?;
    remove_unnamed(objects, listed, &named, now, age_min, sweep.dry_run).await
}

/// Everything under `prefix`.
pub(super) async fn list(objects: &Objects, prefix: &Path) -> Result<Vec<ObjectMeta>> {
    objects.count(Operation::ObjectList, 0);
    let listed = objects.store().list(Some(prefix));
    listed.try_collect().await.map_err(|error| failed("object list", prefix, error))
}

/// Judges objects that were listed before `named` was read.
pub(super) async fn remove_unnamed(
    objects: &Objects,
    listed: Vec<ObjectMeta>,
    named: &HashSet<UniqueId>,
    now: Timestamp,
    age_min: Duration,
    dry_run: bool,
) -> Result<SweepReport> {
    let mut report = SweepReport::default();
    for object in listed {
        report.objects += 1;
        let Some(id) = object.location.filename().and_then(parse_id) else {
            report.foreign += 1;
            continue;
        };
        if named.contains(&id) {
            report.named += 1;
        } else if now.since(made(id, object.last_modified.timestamp_millis())) < age_min {
            report.young += 1;
        } else {
            report.orphans += 1;
            report.orphan_bytes += object.size;
            if !dry_run {
                objects.delete(&object.location).await?;
                report.removed += 1;
            }
        }
    }
    Ok(report)
}

/// When an object was made: the later of what its id and the object store say.
fn made(id: UniqueId, modified_millis: i64) -> Timestamp {
    let modified = u64::try_from(modified_millis).unwrap_or_default();
    id.time().max(Timestamp::from_millis(modified))
}

fn parse_id(name: &str) -> Option<UniqueId> {
    let number = u128::from_str_radix(name, 16).ok().filter(|_| name.len() == 2 * UniqueId::LEN)?;
    Some(UniqueId::from_bytes(number.to_be_bytes()))
}

async fn named_objects(rows: &Rows) -> Result<HashSet<UniqueId>> {
    let mut named = HashSet::new();
    let mut next = Some(rows.scan()?);
    while let Some(scan) = next {
        let page = rows.page(scan).await?;
        let objects = page
            .segments
            .iter()
            .filter(|segment| matches!(segment.cargo, super::CargoRef::Object { .. }));
        named.extend(objects.map(|segment| segment.id));
        next = page.next;
    }
    Ok(named)
}
