//! Limits on what is handed out: how many messages a second are started, and how many run at a time, for a client's
//! queue as a whole and for each of its groups; by all processes together.
//!
//! They are asked for before a message is claimed. So one that must wait loses neither an attempt nor time.
//!
//! # Rate
//! Start times are evenly spaced. A process reserves a block of them by one compare-and-swap (as many as it is likely
//! to use, up to 100 ms of the rate) and uses each when its time has come. One that was not used within 10 ms (or
//! half the time between two, up to 50 ms; longer where bursts are allowed) is forgotten: so start times cannot bunch
//! up, and no window of a second or more has over 1 % (or one message, where that is more) and the burst too many
//! starts. Start times are reserved up to
//! 200 ms ahead, which is also how far the clocks of processes may differ without one waiting for the other.
//!
//! # Running
//! A process holds permits until a time, which is later than the end of every lease it gives out on them. A permit is
//! taken from the claim of a message until the message is settled here or its lease ends. It is then used for the next
//! message, and given back when there is none for half a second. Permits of a process that has crashed come free when
//! the leases that it gave out have ended. A message that is settled by another process than the one that received
//! it counts as running until its lease ends.
//!
//! # Rows
//! In the partition `<client>#limits`; each ends by itself once it says nothing any more.
//!
//! | sort key | attribute | |
//! |---|---|---|
//! | `all/rate`, `group/<hash>/rate` | `next_ns` | the first start time that is not reserved, in nanoseconds since 1970 |
//! | | `interval_ns` | the time between two starts |
//! | `all/running`, `group/<hash>/running` | `holders` | `<process>:<permits>@<until>` for each process, separated by spaces; until in milliseconds since 1970 |

mod grant;
mod limit;
mod rate;
mod running;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use grant::Grant;
use limit::{Bounds, Limit, Share};
use millpond_lanes::{Ground, Place};
use millpond_store::{Partition, Result as StoreResult, Timestamp};
use tokio::sync::Notify;

use crate::config::Limits;
use crate::error::Result;
use crate::limits::LIMITED_GROUPS_MAX;
use crate::rows::Rows;

/// Where a message stands: its lane, segment and slot.
type Spot = (u8, Place, usize);

/// Hands out the right to start messages.
#[derive(Debug)]
pub struct Limiter {
    rows: Arc<Rows>,
    partition: Partition,
    whole: Arc<Limit>,
    groups: Mutex<HashMap<u32, Arc<Limit>>>,
    live: Mutex<Live>,
    freed: Notify,
}

/// Messages in work here that count against a cap.
#[derive(Debug, Default)]
struct Live {
    spots: BTreeMap<Spot, (Timestamp, u32)>,
    ends: BTreeSet<(Timestamp, Spot)>,
}

impl Limiter {
    pub fn new(ground: &Ground, prefix: &str) -> StoreResult<Self> {
        let rows = Arc::new(Rows::new(&ground.store, &ground.environment));
        let partition = Partition::new(format!("{prefix}#limits"))?;
        Ok(Self {
            whole: Arc::new(Limit::new(&rows, &partition, "all")?),
            rows,
            partition,
            groups: Mutex::default(),
            live: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Asks for the right to start up to `want` messages now, on loan until `lease`.
    pub async fn ask(
        &self,
        limits: &Limits,
        want: usize,
        lease: Timestamp,
        now: Timestamp,
    ) -> Result<Grant<'_>> {
        if limits.is_none() {
            return Ok(Grant::unlimited(self, want));
        }
        self.forget_ended(now);
        let bounds = Bounds { rate: limits.rate, running: limits.running };
        let share = if bounds.is_none() {
            Share { count: want, ..Share::default() }
        } else {
            self.whole.ask(bounds, want, lease, now).await?
        };
        Ok(Grant::new(self, *limits, share, want, lease, now))
    }

    /// Waits until a message that counts against a cap has ended here.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    /// The lease of a message is about to be extended: its permit is held for as long.
    pub async fn extend(
        &self,
        limits: &Limits,
        spot: Spot,
        lease: Timestamp,
        now: Timestamp,
    ) -> Result<()> {
        let group = {
            let mut live = self.live();
            let Some((until, group)) = live.spots.get(&spot).copied() else { return Ok(()) };
            live.ends.remove(&(until, spot));
            live.ends.insert((lease, spot));
            live.spots.insert(spot, (lease, group));
            group
        };
        if let Some(cap) = limits.running {
            self.whole.extend(cap as usize, lease, now).await?;
        }
        if let Some(cap) = limits.group_running {
            self.group(group)?.extend(cap as usize, lease, now).await?;
        }
        Ok(())
    }

    /// A message is no longer in work.
    pub fn ended(&self, spot: Spot) {
        let found = {
            let mut live = self.live();
            let found = live.spots.remove(&spot);
            if let Some((until, _)) = found {
                live.ends.remove(&(until, spot));
            }
            found
        };
        if let Some((_, group)) = found {
            self.free(group);
        }
    }

    /// Gives back what is not in use, as on the end of a process.
    pub async fn give_idle_back(&self) -> Result<()> {
        self.whole.release_idle().await?;
        let groups: Vec<_> = self.lock_groups().values().cloned().collect();
        for group in groups {
            group.release_idle().await?;
        }
        Ok(())
    }

    fn free(&self, group: u32) {
        self.whole.ended();
        let group = self.lock_groups().get(&group).cloned();
        if let Some(group) = group {
            group.ended();
        }
        self.freed.notify_one();
    }

    /// Messages whose leases have ended are no longer in work.
    fn forget_ended(&self, now: Timestamp) {
        loop {
            let ended = {
                let mut live = self.live();
                match live.ends.first().copied().filter(|(until, _)| *until <= now) {
                    Some((until, spot)) => {
                        live.ends.remove(&(until, spot));
                        live.spots.remove(&spot)
                    }
                    None => return,
                }
            };
            if let Some((_, group)) = ended {
                self.free(group);
            }
        }
    }

    /// A message is in work until its lease ends or it is settled.
    fn runs(&self, spot: Spot, until: Timestamp, group: u32) {
        let before = {
            let mut live = self.live();
            live.ends.insert((until, spot));
            let before = live.spots.insert(spot, (until, group));
            if let Some((earlier, _)) = before.filter(|(earlier, _)| *earlier != until) {
                live.ends.remove(&(earlier, spot));
            }
            before
        };
        // It was in work here before, and that lease has ended.
        if let Some((_, group)) = before {
            self.free(group);
        }
    }

    fn group(&self, group: u32) -> StoreResult<Arc<Limit>> {
        let mut groups = self.lock_groups();
        if let Some(limit) = groups.get(&group) {
            return Ok(Arc::clone(limit));
        }
        if groups.len() >= LIMITED_GROUPS_MAX {
            groups.retain(|_, limit| Arc::strong_count(limit) > 1 || !limit.is_idle());
        }
        let limit = Limit::new(&self.rows, &self.partition, &format!("group/{group:08x}"))?;
        let limit = Arc::new(limit);
        groups.insert(group, Arc::clone(&limit));
        Ok(limit)
    }

    fn lock_groups(&self) -> MutexGuard<'_, HashMap<u32, Arc<Limit>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
