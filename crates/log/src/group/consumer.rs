//! One worker of a group.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millpond_store::{
    Environment, Expect, Monotonic, Partition, Query, SortKey, SortRange, Store, StoreError,
    Version, Write, collect,
};

use super::balance::{Claim, Plan, plan};
use super::item::{GroupConfig, GroupItem};
use super::lease::{self, Lease};
use super::worker::{self, Pulse, Sightings};
use crate::error::{LogError, Result};
use crate::limits::{
    BEATS_PER_LEASE, LEASE_CONFLICTS_MAX, LEASE_RANGE, PARTITIONS_MAX, WORKERS_MAX,
};
use crate::log::contended;
use crate::name::{GroupName, WorkerId};
use crate::read::{Batch, Cursor, Gap};
use crate::seek::Seek;
use crate::topic::Topic;

/// How a worker takes part in a group.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// How long a worker may be silent before others take its partitions, 1 s to 1 h. All workers of a group should
    /// agree on it. Default: 30 s.
    pub lease: Duration,
    /// What the group is made with, if it is not there yet.
    pub group: GroupConfig,
    /// What the worker's id begins with, so that people know it: up to 100 letters, digits, dots, underscores and
    /// dashes. Default: nothing.
    pub name: Option<String>,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), group: GroupConfig::default(), name: None }
    }
}

/// The right to read a partition for a group. A later holder has a greater epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assignment {
    /// The partition.
    pub partition: u32,
    /// The lease's epoch: a fencing token for what the worker does elsewhere.
    pub epoch: u64,
}

/// What a call of [`balance`](Consumer::balance) changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Balance {
    /// Partitions that were taken.
    pub taken: Vec<Assignment>,
    /// Partitions that were given up for others.
    pub released: Vec<u32>,
    /// Partitions that live workers hold.
    pub others: Vec<u32>,
}

/// One worker of a group. [`run`](Self::run) does everything; the other methods are its parts, for who wants a loop
/// of his own: [`beat`](Self::beat) and [`balance`](Self::balance) regularly, three times within a lease,
/// [`poll`](Self::poll) and [`checkpoint`](Self::checkpoint) in between, and [`leave`](Self::leave) at the end.
///
/// Keep one across Lambda invocations: what it has seen of other workers' heartbeats is in it.
#[derive(Debug, Clone)]
pub struct Consumer(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub topic: Topic,
    pub name: GroupName,
    pub worker: WorkerId,
    pub lease: Duration,
    /// The store's partition of leases and workers.
    pub place: Partition,
    group: Mutex<GroupItem>,
    pulse: Pulse,
    held: Mutex<BTreeMap<u32, Held>>,
    sightings: Mutex<Sightings>,
    pub(super) growth_seen: Mutex<Option<(u32, Monotonic)>>,
}

#[derive(Debug, Clone)]
struct Held {
    lease: Lease,
    cursor: Cursor,
    /// How far it was read, before it was rewound perhaps.
    read: u64,
}

/// The group as it was found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub leases: BTreeMap<u32, Lease>,
    pub beats: BTreeMap<WorkerId, u64>,
    pub versions: BTreeMap<WorkerId, Version>,
}

impl Topic {
    /// Joins a group, and makes it if need be.
    ///
    /// # Errors
    /// [`LogError::Invalid`] for a name or option that cannot be, [`LogError::UnknownTopic`] when the topic is gone,
    /// and as the store's.
    pub async fn consumer(&self, group: &str, options: ConsumerOptions) -> Result<Consumer> {
        let (shortest, longest) = LEASE_RANGE;
        if !(shortest..=longest).contains(&options.lease) {
            let problem = format!("is {:?}: from {shortest:?} to {longest:?}", options.lease);
            return Err(LogError::invalid("lease", problem));
        }
        let worker = WorkerId::fresh(options.name.as_deref(), self.environment().unique_id())?;
        self.recent().await?;
        let group = self.make_group(&GroupName::new(group)?, &options.group).await?;
        let consumer = Consumer(Arc::new(Shared {
            topic: self.clone(),
            name: group.name.clone(),
            worker,
            lease: options.lease,
            place: self.leases_partition(&group)?,
            group: Mutex::new(group),
            pulse: Pulse::new(options.lease),
            held: Mutex::default(),
            sightings: Mutex::default(),
            growth_seen: Mutex::default(),
        }));
        consumer.beat().await?;
        Ok(consumer)
    }

    pub(super) fn leases_partition(&self, group: &GroupItem) -> Result<Partition> {
        let name = format!("{}{}/{:016x}", self.groups_partition(), group.name, group.incarnation);
        Ok(Partition::new(name)?)
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.0.log.0.store.as_ref()
    }
}

