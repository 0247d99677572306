//! Making, describing and moving groups.

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use millpond_store::{
    Expect, Partition, Query, SortKey, SortRange, StoreError, Timestamp, Write, collect,
};

use super::item::{GroupConfig, GroupItem, Poison, Start};
use super::lease::Lease;
use super::worker;
use crate::error::{LogError, Result};
use crate::limits::{LISTED_MAX, NAMES_IN_ERROR_MAX, PARTITIONS_AT_A_TIME, WORKERS_MAX};
use crate::log::contended;
use crate::name::GroupName;
use crate::seek::Seek;
use crate::topic::Topic;

/// Attempts at a change that others make too.
const CHANGES_MAX: u32 = 16;

/// A group, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name.
    pub name: String,
    /// What it was made with.
    pub config: GroupConfig,
    /// When it was made.
    pub made: Timestamp,
    /// Its place in each partition of the topic, in order.
    pub partitions: Vec<GroupPartition>,
    /// Workers that have neither left nor been found dead.
    pub workers: Vec<WorkerDescription>,
}

/// A worker of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerDescription {
    /// Its id.
    pub id: String,
    /// How often its heart has beaten: it lives while this rises.
    pub beats: u64,
}

/// A group's place in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPartition {
    /// The partition.
    pub partition: u32,
    /// The first offset that is not done.
    pub checkpoint: u64,
    /// The offset that the next record will have.
    pub latest: u64,
    /// Records that are not done.
    pub lag: u64,
    /// The worker that holds it, dead or alive.
    pub owner: Option<String>,
    /// The epoch of the lease; 0 while there was none.
    pub epoch: u64,
    /// Failed attempts at the record at the checkpoint.
    pub fails: u32,
}

impl Topic {
    /// The names of the topic's groups, in order.
    ///
    /// # Errors
    /// As the store's.
    pub async fn groups(&self) -> Result<Vec<String>> {
        Ok(self.group_items().await?.into_iter().map(|group| group.name.to_string()).collect())
    }

    /// The parts of the partition name that all items of each group are under.
    pub(crate) async fn group_names(&self) -> Result<Vec<String>> {
        let path = |group: GroupItem| format!("{}/{:016x}", group.name, group.incarnation);
        Ok(self.group_items().await?.into_iter().map(path).collect())
    }

    async fn group_items(&self) -> Result<Vec<GroupItem>> {
        let query = Query::new(Partition::new(self.groups_partition())?);
        let items = collect(self.store(), query, LISTED_MAX).await?;
        items.iter().map(GroupItem::decode).collect()
    }

    pub(super) async fn group(&self, name: &str) -> Result<GroupItem> {
        let name = GroupName::new(name)?;
        let key = GroupItem::key(&self.groups_partition(), &name)?;
        if let Some(item) = self.store().get(&key).await? {
            return GroupItem::decode(&item);
        }
        // The list only makes the error more helpful.
        let mut known = self.groups().await.unwrap_or_default();
        known.truncate(NAMES_IN_ERROR_MAX);
        let (topic, group) = (self.name(), name.to_string());
        Err(LogError::UnknownGroup { topic, group, known })
    }

