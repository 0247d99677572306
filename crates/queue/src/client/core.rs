//! What all handles of one client share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millpond_lanes::{LaneConfig, Message as LaneMessage, Place, Segment};
use millpond_store::{Attributes, Expect, Result as StoreResult, StoreError, Timestamp, Write};
use tokio::sync::OnceCell;

use super::bodies::Bodies;
use super::edit::Pending;
use super::loose::LooseView;
use super::maintain::Pass;
use super::standing::Standing;
use super::strict::StrictView;
use super::totals::OwnRow;
use crate::config::QueueConfig;
use crate::counters::{Counters, Event};
use crate::error::Result;
use crate::lane::QueueLane;
use crate::limiter::Limiter;
use crate::names::ClientId;
use crate::queue::QueueCore;
use crate::receipt::Signer;
use crate::time::SteadyTime;
use crate::view::SegmentView;

/// A client's lanes and what is known of them.
#[derive(Debug)]
pub struct ClientCore {
    pub queue: Arc<QueueCore>,
    pub id: ClientId,
    pub signer: Signer,
    pub time: SteadyTime,
    pub counters: Counters,
    pub limiter: Limiter,
    lanes: Mutex<Lanes>,
    views: Views,
    pub(super) edits: Mutex<HashMap<(u8, Place), Vec<Pending>>>,
    pub(super) bodies: Bodies,
    pub(super) standing: Mutex<Standing>,
    pub(super) pass: Mutex<Pass>,
    pub(super) own_row: Mutex<OwnRow>,
    /// Who waits for messages: one at a time looks, in the order they came.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// Tells who waits that something was freed from here: the store's own hint may come before it is known here.
    pub(super) freed: tokio::sync::Notify,
    registered: OnceCell<()>,
    prefix: String,
}

/// What is known of each lane.
#[derive(Debug)]
pub enum Views {
    Loose(Vec<Mutex<LooseView>>),
    Strict(Vec<Mutex<StrictView>>),
}

#[derive(Debug)]
struct Lanes {
    all: Arc<[QueueLane]>,
    retention: Duration,
}

impl ClientCore {
    pub fn open(queue: &Arc<QueueCore>, id: ClientId) -> Result<Self> {
        let config = queue.known_config();
        let environment = queue.root.environment();
        let time = SteadyTime::new(environment);
        let now = time.now();
        let count = usize::from(config.lanes) * usize::from(config.priorities);
        let views = if config.strict.is_some() {
            Views::Strict((0..count).map(|_| Mutex::default()).collect())
        } else {
            Views::Loose((0..count).map(|_| Mutex::new(LooseView::new(now))).collect())
        };
        let prefix = client_prefix(queue, &id);
        let all = open_lanes(queue, &prefix, &config)?;
        let (counters, own_row) = queue.root.take_counts(&prefix);
        Ok(Self {
            signer: Signer::new(&queue.key, &prefix),
            time,
            counters,
            limiter: Limiter::new(&queue.root.ground, &prefix)?,
            prefix,
            lanes: Mutex::new(Lanes { all, retention: config.retention }),
            views,
            edits: Mutex::default(),
            bodies: Bodies::default(),
            standing: Mutex::default(),
            pass: Mutex::default(),
            own_row: Mutex::new(own_row),
            turn: tokio::sync::Mutex::default(),
            freed: tokio::sync::Notify::new(),
            registered: OnceCell::new(),
            queue: Arc::clone(queue),
            id,
        })
    }

