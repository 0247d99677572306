//! The status of messages as tasks: what is known of them while they wait, are worked on and after their end.

use bytes::Bytes;
use millpond_lanes::Place;
use millpond_store::{Item, Partition, Query, StoreError, Timestamp, UniqueId};

use super::core::ClientCore;
use super::edit::archive_key;
use super::inspect::Pages;
use crate::error::{QueueError, Result};
use crate::id::{MessageId, MessagePlace};
use crate::origin::Attempt;
use crate::state::{self, Slot};
use crate::view::SegmentView;

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// It waits.
    Pending,
    /// Somebody works on it.
    Taken,
    /// It ended well.
    Success,
    /// It ended badly.
    Failure,
}

/// What is known of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStatus {
    /// Its message.
    pub id: MessageId,
    /// Where it is in its life.
    pub state: TaskState,
    /// How often it was taken.
    pub attempts: u32,
    /// Who works on it, or did last, if said.
    pub worker: Option<String>,
    /// When it was sent.
    pub created: Timestamp,
    /// When it was taken for the first time.
    pub first_taken: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its result, when it ended well and said so.
    pub result: Option<Bytes>,
    /// Its last error.
    pub error: Option<String>,
    /// The last attempts, oldest first.
    pub history: Vec<Attempt>,
}

impl ClientCore {
    fn check_keeps_status(&self) -> Result<()> {
        if self.queue.known_config().status.is_some() {
            return Ok(());
        }
        Err(QueueError::invalid("status", "is not kept by this queue: configure `status`"))
    }