impl Consumer {
    /// This worker's id.
    #[must_use]
    pub fn worker(&self) -> &WorkerId {
        &self.0.worker
    }

    /// What tells its topic apart from others that had, or will have, its name.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.0.topic.item().incarnation
    }

    /// What this worker holds, as far as it knows.
    #[must_use]
    pub fn held(&self) -> Vec<Assignment> {
        let held = self.0.held();
        let assignment =
            |held: &Held| Assignment { partition: held.lease.partition, epoch: held.lease.epoch };
        held.values().map(assignment).collect()
    }

    /// Says that this worker lives: one small write for all of its leases. After a silence of three quarters of a
    /// lease it counts its leases as lost.
    ///
    /// # Errors
    /// As the store's.
    pub async fn beat(&self) -> Result<()> {
        let shared = &self.0;
        let (environment, began) = (shared.environment(), shared.now());
        if shared.pulse.remaining(began).is_none() {
            shared.held().clear();
        }
        let beat = shared.pulse.next_beat();
        let put = worker::put(&shared.place, &shared.worker, beat, environment)?;
        shared.topic.store().write(put).await?;
        shared.pulse.beaten(beat, began);
        Ok(())
    }

    /// For how long this worker may trust its leases without another [`beat`](Self::beat); nothing when it may not.
    #[must_use]
    pub fn trusted(&self) -> Option<Duration> {
        self.0.trusted()
    }

    /// How often [`beat`](Self::beat) and [`balance`](Self::balance) should be called.
    #[must_use]
    pub fn beat_interval(&self) -> Duration {
        self.0.lease / BEATS_PER_LEASE
    }

    /// Looks at the group, takes what is this worker's share of what is free, and gives up what is over it.
    ///
    /// # Errors
    /// As the store's.
    pub async fn balance(&self) -> Result<Balance> {
        let (plan, survey, others) = self.0.plan().await?;
        self.0.remove_dead(&survey).await;
        let mut balance = Balance { others, ..Balance::default() };
        for partition in plan.take {
            balance.taken.extend(self.0.take(partition, survey.leases.get(&partition)).await?);
        }
        for partition in plan.give {
            if let Some(assignment) = self.held().into_iter().find(|a| a.partition == partition) {
                self.release(assignment).await?;
                balance.released.push(partition);
            }
        }
        Ok(balance)
    }

    /// The next records of a partition that this worker holds, up to `max`, each once within an assignment. It does
    /// not wait.
    ///
    /// # Errors
    /// [`LogError::LeaseLost`] when the partition is not this worker's any more, and as [`Topic::read`].
    pub async fn poll(&self, assignment: Assignment, max: usize) -> Result<Batch> {
        let shared = &self.0;
        if shared.pulse.remaining(shared.now()).is_none() {
            shared.forget(assignment);
        }
        let mut cursor = shared.find(assignment)?.cursor;
        let lane = shared.topic.lane(assignment.partition).await?;
        let from = cursor.next;
        let mut batch = shared.topic.read_at(&lane, assignment.partition, &mut cursor, max).await?;
        if batch.is_empty() {
            let latest = lane.tail().await?;
            if latest > from {
                // Something came in between, or everything was removed.
                batch = shared.topic.read_at(&lane, assignment.partition, &mut cursor, max).await?;
                if batch.is_empty() {
                    cursor = Cursor { next: latest, aligned: true };
                    let gap = Some(Gap { from, to: latest });
                    batch = Batch { gap, next: latest, ..batch };
                }
            }
        }
        shared.move_cursor(assignment, cursor)?;
        Ok(batch)
    }

    /// Says that everything before `next` is done. It is refused when another worker has the partition.
    ///
    /// # Errors
    /// [`LogError::LeaseLost`]; [`LogError::Invalid`] when `next` is before the last checkpoint or behind what was
    /// read; and as the store's.
    pub async fn checkpoint(&self, assignment: Assignment, next: u64) -> Result<()> {
        let held = self.0.find(assignment)?;
        let (checkpoint, read) = (held.lease.checkpoint, held.read);
        if next < checkpoint || next > read {
            let problem = format!("is {next}: from {checkpoint} (the last one) to {read} (read)");
            return Err(LogError::invalid("checkpoint", problem));
        }
        self.0
            .change(assignment, |lease| {
                if next > lease.checkpoint {
                    lease.checkpoint = next;
                    lease.fails = 0;
                }
            })
            .await?;
        Ok(())
    }

    /// Reads on from the last checkpoint, so that what came since then comes again.
    ///
    /// # Errors
    /// [`LogError::LeaseLost`].
    pub fn rewind(&self, assignment: Assignment) -> Result<()> {
        self.0.rewind(assignment)
    }

    /// Gives a partition up, so that another worker can take it at once.
    ///
    /// # Errors
    /// As the store's; that it was lost already is none.
    pub async fn release(&self, assignment: Assignment) -> Result<()> {
        let outcome = self.0.change(assignment, |lease| lease.owner = None).await;
        self.0.forget(assignment);
        match outcome {
            Err(LogError::LeaseLost { .. }) => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    /// Gives everything up and leaves the group.
    ///
    /// # Errors
    /// As the store's: then others take over after a lease.
    pub async fn leave(self) -> Result<()> {
        for assignment in self.held() {
            self.release(assignment).await?;
        }
        let gone = Write::delete(worker::key(&self.0.place, &self.0.worker)?, Expect::Any);
        Ok(self.0.topic.store().write(gone).await?)
    }
}

impl Shared {
    pub fn environment(&self) -> &Environment {
        self.topic.environment()
    }

    pub fn now(&self) -> Monotonic {
        self.environment().clock.monotonic()
    }

    pub fn group(&self) -> GroupItem {
        self.group.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_group(&self, group: GroupItem) {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = group;
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u32, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long the leases may still be trusted.
    pub fn trusted(&self) -> Option<Duration> {
        self.pulse.remaining(self.now())
    }

    fn find(&self, assignment: Assignment) -> Result<Held> {
        let Assignment { partition, epoch } = assignment;
        let held = self.held().get(&partition).filter(|held| held.lease.epoch == epoch).cloned();
        held.ok_or(LogError::LeaseLost { partition, epoch })
    }

    pub fn lease_of(&self, assignment: Assignment) -> Result<Lease> {
        self.find(assignment).map(|held| held.lease)
    }

    pub fn forget(&self, assignment: Assignment) {
        let mut held = self.held();
        if held.get(&assignment.partition).is_some_and(|h| h.lease.epoch == assignment.epoch) {
            held.remove(&assignment.partition);
        }
    }

    fn move_cursor(&self, assignment: Assignment, cursor: Cursor) -> Result<()> {
        let Assignment { partition, epoch } = assignment;
        match self.held().get_mut(&partition) {
            Some(held) if held.lease.epoch == epoch => {
                held.cursor = cursor;
                held.read = held.read.max(cursor.next);
                Ok(())
            }
            _ => Err(LogError::LeaseLost { partition, epoch }),
        }
    }

    /// Whether everything that was read is done.
    pub fn is_done_with(&self, assignment: Assignment) -> bool {
        self.find(assignment).is_ok_and(|held| held.lease.checkpoint >= held.read)
    }

    /// Reads on from the checkpoint.
    pub fn rewind(&self, assignment: Assignment) -> Result<()> {
        let next = self.lease_of(assignment)?.checkpoint;
        self.move_cursor(assignment, Cursor { next, aligned: false })
    }

    async fn items(&self, prefix: u8, most: usize) -> Result<Vec<millpond_store::Item>> {
        let range = SortRange::prefix(SortKey::new(vec![prefix])?);
        let mut query = Query::new(self.place.clone()).range(range);
        if prefix == lease::PREFIX {
            // What is stale here only leads to a conflict.
            query = query.relaxed();
        }
        Ok(collect(self.topic.store(), query, most).await?)
    }

    pub async fn survey(&self) -> Result<Survey> {
        let mut survey = Survey::default();
        for item in self.items(worker::PREFIX, WORKERS_MAX).await? {
            let (worker, beat) = worker::decode(&item)?;
            survey.versions.insert(worker.clone(), item.version);
            survey.beats.insert(worker, beat);
        }
        for item in self.items(lease::PREFIX, PARTITIONS_MAX as usize).await? {
            let lease = Lease::decode(&item)?;
            survey.leases.insert(lease.partition, lease);
        }
        Ok(survey)
    }

    /// What to take and what to give, and what live workers hold.
    pub async fn plan(&self) -> Result<(Plan, Survey, Vec<u32>)> {
        let survey = self.survey().await?;
        self.follow_growth(&survey).await?;
        let now = self.now();
        let mut held = self.held();
        if self.pulse.remaining(now).is_none() {
            held.clear();
        }
        let mut sightings = self.sightings.lock().unwrap_or_else(PoisonError::into_inner);
        let owners = survey.leases.values().filter_map(|lease| lease.owner.clone());
        sightings.note(&survey.beats, owners, now);
        let claim = |partition: u32| {
            let lease = survey.leases.get(&partition);
            // Only a greater epoch says that it was lost: a stale answer has a smaller one.
            if let Some(mine) = held.get(&partition)
                && lease.is_none_or(|lease| lease.epoch <= mine.lease.epoch)
            {
                return Claim::Mine;
            }
            match lease.and_then(|lease| lease.owner.as_ref()) {
                Some(owner) if *owner == self.worker => Claim::Free,
                Some(owner) if sightings.is_live(owner, self.lease, now) => {
                    Claim::Others(owner.clone())
                }
                _ => Claim::Free,
            }
        };
        let partitions = self.group().partitions;
        let claims: Vec<_> = (0..partitions).map(|p| (p, claim(p))).collect();
        let workers = sightings.live(self.lease, now);
        for (partition, claim) in &claims {
            if *claim != Claim::Mine {
                held.remove(partition);
            }
        }
        let others = claims.iter().filter(|(_, claim)| matches!(claim, Claim::Others(_)));
        let others = others.map(|(partition, _)| *partition).collect();
        Ok((plan(&claims, &workers, &self.worker), survey, others))
    }

    /// Removes the heartbeats of workers that are dead and hold nothing any more.
    pub async fn remove_dead(&self, survey: &Survey) {
        let now = self.now();
        let is_dead = |worker: &WorkerId| {
            let sightings = self.sightings.lock().unwrap_or_else(PoisonError::into_inner);
            *worker != self.worker && !sightings.is_live(worker, self.lease, now)
        };
        let holds = |worker: &WorkerId| {
            survey.leases.values().any(|lease| lease.owner.as_ref() == Some(worker))
        };
        for (worker, version) in &survey.versions {
            if !is_dead(worker) || holds(worker) {
                continue;
            }
            let Ok(key) = worker::key(&self.place, worker) else { continue };
            let delete = Write::delete(key, Expect::Version(*version));
            if let Err(error) = self.topic.store().write(delete).await {
                // It lives after all, or the next one does it.
                tracing::debug!(%worker, %error, "a heartbeat stays");
            }
        }
    }

    /// Takes a partition, unless somebody else is faster.
    pub async fn take(&self, partition: u32, known: Option<&Lease>) -> Result<Option<Assignment>> {
        let version = self.environment().version();
        let owner = Some(self.worker.clone());
        let (lease, expect) = match known {
            Some(known) => {
                let epoch = known.epoch + 1;
                let lease = Lease { owner, epoch, version, ..known.clone() };
                (lease, Expect::Version(known.version))
            }
            None => {
                // Without a lease, the group is new to the partition, or was deleted.
                self.check_group().await?;
                let checkpoint = self.topic.seek(partition, Seek::Earliest).await?;
                let lease = Lease { partition, owner, epoch: 1, checkpoint, fails: 0, version };
                (lease, Expect::Absent)
            }
        };
        match self.topic.store().write(lease.put(&self.place, expect)?).await {
            Ok(()) => {}
            Err(StoreError::Conflict(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let assignment = Assignment { partition, epoch: lease.epoch };
        let cursor = Cursor { next: lease.checkpoint, aligned: false };
        self.held().insert(partition, Held { lease, cursor, read: cursor.next });
        Ok(Some(assignment))
    }

    /// Whether the group is still the one that this worker joined.
    async fn check_group(&self) -> Result<()> {
        let found = self.topic.group(self.name.as_str()).await?;
        if found.incarnation == self.group().incarnation {
            return Ok(());
        }
        let (topic, group) = (self.topic.name(), self.name.to_string());
        Err(LogError::UnknownGroup { topic, group, known: Vec::new() })
    }

    /// Changes a lease that this worker holds, whatever happened to an earlier attempt.
    pub async fn change(
        &self,
        assignment: Assignment,
        change: impl Fn(&mut Lease) + Send + Sync,
    ) -> Result<Lease> {
        let Assignment { partition, epoch } = assignment;
        for _ in 0..LEASE_CONFLICTS_MAX {
            let before = self.lease_of(assignment)?;
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(after);
            }
            after.version = self.environment().version();
            let put = after.put(&self.place, Expect::Version(before.version))?;
            let current = match self.topic.store().write(put).await {
                Ok(()) => Some(after.clone()),
                Err(StoreError::Conflict(conflicts)) => {
                    let current = conflicts.first().current.as_ref().map(Lease::decode);
                    current.transpose()?.filter(|lease| {
                        lease.epoch == epoch && lease.owner.as_ref() == Some(&self.worker)
                    })
                }
                Err(error) => return Err(error.into()),
            };
            let Some(current) = current else {
                self.forget(assignment);
                return Err(LogError::LeaseLost { partition, epoch });
            };
            if let Some(held) = self.held().get_mut(&partition)
                && held.lease.epoch == epoch
            {
                held.lease = current.clone();
            }
            if current.version == after.version {
                return Ok(after);
            }
        }
        Err(contended("lease").into())
    }
}
