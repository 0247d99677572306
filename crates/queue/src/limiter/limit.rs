//! The limits of one scope: a client's whole queue, or one of its groups.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millpond_store::{Key, Partition, Result, SortKey, StoreError, Timestamp};

use super::rate::{Pace, Run, Slots, reserve};
use super::running::{Asked, Holder, Permits, acquire, give_back};
use crate::config::Rate;
use crate::limits::{PERMIT_IDLE_MAX, RATE_BLOCK};
use crate::rows::{Known, Rows};

/// What applies to a scope.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub rate: Option<Rate>,
    pub running: Option<u32>,
}

impl Bounds {
    pub const fn is_none(&self) -> bool {
        self.rate.is_none() && self.running.is_none()
    }
}

/// The right to start messages of a scope. What is not used is to be given back.
#[derive(Debug, Default)]
pub struct Share {
    pub count: usize,
    pub(super) slots: Vec<Run>,
    pub(super) permits: usize,
    /// When to ask for more, when there were fewer than asked for.
    pub wake: Option<Timestamp>,
}

impl Share {
    /// Takes another share in.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.slots.extend(other.slots);
        self.permits += other.permits;
        self.wake = other.wake;
    }
}

/// A scope's limits, and what this process has of them.
#[derive(Debug)]
pub struct Limit {
    rows: Arc<Rows>,
    rate_key: Key,
    running_key: Key,
    state: Mutex<State>,
    /// One at a time reserves start times, and one at a time asks for permits.
    rate_turn: Arc<tokio::sync::Mutex<()>>,
    running_turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    slots: Slots,
    rate_row: Known,
    permits: Permits,
    running_row: Known,
    /// Whether somebody waits to give idle permits back.
    gives_back: bool,
}

