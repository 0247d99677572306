//! Objects that hold the cargo of several lanes.

use std::collections::HashSet;
use std::time::Duration;

use bytes::BytesMut;
use millpond_store::{Environment, Partition, Result, StoreError, UniqueId};

use super::objects::Objects;
use super::reference::CargoRef;
use super::sweep::{SweepReport, list, remove_unnamed};
use crate::append::{Append, Slot};
use crate::config::Ground;
use crate::lane::Lane;
use crate::lane::private::HasRows as _;
use crate::limits::{ORPHAN_AGE_MIN, SHARED_AGE_MAX};
use crate::sequenced::SequencedLane;

/// A place for objects that hold the cargo of several lanes: one flush of a log writes one object for all its
/// partitions. Removing a segment leaves its object alone; [`sweep`](Self::sweep) removes those that no row of any
/// of the lanes names.
#[derive(Debug, Clone)]
pub struct Shelf {
    pub(crate) name: Partition,
    objects: Option<Objects>,
    environment: Environment,
}

impl Shelf {
    /// The shelf called `name`.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] or [`StoreError::Invalid`] when the name cannot be one.
    pub fn new(ground: &Ground, name: &str) -> Result<Self> {
        let (objects, environment) = (ground.objects.clone(), ground.environment.clone());
        Ok(Self { name: Partition::new(name)?, objects, environment })
    }

    /// Whether there is an object store at all.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.objects.is_some()
    }

    /// Writes the cargo of these appends into one object, before any row names it. Those that have their place
    /// already keep it, unless that is so old that the sweep might take it.
    ///
    /// # Errors
    /// As the object store's: then the appends are as they were.
    pub async fn stow<'a>(&self, appends: impl IntoIterator<Item = &'a mut Append>) -> Result<()> {
        let objects = self.objects()?;
        let now = self.environment.now();
        let is_old = |slot: Slot| now.since(slot.object.time()) > SHARED_AGE_MAX;
        let appends: Vec<_> =
            appends.into_iter().filter(|append| append.slot.is_none_or(is_old)).collect();
        if appends.is_empty() {
            return Ok(());
        }
        let object = self.environment.unique_id();
        let bytes = appends.iter().map(|append| append.stored_len()).sum();
        let mut joined = BytesMut::with_capacity(bytes);
        let mut offsets = Vec::with_capacity(appends.len());
        for append in &appends {
            offsets.push(joined.len() as u64);
            joined.extend_from_slice(&append.stored());
        }
        objects.put(&objects.path(&self.name, object), joined.freeze()).await?;
        for (append, offset) in appends.into_iter().zip(offsets) {
            append.slot = Some(Slot { object, offset });
        }
        Ok(())
    }

    /// Finds the objects that no row of `lanes` names, and removes them unless it is a dry run. `lanes` must be all
    /// lanes that share this shelf.
    ///
    /// # Errors
    /// As the store's and the object store's, and [`StoreError::Misconfigured`] when there is no object store.
    pub async fn sweep(
        &self,
        lanes: &[&SequencedLane],
        age_min: Duration,
        dry_run: bool,
    ) -> Result<SweepReport> {
        let objects = self.objects()?;
        let (now, age_min) = (self.environment.now(), age_min.max(ORPHAN_AGE_MIN));
        // Objects before rows: a row that comes later names an object that is younger than any judged here.
        let listed = list(objects, &objects.lane_prefix(&self.name)).await?;
        let mut named = HashSet::new();
        for lane in lanes {
            add_named(lane, &mut named).await?;
        }
        remove_unnamed(objects, listed, &named, now, age_min, dry_run).await
    }

    /// Removes all objects of the shelf: for when its lanes are gone.
    ///
    /// # Errors
    /// As the object store's.
    pub async fn clear(&self) -> Result<u64> {
        let Some(objects) = &self.objects else { return Ok(0) };
        let mut removed = 0;
        for object in list(objects, &objects.lane_prefix(&self.name)).await? {
            objects.delete(&object.location).await?;
            removed += 1;
        }
        Ok(removed)
    }

    fn objects(&self) -> Result<&Objects> {
        self.objects.as_ref().ok_or_else(|| {
            StoreError::misconfigured(
                format!("there is no object store for {}", self.name),
                "name the one that the store was written with",
            )
        })
    }
}

async fn add_named(lane: &SequencedLane, named: &mut HashSet<UniqueId>) -> Result<()> {
    let mut next = Some(lane.scan()?);
    while let Some(scan) = next {
        let page = lane.rows().page(scan).await?;
        named.extend(page.segments.iter().filter_map(|segment| match segment.cargo {
            CargoRef::Shared { object, .. } => Some(object),
            _ => None,
        }));
        next = page.next;
    }
    Ok(())
}