    /// The status of one task; nothing when it never was, or ended too long ago.
    pub async fn status(&self, id: &MessageId) -> Result<Option<TaskStatus>> {
        self.queue.config().await?;
        self.check_keeps_status()?;
        let lanes = self.known_lanes();
        let Some(lane) = lanes.get(usize::from(id.lane)) else { return Ok(None) };
        if let Some((segment, slot)) = lane.find(id.place).await? {
            let view = SegmentView::of(segment, &self.queue.known_config())?;
            return Ok(self.status_in(id.lane, &view, slot));
        }
        for ended in self.ended_near(id).await? {
            if let Some(status) = ended.status(id.lane).find(|status| status.id == *id) {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// Finished segments in which a task may be.
    async fn ended_near(&self, id: &MessageId) -> Result<Vec<Ended>> {
        let place = match id.place {
            MessagePlace::Slot(segment, _) => Place::Id(segment),
            MessagePlace::Number(number) => Place::Number(number),
        };
        let key = archive_key(self.prefix(), id.lane, place)?;
        let store = self.queue.root.store();
        if let Some(item) = store.get(&key).await? {
            return Ok(vec![Ended::read(&item)?]);
        }
        let MessagePlace::Number(_) = id.place else { return Ok(Vec::new()) };
        let query = Query::new(key.partition)
            .range(millpond_store::SortRange::to(key.sort))
            .reverse()
            .limit(1);
        let page = store.query(query).await?;
        Ok(page.items.iter().map(Ended::read).collect::<Result<_, _>>()?)
    }

    fn status_in(&self, lane: u8, view: &SegmentView, slot: usize) -> Option<TaskStatus> {
        let state = view.slot(slot)?;
        let id = MessageId::of(lane, view.place(), slot);
        let on_loan = state.lease().is_some_and(|lease| lease.until > self.now());
        describe(id, state, view.segment.appended, on_loan)
    }

    /// Tasks in a state, by age: the oldest first, or the newest. Up to `max`.
    pub async fn tasks(
        &self,
        state: TaskState,
        newest_first: bool,
        max: usize,
    ) -> Result<Vec<TaskStatus>> {
        self.queue.config().await?;
        self.check_keeps_status()?;
        let mut found = Vec::new();
        for (number, lane) in (0_u8..).zip(self.known_lanes().iter()) {
            let scan = lane.scan()?;
            let scan = if newest_first { scan.reverse() } else { scan };
            let mut pages = Pages::new(lane, scan);
            let mut here = Vec::new();
            while here.len() < max
                && let Some(page) = pages.next().await?
            {
                for segment in page.segments {
                    let view = SegmentView::of(segment, &self.queue.known_config())?;
                    let all = (0..view.slots().len())
                        .filter_map(|slot| self.status_in(number, &view, slot));
                    here.extend(all.filter(|status| status.state == state));
                }
            }
            if matches!(state, TaskState::Success | TaskState::Failure) {
                here.extend(self.ended_tasks(number, state, newest_first, max).await?);
            }
            found.extend(here);
        }
        found.sort_by_key(|status| (status.created, status.id));
        if newest_first {
            found.reverse();
        }
        found.truncate(max);
        Ok(found)
    }

    async fn ended_tasks(
        &self,
        lane: u8,
        state: TaskState,
        newest_first: bool,
        max: usize,
    ) -> Result<Vec<TaskStatus>> {
        let query = Query::new(Partition::new(format!("{}/{lane}#ended", self.prefix()))?);
        let mut next = Some(if newest_first { query.reverse() } else { query });
        let mut found = Vec::new();
        while let Some(query) = next.filter(|_| found.len() < max) {
            let page = self.queue.root.store().query(query).await?;
            next = page.next;
            for item in &page.items {
                let ended = Ended::read(item)?;
                found.extend(ended.status(lane).filter(|status| status.state == state));
            }
        }
        Ok(found)
    }
}

/// A finished segment, as it is kept.
struct Ended {
    place: Place,
    appended: Timestamp,
    slots: Vec<Slot>,
}

impl Ended {
    fn read(item: &Item) -> Result<Self, StoreError> {
        let corrupt =
            || StoreError::corrupt(format!("kept status {}", item.key), "it cannot be read");
        let sort = item.key.sort.as_bytes();
        let place = match (<[u8; 16]>::try_from(sort), <[u8; 8]>::try_from(sort)) {
            (Ok(id), _) => Place::Id(UniqueId::from_bytes(id)),
            (_, Ok(number)) => Place::Number(u64::from_be_bytes(number)),
            _ => return Err(corrupt()),
        };
        let number = |name| u64::try_from(item.attributes.number(name)?).map_err(|_| corrupt());
        let appended = Timestamp::from_millis(number("at")?);
        let count = usize::try_from(number("n")?).map_err(|_| corrupt())?;
        let bytes = item.attributes.bytes("st")?;
        let slots = state::decode(bytes, count, appended).ok_or_else(corrupt)?;
        Ok(Self { place, appended, slots })
    }

    fn status(&self, lane: u8) -> impl Iterator<Item = TaskStatus> {
        self.slots.iter().enumerate().filter_map(move |(slot, state)| {
            describe(MessageId::of(lane, self.place, slot), state, self.appended, false)
        })
    }
}

fn describe(id: MessageId, slot: &Slot, created: Timestamp, on_loan: bool) -> Option<TaskStatus> {
    let record = slot.record();
    let (state, ending) = match slot {
        // Expired, shed, moved or purged: not a task any more.
        Slot::Done => return None,
        Slot::Ended { ending, .. } if ending.success => (TaskState::Success, Some(ending)),
        Slot::Ended { ending, .. } => (TaskState::Failure, Some(ending)),
        Slot::Leased { .. } if on_loan => (TaskState::Taken, None),
        _ => (TaskState::Pending, None),
    };
    let worker = ending.map(|ending| &ending.worker).or(slot.lease().map(|lease| &lease.worker));
    let failed = ending.filter(|ending| !ending.success);
    let error = failed.map(|ending| String::from_utf8_lossy(&ending.result).into_owned());
    let last_error = record.map(|record| record.error.clone());
    Some(TaskStatus {
        id,
        state,
        attempts: record.map_or(0, |record| record.receives),
        worker: worker.filter(|worker| !worker.is_empty()).cloned(),
        created,
        first_taken: record.filter(|record| record.receives > 0).map(|record| record.first),
        ended: ending.map(|ending| ending.at),
        result: ending
            .filter(|ending| ending.success && !ending.result.is_empty())
            .map(|ending| ending.result.clone()),
        error: error.or(last_error).filter(|error| !error.is_empty()),
        history: record.map(|record| record.attempts.clone()).unwrap_or_default(),
    })
}