impl Limit {
    pub fn new(rows: &Arc<Rows>, partition: &Partition, scope: &str) -> Result<Self> {
        let key = |what: &str| {
            let sort = SortKey::new(format!("{scope}/{what}").into_bytes())?;
            Ok::<_, StoreError>(Key::of(partition.clone(), sort))
        };
        Ok(Self {
            rows: Arc::clone(rows),
            rate_key: key("rate")?,
            running_key: key("running")?,
            state: Mutex::default(),
            rate_turn: Arc::default(),
            running_turn: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the right to start up to `want` messages now, on loan until `lease`.
    pub async fn ask(
        self: &Arc<Self>,
        bounds: Bounds,
        want: usize,
        lease: Timestamp,
        now: Timestamp,
    ) -> Result<Share> {
        let mut share = Share { count: want, ..Share::default() };
        if let Some(rate) = bounds.rate {
            let pace = Pace::of(rate);
            share.slots = self.take_slots(pace, want, now).await?;
            share.count = share.slots.iter().map(Run::count).sum();
            if share.count < want {
                share.wake = self.state().slots.next();
            }
        }
        if let Some(cap) = bounds.running
            && share.count > 0
        {
            let cap = cap as usize;
            match self.take_permits(share.count, cap, lease, now).await {
                Ok(permits) => share.permits = permits,
                Err(error) => {
                    self.give_back(share);
                    return Err(error);
                }
            }
            if share.permits < share.count {
                share.count = share.permits;
                share.wake = Some(now.plus(self.state().permits.refused()));
            } else {
                self.state().permits.granted();
            }
        }
        Ok(share)
    }

    /// Takes start times that have come, and reserves more where there are few.
    async fn take_slots(
        self: &Arc<Self>,
        pace: Pace,
        want: usize,
        now: Timestamp,
    ) -> Result<Vec<Run>> {
        let (taken, is_low) = {
            let mut state = self.state();
            (state.slots.take(want, pace, now), state.slots.is_low(now))
        };
        if !taken.is_empty() {
            if is_low && let Ok(turn) = Arc::clone(&self.rate_turn).try_lock_owned() {
                let limit = Arc::clone(self);
                // One request, on its own: who was granted something need not wait for what comes later.
                tokio::spawn(async move {
                    if let Err(error) = limit.reserve(pace, 1, now).await {
                        tracing::debug!(%error, "no start times were reserved ahead");
                    }
                    drop(turn);
                });
            }
            return Ok(taken);
        }
        if self.state().slots.next().is_some_and(|next| next > now) {
            return Ok(taken);
        }
        let turn = self.rate_turn.lock().await;
        // Another may have reserved some while this one waited for its turn.
        let taken = self.state().slots.take(want, pace, now);
        if taken.is_empty() {
            if self.state().slots.next().is_none_or(|next| next <= now) {
                self.reserve(pace, want, now).await?;
            }
            drop(turn);
            return Ok(self.state().slots.take(want, pace, now));
        }
        drop(turn);
        Ok(taken)
    }

    async fn reserve(&self, pace: Pace, want: usize, now: Timestamp) -> Result<()> {
        let (known, count) = {
            let mut state = self.state();
            (state.rate_row.take(), state.slots.block(want, pace, now))
        };
        let plan = |row: Option<&_>| reserve(row, pace, count, now);
        let (answer, row) = self.rows.change(&self.rate_key, known, plan).await?;
        let mut state = self.state();
        state.rate_row = Some(row);
        match answer {
            Ok(run) => state.slots.reserved(run),
            // Those who are refused at the same time do not come back at the same time.
            Err(until) => {
                let spread = u64::try_from(RATE_BLOCK.as_millis()).unwrap_or(u64::MAX);
                let millis = self.rows.environment.rng.below(spread);
                state.slots.full_until = Some(until.plus(Duration::from_millis(millis)));
            }
        }
        Ok(())
    }

    /// Takes permits: those that are there, then those that nobody holds.
    async fn take_permits(
        &self,
        want: usize,
        cap: usize,
        lease: Timestamp,
        now: Timestamp,
    ) -> Result<usize> {
        let taken = self.state().permits.take(want, cap, lease);
        if taken == want {
            return Ok(taken);
        }
        let turn = self.running_turn.lock().await;
        let more = want - taken;
        let asked = self.acquire(cap, more, lease, now).await;
        drop(turn);
        match asked {
            Ok(()) => Ok(taken + self.state().permits.take(more, cap, lease)),
            Err(error) => {
                self.state().permits.unused(taken);
                Err(error)
            }
        }
    }

    async fn acquire(
        &self,
        cap: usize,
        more: usize,
        lease: Timestamp,
        now: Timestamp,
    ) -> Result<()> {
        let (known, in_use) = {
            let mut state = self.state();
            (state.running_row.take(), state.permits.busy())
        };
        let asked = Asked { process: self.rows.process, cap, more, in_use, lease, now };
        let plan = |row: Option<&_>| acquire(row, asked);
        let (own, row) = self.rows.change(&self.running_key, known, plan).await?;
        self.learned(own, row);
        Ok(())
    }

    fn learned(&self, own: Holder, row: Option<millpond_store::Item>) {
        let mut state = self.state();
        state.permits.learned(own);
        state.running_row = Some(row);
    }

    /// Holds permits for as long as a message whose lease is extended until then.
    pub async fn extend(&self, cap: usize, lease: Timestamp, now: Timestamp) -> Result<()> {
        if !self.state().permits.is_short_of(lease) {
            return Ok(());
        }
        let _turn = self.running_turn.lock().await;
        if self.state().permits.is_short_of(lease) {
            self.acquire(cap, 0, lease, now).await?;
        }
        Ok(())
    }

    /// A message is in work from now on.
    pub fn started(self: &Arc<Self>, share: &mut Share, now: Timestamp) {
        share.count = share.count.saturating_sub(1);
        let mut state = self.state();
        if let Some(run) = share.slots.iter_mut().find(|run| run.count() > 0) {
            run.use_one();
            state.slots.started(now);
        }
        if share.permits > 0 {
            share.permits -= 1;
            state.permits.started();
        }
    }

    /// What of a share was not used may be used later.
    pub fn give_back(self: &Arc<Self>, share: Share) {
        let mut state = self.state();
        state.slots.give_back(share.slots);
        state.permits.unused(share.permits);
        drop(state);
        self.give_idle_back();
    }

    /// A message is no longer in work.
    pub fn ended(self: &Arc<Self>) {
        self.state().permits.ended();
        self.give_idle_back();
    }

    /// Gives permits back to others when they were not used for a while.
    fn give_idle_back(self: &Arc<Self>) {
        {
            let mut state = self.state();
            if state.gives_back || !state.permits.is_idle() {
                return;
            }
            state.gives_back = true;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let limit = Arc::clone(self);
        // On its own, and soon over: whoever used the permits last may be gone by then.
        runtime.spawn(async move {
            limit.rows.environment.clock.sleep(PERMIT_IDLE_MAX).await;
            limit.state().gives_back = false;
            if let Err(error) = limit.release_idle().await {
                tracing::debug!(%error, "idle permits are kept until they end");
            }
        });
    }

    /// Gives permits back that are not used now.
    pub async fn release_idle(&self) -> Result<()> {
        let _turn = self.running_turn.lock().await;
        let (known, keep) = {
            let mut state = self.state();
            if !state.permits.is_idle() {
                return Ok(());
            }
            let keep = state.permits.busy();
            // Nobody takes what is about to be given back.
            state.permits.hold_only(keep);
            (state.running_row.take(), keep)
        };
        let (process, now) = (self.rows.process, self.rows.environment.now());
        let plan = |row: Option<&_>| give_back(row, process, keep, now);
        let (own, row) = self.rows.change(&self.running_key, known, plan).await?;
        self.learned(own, row);
        Ok(())
    }

    /// Whether nothing would be lost by forgetting it.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        state.permits.busy() == 0 && !state.permits.is_idle()
    }
}