    /// The group, made if it is not there. One that begins at the latest has its place in every partition before
    /// anybody can join it.
    pub(super) async fn make_group(
        &self,
        name: &GroupName,
        config: &GroupConfig,
    ) -> Result<GroupItem> {
        config.check()?;
        let topic = self.recent().await?;
        let environment = self.environment();
        let earliest = config.start == Start::Earliest;
        let partitions = match topic.grown_from.first().filter(|_| earliest) {
            Some(first) => *first,
            None => topic.config.partitions,
        };
        let made = GroupItem {
            name: name.clone(),
            incarnation: environment.rng.next_u64(),
            config: config.clone(),
            partitions,
            growth: None,
            made: environment.now(),
            pending: !earliest,
            version: environment.version(),
        };
        let key = GroupItem::key(&self.groups_partition(), name)?;
        let put = Write::put(key.clone(), made.attributes(), Expect::Absent, made.version);
        let group = match self.store().write(put).await {
            Ok(()) => made,
            Err(StoreError::Conflict(conflicts)) => match &conflicts.first().current {
                Some(item) => GroupItem::decode(item)?,
                None => self.group(name.as_str()).await?,
            },
            Err(error) => return Err(error.into()),
        };
        if !group.pending {
            return Ok(group);
        }
        self.place_at_latest(&group).await?;
        let version = environment.version();
        let ready = GroupItem { pending: false, version, ..group.clone() };
        let expect = Expect::Version(group.version);
        match self.store().write(Write::put(key, ready.attributes(), expect, version)).await {
            Ok(()) => Ok(ready),
            // Another worker has finished the same.
            Err(StoreError::Conflict(_)) => self.group(name.as_str()).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn place_at_latest(&self, group: &GroupItem) -> Result<()> {
        let place = self.leases_partition(group)?;
        let placed: Vec<_> = (0..group.partitions)
            .map(|partition| self.place_one_at_latest(&place, partition).boxed())
            .collect();
        stream::iter(placed).buffer_unordered(PARTITIONS_AT_A_TIME).try_collect().await
    }

    async fn place_one_at_latest(&self, place: &Partition, partition: u32) -> Result<()> {
        let checkpoint = self.seek(partition, Seek::Latest).await?;
        let version = self.environment().version();
        let lease = Lease { partition, owner: None, epoch: 0, checkpoint, fails: 0, version };
        match self.store().write(lease.put(place, Expect::Absent)?).await {
            // Made by an earlier attempt: its place is the earlier one.
            Ok(()) | Err(StoreError::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a group without joining it; one that is there stays as it is.
    ///
    /// # Errors
    /// As [`consumer`](Self::consumer).
    pub async fn create_group(&self, name: &str, config: &GroupConfig) -> Result<()> {
        self.make_group(&GroupName::new(name)?, config).await.map(|_| ())
    }

    /// How far a group has come.
    ///
    /// # Errors
    /// [`LogError::UnknownGroup`], and as the store's.
    pub async fn describe_group(&self, name: &str) -> Result<GroupDescription> {
        let partitions = self.refresh().await?.config.partitions;
        let group = self.group(name).await?;
        let place = self.leases_partition(&group)?;
        let partitions: Vec<_> = (0..partitions)
            .map(|partition| self.describe_lease(&place, partition).boxed())
            .collect();
        let partitions =
            stream::iter(partitions).buffered(PARTITIONS_AT_A_TIME).try_collect().await?;
        let range = SortRange::prefix(SortKey::new(vec![worker::PREFIX])?);
        let workers =
            collect(self.store(), Query::new(place.clone()).range(range), WORKERS_MAX).await?;
        let workers = workers.iter().map(|item| {
            let (id, beats) = worker::decode(item)?;
            Ok(WorkerDescription { id: id.to_string(), beats })
        });
        Ok(GroupDescription {
            name: group.name.to_string(),
            config: group.config,
            made: group.made,
            partitions,
            workers: workers.collect::<Result<_>>()?,
        })
    }

    async fn describe_lease(&self, place: &Partition, partition: u32) -> Result<GroupPartition> {
        let latest = self.seek(partition, Seek::Latest).await?;
        let lease = self.store().get(&Lease::key(place, partition)?).await?;
        let lease = lease.as_ref().map(Lease::decode).transpose()?;
        let checkpoint = match &lease {
            Some(lease) => lease.checkpoint,
            None => self.seek(partition, Seek::Earliest).await?,
        };
        Ok(GroupPartition {
            partition,
            checkpoint,
            latest,
            lag: latest.saturating_sub(checkpoint),
            epoch: lease.as_ref().map_or(0, |lease| lease.epoch),
            fails: lease.as_ref().map_or(0, |lease| lease.fails),
            owner: lease.and_then(|lease| lease.owner).map(|owner| owner.to_string()),
        })
    }

    /// Moves a group to a place in one partition, or in all of them. Whoever works there loses the lease, and what
    /// it has not checkpointed is not counted.
    ///
    /// # Errors
    /// [`LogError::UnknownGroup`], [`LogError::OutOfRange`] when a partition has no such place: then nothing was
    /// moved; and as the store's.
    pub async fn reset(&self, name: &str, partition: Option<u32>, place: Seek) -> Result<()> {
        let partitions = self.refresh().await?.config.partitions;
        let group = self.group(name).await?;
        let leases = self.leases_partition(&group)?;
        let chosen = match partition {
            Some(partition) => partition..partition + 1,
            None => 0..partitions,
        };
        let mut moves = Vec::new();
        for partition in chosen {
            moves.push((partition, self.seek(partition, place).await?));
        }
        for (partition, offset) in moves {
            self.move_lease(&leases, partition, offset).await?;
        }
        Ok(())
    }

    /// Moves a group behind everything that is there, also in partitions where nothing ever was.
    ///
    /// # Errors
    /// As [`reset`](Self::reset).
    pub async fn skip_to_end(&self, name: &str) -> Result<()> {
        self.reset(name, None, Seek::Latest).await
    }

    async fn move_lease(&self, place: &Partition, partition: u32, checkpoint: u64) -> Result<()> {
        let key = Lease::key(place, partition)?;
        for _ in 0..CHANGES_MAX {
            let current = self.store().get(&key).await?;
            let current = current.as_ref().map(Lease::decode).transpose()?;
            let expect = match &current {
                Some(lease) => Expect::Version(lease.version),
                None => Expect::Absent,
            };
            let epoch = current.map_or(0, |lease| lease.epoch) + 1;
            let version = self.environment().version();
            let moved = Lease { partition, owner: None, epoch, checkpoint, fails: 0, version };
            match self.store().write(moved.put(place, expect)?).await {
                Err(StoreError::Conflict(_)) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(contended("lease").into())
    }

    /// Changes what a group does with records that cannot be handled. Workers that run go on as before until they
    /// join anew.
    ///
    /// # Errors
    /// [`LogError::UnknownGroup`], and as the store's.
    pub async fn set_poison(&self, name: &str, poison: Poison) -> Result<()> {
        for _ in 0..CHANGES_MAX {
            let group = self.group(name).await?;
            let key = GroupItem::key(&self.groups_partition(), &group.name)?;
            let config = GroupConfig { poison: poison.clone(), ..group.config.clone() };
            config.check()?;
            let version = self.environment().version();
            let expect = Expect::Version(group.version);
            let after = GroupItem { config, version, ..group };
            match self.store().write(Write::put(key, after.attributes(), expect, version)).await {
                Err(StoreError::Conflict(_)) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(contended("group").into())
    }

    /// Forgets a group. Workers that run lose their leases, and end with [`LogError::UnknownGroup`].
    ///
    /// # Errors
    /// [`LogError::UnknownGroup`], and as the store's.
    pub async fn delete_group(&self, name: &str) -> Result<()> {
        let group = self.group(name).await?;
        let place = self.leases_partition(&group)?;
        self.0.log.remove_all(place.as_str()).await?;
        let key = GroupItem::key(&self.groups_partition(), &group.name)?;
        Ok(self.store().write(Write::delete(key, Expect::Any)).await?)
    }
}
