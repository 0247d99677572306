//! The right to start messages, while they are being claimed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millpond_lanes::Place;
use millpond_store::Timestamp;

use super::Limiter;
use super::limit::{Bounds, Limit, Share};
use crate::config::Limits;
use crate::error::Result;

/// The right to start messages. What is not used may be used by others once this is dropped.
#[derive(Debug)]
pub struct Grant<'a> {
    limiter: &'a Limiter,
    total: usize,
    terms: Option<Terms>,
    held: Mutex<Held>,
}

#[derive(Debug, Clone, Copy)]
struct Terms {
    limits: Limits,
    want: usize,
    lease: Timestamp,
    now: Timestamp,
}

#[derive(Debug, Default)]
struct Held {
    whole: Share,
    groups: HashMap<u32, (Arc<Limit>, Share)>,
    started: usize,
    /// When a group may start more, of those that were refused.
    group_wake: Option<Timestamp>,
}

impl<'a> Grant<'a> {
    pub(super) fn unlimited(limiter: &'a Limiter, want: usize) -> Self {
        Self { limiter, total: want, terms: None, held: Mutex::default() }
    }

    pub(super) fn new(
        limiter: &'a Limiter,
        limits: Limits,
        whole: Share,
        want: usize,
        lease: Timestamp,
        now: Timestamp,
    ) -> Self {
        let total = whole.count;
        let held = Mutex::new(Held { whole, ..Held::default() });
        Self { limiter, total, terms: Some(Terms { limits, want, lease, now }), held }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many messages may be started.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// When more could be started, if limits are why there were no more.
    pub fn wake(&self) -> Option<Timestamp> {
        let terms = self.terms?;
        let held = self.held();
        let whole =
            held.whole.wake.filter(|_| held.started >= self.total && self.total < terms.want);
        whole.into_iter().chain(held.group_wake).min()
    }

    /// How many of each group may be started, of those that wait, in this order and `most` in all; nothing when
    /// groups are not limited.
    pub async fn groups(
        &self,
        waiting: &[(u32, usize)],
        most: usize,
    ) -> Result<Option<HashMap<u32, usize>>> {
        let Some(Terms { limits, lease, now, .. }) = self.terms else { return Ok(None) };
        let bounds = Bounds { rate: limits.group_rate, running: limits.group_running };
        if bounds.is_none() {
            return Ok(None);
        }
        let mut granted = HashMap::new();
        let mut left = most;
        for (group, count) in waiting.iter().filter(|(_, count)| *count > 0) {
            if left == 0 {
                break;
            }
            let limit = self.limiter.group(*group)?;
            let share = limit.ask(bounds, left.min(*count), lease, now).await?;
            left -= share.count;
            granted.insert(*group, share.count);
            self.keep(*group, limit, share);
        }
        Ok(Some(granted))
    }

    fn keep(&self, group: u32, limit: Arc<Limit>, share: Share) {
        let mut held = self.held();
        let wake = share.wake;
        held.group_wake = held.group_wake.into_iter().chain(wake).min();
        match held.groups.get_mut(&group) {
            Some((_, known)) => known.add(share),
            None => {
                held.groups.insert(group, (limit, share));
            }
        }
    }

    /// These messages (lane, segment, slot and group) are in work until their lease ends or they are settled.
    pub fn started(
        &self,
        messages: impl Iterator<Item = (u8, Place, usize, u32)>,
        until: Timestamp,
    ) {
        let Some(Terms { limits, now, .. }) = self.terms else { return };
        for (lane, segment, slot, group) in messages {
            {
                let mut held = self.held();
                held.started += 1;
                self.limiter.whole.started(&mut held.whole, now);
                if let Some((limit, share)) = held.groups.get_mut(&group) {
                    limit.started(share, now);
                }
            }
            if limits.running.is_some() || limits.group_running.is_some() {
                self.limiter.runs((lane, segment, slot), until, group);
            }
        }
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        if self.terms.is_none() {
            return;
        }
        let held = std::mem::take(&mut *self.held());
        self.limiter.whole.give_back(held.whole);
        for (limit, share) in held.groups.into_values() {
            limit.give_back(share);
        }
    }
}
