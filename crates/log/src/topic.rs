//! A topic's handle: its configuration as last seen, its lanes, its writer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use millpond_lanes::cargo::Shelf;
use millpond_lanes::{Ground, Lane as _, LaneConfig, SequencedLane};
use millpond_store::{Environment, Monotonic, Timestamp};

use crate::config::{TopicConfig, TopicItem};
use crate::error::{LogError, Result};
use crate::flush::Flusher;
use crate::limits::{PARTITIONS_AT_A_TIME, TOPIC_AGE_MAX};
use crate::log::Log;

/// A topic. Clones share everything, also the batches that concurrent appends make.
#[derive(Debug, Clone)]
pub struct Topic(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub log: Log,
    pub lanes: Arc<Lanes>,
    pub flusher: Flusher,
    view: Mutex<View>,
    /// Records without a key take turns among partitions, a batch at a time.
    turn: AtomicU32,
}

#[derive(Debug)]
struct View {
    item: Arc<TopicItem>,
    seen: Monotonic,
}

/// The lanes of a topic's partitions, opened as they are used.
#[derive(Debug)]
pub(crate) struct Lanes {
    ground: Ground,
    root: String,
    config: LaneConfig,
    pub shelf: Option<Shelf>,
    opened: Mutex<BTreeMap<u32, Arc<SequencedLane>>>,
}

impl Lanes {
    pub fn name(&self, partition: u32) -> String {
        format!("{}/{partition}", self.root)
    }

    pub fn lane(&self, partition: u32) -> Result<Arc<SequencedLane>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = opened.get(&partition) {
            return Ok(Arc::clone(lane));
        }
        let name = self.name(partition);
        let lane = Arc::new(match &self.shelf {
            Some(shelf) => SequencedLane::open_with_shelf(&self.ground, &name, self.config, shelf)?,
            None => SequencedLane::open(&self.ground, &name, self.config)?,
        });
        opened.insert(partition, Arc::clone(&lane));
        Ok(lane)
    }
}

/// What a topic is, and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDescription {
    /// Its name.
    pub name: String,
    /// How it keeps its records.
    pub config: TopicConfig,
    /// How many partitions it had before it grew, oldest first.
    pub grown_from: Vec<u32>,
    /// When it was created.
    pub created: Timestamp,
    /// Its partitions, in order.
    pub partitions: Vec<PartitionDescription>,
}

/// What is in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Its number.
    pub partition: u32,
    /// The first record that is still there.
    pub earliest: u64,
    /// The offset that the next record will have.
    pub latest: u64,
    /// Bytes stored for the records that are there.
    pub bytes: u64,
    /// When the first of them was appended.
    pub oldest: Option<Timestamp>,
    /// The greatest fence token; 0 while there was none.
    pub fence: u64,
}