    /// The beginning of all names that this client has in the store.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    pub const fn views(&self) -> &Views {
        &self.views
    }

    /// The lanes, opened anew when the retention has changed, which is written into each row.
    pub fn lanes(&self, config: &QueueConfig) -> Result<Arc<[QueueLane]>> {
        let mut lanes = lock(&self.lanes);
        if lanes.retention != config.retention {
            lanes.all = open_lanes(&self.queue, self.prefix(), config)?;
            lanes.retention = config.retention;
        }
        Ok(Arc::clone(&lanes.all))
    }

    /// The lanes as they are, for what is in them.
    pub fn known_lanes(&self) -> Arc<[QueueLane]> {
        Arc::clone(&lock(&self.lanes).all)
    }

    /// Tells the list of clients of this one, once.
    pub async fn register(&self) -> Result<()> {
        let made = || async {
            let key = self.queue.client_key(&self.id)?;
            let store = self.queue.root.store();
            if store.get(&key).await?.is_none() {
                let attributes = Attributes::new().with("client", self.id.as_str());
                let version = self.queue.root.environment().version();
                match store.write(Write::put(key, attributes, Expect::Absent, version)).await {
                    Err(error) if !error.is_conflict() => return Err(error),
                    _ => {}
                }
            }
            Ok::<_, StoreError>(())
        };
        self.registered.get_or_try_init(made).await?;
        Ok(())
    }

    pub fn count(&self, event: Event, count: usize) {
        self.counters.add(event, count);
    }

    /// A row was read or written.
    pub fn saw(&self, lane: u8, view: SegmentView, now: Timestamp, by_us: bool) {
        match &self.views {
            Views::Loose(all) => {
                with(all, lane, |lane| lane.saw(view, now, by_us));
            }
            Views::Strict(all) => {
                with(all, lane, |lane| lane.saw(view, now, by_us));
            }
        }
    }

    /// A segment is finished.
    pub fn finished(&self, lane: u8, place: Place, now: Timestamp) {
        self.bodies.forget(lane, place);
        match &self.views {
            Views::Loose(all) => {
                with(all, lane, |lane| lane.finished(place, now));
            }
            Views::Strict(all) => {
                with(all, lane, |lane| lane.finished(place, now));
            }
        }
    }

    /// Wakes who waits when a group can be served: in a strict lane, what ends in one segment may free what is in another.
    pub fn tell_unlocked(&self, lane: u8) {
        if let Views::Strict(all) = &self.views
            && with(all, lane, |lane| lane.has_ready()).unwrap_or_default()
        {
            self.freed.notify_one();
        }
    }

    /// Something was appended from here.
    pub fn appended(&self, lane: u8, place: Place) {
        if let Views::Loose(all) = &self.views {
            with(all, lane, |lane| lane.appended(place));
        }
    }

    /// A segment's row as last seen from here.
    pub fn known(&self, lane: u8, place: Place) -> Option<SegmentView> {
        match &self.views {
            Views::Loose(all) => with(all, lane, |lane| lane.known(place).cloned()).flatten(),
            Views::Strict(all) => with(all, lane, |lane| lane.known(place).cloned()).flatten(),
        }
    }

    /// A segment's messages, from memory when they were read a moment ago.
    pub async fn load(&self, lane: u8, segment: &Segment) -> StoreResult<Arc<Vec<LaneMessage>>> {
        if let Some(messages) = self.bodies.get(lane, segment.place) {
            return Ok(messages);
        }
        let lanes = self.known_lanes();
        let lane_of = lanes.get(usize::from(lane)).ok_or_else(|| no_lane(lane))?;
        let messages = Arc::new(lane_of.load(segment).await?);
        self.bodies.keep(lane, segment.place, &messages);
        Ok(messages)
    }
}

impl Drop for ClientCore {
    /// What was counted and not stored yet is kept for the client's next handle.
    fn drop(&mut self) {
        let own_row =
            std::mem::take(&mut self.own_row).into_inner().unwrap_or_else(PoisonError::into_inner);
        if !own_row.has_stored(&self.counters.totals()) {
            let counters = std::mem::take(&mut self.counters);
            self.queue.root.keep_counts(&self.prefix, counters, own_row);
        }
    }
}

fn client_prefix(queue: &QueueCore, id: &ClientId) -> String {
    format!("{}/{}", queue.prefix(), id.escaped())
}

fn open_lanes(
    queue: &QueueCore,
    prefix: &str,
    config: &QueueConfig,
) -> StoreResult<Arc<[QueueLane]>> {
    let lane_config =
        LaneConfig { retention: Some(config.retention), rows_expire: false, ..LaneConfig::QUEUE };
    let (count, strict) = (config.lanes * config.priorities, config.strict.is_some());
    (0..count)
        .map(|number| {
            let name = format!("{prefix}/{number}");
            QueueLane::open(&queue.root.ground, &name, number, lane_config, strict)
        })
        .collect()
}

pub fn no_lane(lane: u8) -> StoreError {
    StoreError::invalid("lane", format!("{lane} is not one of this queue's"))
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `f` on the view of a lane.
pub fn with<V, T>(views: &[Mutex<V>], lane: u8, f: impl FnOnce(&mut V) -> T) -> Option<T> {
    views.get(usize::from(lane)).map(|view| f(&mut lock(view)))
}
