//! A worker's heartbeat: one small item for all of its leases.
//!
//! In the group's partition, sort key `w` and the worker's id: `n`, which every beat raises by one. Others judge a worker
//! by whether `n` changes, on their own monotonic clock; no two machines' clocks are ever compared, and so it does not
//! expire either: who finds a worker dead that holds nothing removes it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use millpond_store::{
    Attributes, Environment, Expect, Item, Key, Monotonic, Partition, SortKey, Write,
};

use crate::config::required;
use crate::error::{LogError, Result, number};
use crate::limits::LEASE_TRUSTED_PERCENT;
use crate::name::WorkerId;

/// The first byte of a worker's sort key.
pub(crate) const PREFIX: u8 = b'w';

pub(super) fn key(group: &Partition, worker: &WorkerId) -> Result<Key> {
    let mut sort = vec![PREFIX];
    sort.extend_from_slice(worker.as_str().as_bytes());
    Ok(Key::of(group.clone(), SortKey::new(sort)?))
}

pub(super) fn put(
    group: &Partition,
    worker: &WorkerId,
    beat: u64,
    environment: &Environment,
) -> Result<Write> {
    let attributes = Attributes::new().with("n", number(beat));
    Ok(Write::put(key(group, worker)?, attributes, Expect::Any, environment.version()))
}

pub(super) fn decode(item: &Item) -> Result<(WorkerId, u64)> {
    let read = || {
        let id = item.key.sort.as_bytes().strip_prefix(&[PREFIX])?;
        let id = WorkerId::new(std::str::from_utf8(id).ok()?).ok()?;
        Some((id, required(&item.attributes, "n")?))
    };
    read().ok_or_else(|| {
        LogError::corrupt(format!("worker {}", item.key), "its attributes cannot be read")
    })
}

/// What a worker has seen of others' heartbeats, and when it last saw them change.
#[derive(Debug, Default)]
pub(super) struct Sightings(BTreeMap<WorkerId, (Option<u64>, Monotonic)>);

impl Sightings {
    /// Takes note of the beats that are there now. `owners` are workers that hold leases, be their heartbeat there
    /// or not: one without is judged like one whose heart has stopped.
    pub fn note(
        &mut self,
        beats: &BTreeMap<WorkerId, u64>,
        owners: impl IntoIterator<Item = WorkerId>,
        now: Monotonic,
    ) {
        let mut seen = BTreeMap::new();
        let all = beats.keys().cloned().chain(owners);
        for worker in all {
            let beat = beats.get(&worker).copied();
            let since = match self.0.get(&worker) {
                Some((known, since)) if *known == beat => *since,
                _ => now,
            };
            seen.insert(worker, (beat, since));
        }
        self.0 = seen;
    }

    /// Whether a worker's heart has beaten within a lease, as far as has been seen.
    pub fn is_live(&self, worker: &WorkerId, lease: Duration, now: Monotonic) -> bool {
        self.0.get(worker).is_some_and(|(_, since)| now.since(*since) < lease)
    }

    /// Workers that count for the balance: live, and with a heartbeat.
    pub fn live(&self, lease: Duration, now: Monotonic) -> Vec<WorkerId> {
        let live = |(worker, (beat, _)): (&WorkerId, &(Option<u64>, Monotonic))| {
            (beat.is_some() && self.is_live(worker, lease, now)).then(|| worker.clone())
        };
        self.0.iter().filter_map(live).collect()
    }
}

/// A worker's own heartbeat, and until when it may trust its leases.
#[derive(Debug)]
pub(super) struct Pulse {
    lease: Duration,
    last: Mutex<(u64, Option<Monotonic>)>,
}

impl Pulse {
    pub const fn new(lease: Duration) -> Self {
        Self { lease, last: Mutex::new((0, None)) }
    }

    pub fn next_beat(&self) -> u64 {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).0 + 1
    }

    /// A beat that began at `began` is stored.
    pub fn beaten(&self, beat: u64, began: Monotonic) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (beat, Some(began));
    }

    /// For how long the leases may still be trusted; nothing when they may not.
    pub fn remaining(&self, now: Monotonic) -> Option<Duration> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).1?;
        let trusted = self.lease * LEASE_TRUSTED_PERCENT / 100;
        trusted.checked_sub(now.since(last)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_worker_is_live_while_its_counter_changes_as_seen_from_here() {
        let worker = WorkerId::new("w").unwrap();
        let mut sightings = Sightings::default();
        let beats = |n| BTreeMap::from([(worker.clone(), n)]);
        // However old the beat is, the first sight of it counts from now.
        sightings.note(&beats(7), [], at(100));
        assert!(sightings.is_live(&worker, LEASE, at(129)));
        assert!(!sightings.is_live(&worker, LEASE, at(130)));
        sightings.note(&beats(8), [], at(129));
        sightings.note(&beats(8), [], at(150));
        assert!(sightings.is_live(&worker, LEASE, at(158)));
        assert!(!sightings.is_live(&worker, LEASE, at(159)));
    }

    #[test]
    fn an_owner_without_a_heartbeat_is_given_a_lease_too() {
        let worker = WorkerId::new("w").unwrap();
        let mut sightings = Sightings::default();
        sightings.note(&BTreeMap::new(), [worker.clone()], at(0));
        assert!(
            sightings.is_live(&worker, LEASE, at(29)) && sightings.live(LEASE, at(29)).is_empty()
        );
        sightings.note(&BTreeMap::new(), [worker.clone()], at(29));
        assert!(!sightings.is_live(&worker, LEASE, at(30)));
    }

    #[test]
    fn a_pulse_ends_before_others_may_take_over() {
        let pulse = Pulse::new(LEASE);
        assert_eq!(pulse.remaining(at(0)), None);
        pulse.beaten(1, at(10));
        assert!(pulse.remaining(at(32)).is_some());
        assert_eq!(pulse.remaining(at(33)), None);
        assert_eq!(pulse.next_beat(), 2);
    }
}