impl Topic {
    pub(crate) fn new(log: &Log, item: TopicItem) -> Self {
        let ground = log.0.ground.clone();
        let config = LaneConfig {
            segment_bytes_max: item.config.segment_bytes_max,
            object_bytes_min: item.config.object_bytes_min,
            ..LaneConfig::LOG
        };
        let root = item.root();
        let shelf = ground.objects.is_some().then(|| Shelf::new(&ground, &root).ok()).flatten();
        let lanes = Lanes { ground, root, config, shelf, opened: Mutex::default() };
        let lanes = Arc::new(lanes);
        let flusher = Flusher::new(&lanes, config, log);
        let view = View { item: Arc::new(item), seen: log.0.ground.environment.clock.monotonic() };
        let (log, view) = (log.clone(), Mutex::new(view));
        Self(Arc::new(Inner { log, lanes, flusher, view, turn: AtomicU32::new(0) }))
    }

    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.item().name.to_string()
    }

    /// How many partitions it has, as last seen. They are numbered from 0.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.item().config.partitions
    }

    /// Its configuration, as last seen.
    #[must_use]
    pub fn config(&self) -> TopicConfig {
        self.item().config
    }

    /// What it is, and what is in it.
    ///
    /// # Errors
    /// [`LogError::UnknownTopic`] when it was deleted, and as the store's.
    pub async fn describe(&self) -> Result<TopicDescription> {
        let item = self.refresh().await?;
        let partitions: Vec<_> = (0..item.config.partitions)
            .map(|partition| self.describe_partition(partition).boxed())
            .collect();
        let partitions =
            stream::iter(partitions).buffered(PARTITIONS_AT_A_TIME).try_collect().await?;
        Ok(TopicDescription {
            name: item.name.to_string(),
            config: item.config,
            grown_from: item.grown_from.clone(),
            created: item.created,
            partitions,
        })
    }

    async fn describe_partition(&self, partition: u32) -> Result<PartitionDescription> {
        let lane = self.0.lanes.lane(partition)?;
        let last = lane.last_before(None).await?;
        let (latest, carry) = last.map(|last| (last.end, last.carry)).unwrap_or_default();
        let first = first_segment(&lane).await?;
        let bytes = first.as_ref().map_or(0, |first| {
            let before = first.carry.bytes.saturating_sub(first.cargo.len() as u64);
            carry.bytes.saturating_sub(before)
        });
        Ok(PartitionDescription {
            partition,
            earliest: first.as_ref().and_then(millpond_lanes::Segment::first).unwrap_or(latest),
            latest,
            bytes,
            oldest: first.map(|first| first.appended),
            fence: carry.fence,
        })
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.0.log.0.ground.environment
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn item(&self) -> Arc<TopicItem> {
        Arc::clone(&self.view().item)
    }

    /// The topic as it was a short while ago at most.
    pub(crate) async fn recent(&self) -> Result<Arc<TopicItem>> {
        let (item, seen) = {
            let view = self.view();
            (Arc::clone(&view.item), view.seen)
        };
        if self.environment().clock.monotonic().since(seen) <= TOPIC_AGE_MAX {
            return Ok(item);
        }
        self.refresh().await
    }

    /// The topic as it is.
    pub(crate) async fn refresh(&self) -> Result<Arc<TopicItem>> {
        let known = self.item();
        let seen = self.environment().clock.monotonic();
        let item = Arc::new(self.0.log.find(&known.name).await?);
        if item.deleting || item.incarnation != known.incarnation {
            return Err(self.0.log.unknown(&known.name).await);
        }
        *self.view() = View { item: Arc::clone(&item), seen };
        Ok(item)
    }

    /// The lane of a partition that exists.
    pub(crate) async fn lane(&self, partition: u32) -> Result<Arc<SequencedLane>> {
        let mut partitions = self.partitions();
        if partition >= partitions {
            partitions = self.refresh().await?.config.partitions;
        }
        if partition >= partitions {
            let topic = self.name();
            return Err(LogError::UnknownPartition { topic, partition, partitions });
        }
        self.0.lanes.lane(partition)
    }

    /// The next partition for records without a key.
    pub(crate) fn next_turn(&self, partitions: u32) -> u32 {
        self.0.turn.fetch_add(1, Ordering::Relaxed) % partitions.max(1)
    }

    /// The part of the store that holds the groups' items.
    pub(crate) fn groups_partition(&self) -> String {
        format!("{}/@", self.0.lanes.root)
    }

    pub(crate) async fn remove_everything(&self) -> Result<()> {
        let log = &self.0.log;
        let groups = self.groups_partition();
        for group in self.group_names().await? {
            log.remove_all(&format!("{groups}{group}")).await?;
        }
        log.remove_all(&groups).await?;
        for partition in 0..self.partitions() {
            let lane = self.0.lanes.name(partition);
            log.remove_all(&format!("{lane}#cargo")).await?;
            log.remove_all(&lane).await?;
        }
        if let Some(shelf) = &self.0.lanes.shelf {
            shelf.clear().await?;
        }
        Ok(())
    }
}

/// The first segment that is still there.
pub(crate) async fn first_segment(lane: &SequencedLane) -> Result<Option<millpond_lanes::Segment>> {
    let mut next = Some(lane.scan()?.limit(1));
    while let Some(scan) = next {
        let page = lane.page(scan).await?;
        if let Some(segment) = page.segments.into_iter().next() {
            return Ok(Some(segment));
        }
        // Husks stood there: look at more of them at a time.
        next = page.next.map(|scan| scan.limit(millpond_store::limits::PAGE_ITEMS_MAX));
    }
    Ok(None)
}
