//! The cursor of a queue, the one small item that decides what has been delivered.
//!
//! Partition `NAME/q/QUEUE`, sort key `c`. Every attribute is a number unless it says otherwise, so that a stream
//! record of the item can be read by anyone.
//!
//! | attribute | meaning |
//! |---|---|
//! | `old`, `new` | the last number delivered before and after the write that made this version; −1 before number 0 |
//! | `epoch` | how often the cursor was set back; numbers strictly increase within an epoch |
//! | `base` | the number at which the epoch began |
//! | `start` | the queue's first number |
//! | `floor` | the first number whose message is still kept |
//! | `gaps` | gap records of this life, `ahead` of them not passed yet (missing when zero) |
//! | `lates` | late arrivals kept aside in this life (missing when zero) |
//! | `life` | how often the queue was reset (missing when zero) |
//! | `parked` | the number that is waited for, while the queue is parked |
//! | `reset_to` | the start number to be, while a reset is under way |
//! | `at` | when this version was written, ms since 1970 |
//! | `trail` | bytes: the versions before this one, 8 bytes each, latest first, at most eight |

use millpond_store::{
    Attributes, Environment, Expect, Item, Partition, StoreError, Timestamp, Version, Write,
};

use crate::advance::position;
use crate::error::Result;
use crate::item::{millis, natural, natural_or_zero, stored, timestamp};
use crate::limits::TRAIL_MAX;
use crate::names::{key, kind};

/// Where a queue is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The number that the queue waits for: everything before it was delivered or skipped.
    pub next: u64,
    /// How often the cursor was set back. Numbers strictly increase within an epoch.
    pub epoch: u64,
    /// The number at which the epoch began.
    pub base: u64,
    /// The queue's first number.
    pub start: u64,
    /// The first number whose message is still kept.
    pub floor: u64,
    /// Gap records of the queue.
    pub gaps: u64,
    /// Those of them that were declared and are not passed yet.
    pub gaps_ahead: u64,
    /// Late arrivals that were kept aside.
    pub lates: u64,
    /// How often the queue was reset.
    pub life: u64,
    /// The number whose absence parked the queue.
    pub parked: Option<u64>,
    /// The start number to be, while a reset is under way.
    pub reset_to: Option<u64>,
}

impl Cursor {
    pub(crate) const fn starting(start: u64) -> Self {
        Self {
            next: start,
            epoch: 0,
            base: start,
            start,
            floor: start,
            gaps: 0,
            gaps_ahead: 0,
            lates: 0,
            life: 0,
            parked: None,
            reset_to: None,
        }
    }

    /// The last number delivered or skipped, −1 before number 0.
    #[must_use]
    pub fn position(&self) -> i64 {
        position(self.next)
    }
}

/// A cursor and the version in which it is stored; none when the queue has not begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    pub(crate) cursor: Cursor,
    pub(crate) version: Option<Version>,
    trail: Vec<Version>,
    pub(crate) at: Timestamp,
}

/// What became of a write, judged by a later version of the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Applied,
    NotApplied,
    Unknown,
}

impl Stored {
    pub(crate) const fn absent(start: u64) -> Self {
        let at = Timestamp::from_millis(0);
        Self { cursor: Cursor::starting(start), version: None, trail: Vec::new(), at }
    }

    /// The write that makes this cursor `becomes`, and what will be stored then.
    pub(crate) fn replace(
        &self,
        partition: &Partition,
        environment: &Environment,
        becomes: Cursor,
    ) -> Result<(Write, Self)> {
        let mut trail: Vec<Version> = self.version.into_iter().collect();
        trail.extend(self.trail.iter().take(TRAIL_MAX - trail.len()));
        let version = environment.version();
        // A cursor that was set back begins anew: its record shows no movement.
        let old = if becomes.epoch == self.cursor.epoch { self.cursor.next } else { becomes.next };
        let made = Self { cursor: becomes, version: Some(version), trail, at: environment.now() };
        let expect = self.version.map_or(Expect::Absent, Expect::Version);
        let key = key(partition, kind::CURSOR, &[])?;
        Ok((Write::put(key, made.encode(old), expect, version), made))
    }

    fn encode(&self, old: u64) -> Attributes {
        let cursor = &self.cursor;
        let trail: Vec<u8> =
            self.trail.iter().flat_map(|version| version.to_u64().to_be_bytes()).collect();
        let mut attributes = Attributes::new()
            .with("old", position(old))
            .with("new", cursor.position())
            .with("epoch", stored(cursor.epoch))
            .with("base", stored(cursor.base))
            .with("start", stored(cursor.start))
            .with("floor", stored(cursor.floor))
            .with("at", millis(self.at))
            .with("trail", trail);
        let counts = [
            ("gaps", cursor.gaps),
            ("ahead", cursor.gaps_ahead),
            ("lates", cursor.lates),
            ("life", cursor.life),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            attributes.set(name, stored(count));
        }
        for (name, number) in [("parked", cursor.parked), ("reset_to", cursor.reset_to)] {
            if let Some(number) = number {
                attributes.set(name, stored(number));
            }
        }
        attributes
    }

    pub(crate) fn decode(item: &Item) -> Result<Self> {
        let damaged = |detail: &str| StoreError::corrupt(format!("item {}", item.key), detail);
        let next = item.attributes.number("new")?.checked_add(1);
        let next = next.and_then(|next| u64::try_from(next).ok());
        let optional = |name| item.attributes.get(name).map(|_| natural(item, name)).transpose();
        let cursor = Cursor {
            next: next.ok_or_else(|| damaged("its position is no number"))?,
            epoch: natural(item, "epoch")?,
            base: natural(item, "base")?,
            start: natural(item, "start")?,
            floor: natural(item, "floor")?,
            gaps: natural_or_zero(item, "gaps")?,
            gaps_ahead: natural_or_zero(item, "ahead")?,
            lates: natural_or_zero(item, "lates")?,
            life: natural_or_zero(item, "life")?,
            parked: optional("parked")?,
            reset_to: optional("reset_to")?,
        };
        let (chunks, rest) = item.attributes.bytes("trail")?.as_chunks::<8>();
        if !rest.is_empty() || cursor.next < cursor.start || cursor.floor > cursor.next {
            return Err(damaged("its parts do not fit together").into());
        }
        let trail = chunks.iter().map(|bytes| Version::from_u64(u64::from_be_bytes(*bytes)));
        Ok(Self {
            cursor,
            version: Some(item.version),
            trail: trail.collect(),
            at: timestamp(item, "at")?,
        })
    }

    /// What became of the write that would have made `version` over `expected`, seen from this later state.
    pub(crate) fn fate(&self, version: Version, expected: Option<Version>) -> Fate {
        let mut history = self.version.into_iter().chain(self.trail.iter().copied());
        let complete = self.trail.len() < TRAIL_MAX;
        if history.clone().any(|known| known == version) {
            return Fate::Applied;
        }
        match expected {
            Some(expected) if history.any(|known| known == expected) => Fate::NotApplied,
            _ if complete => Fate::NotApplied,
            _ => Fate::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::VirtualClock;
    use proptest::prelude::{any, proptest};

    use super::*;

    fn environment() -> Environment {
        Environment::simulated(VirtualClock::new(Timestamp::from_millis(1_000)), 1)
    }

    proptest! {
        #[test]
        fn cursors_survive_the_round_trip(
            numbers in any::<[u32; 8]>(),
            parked in any::<Option<u32>>(),
            reset_to in any::<Option<u32>>(),
        ) {
            let [epoch, base, start, floor, next, gaps, lates, life] = numbers.map(u64::from);
            let floor = start + floor;
            let cursor = Cursor {
                next: floor + next, epoch, base, start, floor, gaps, gaps_ahead: gaps / 2, lates, life,
                parked: parked.map(u64::from), reset_to: reset_to.map(u64::from),
            };
            let partition = Partition::new("p").unwrap();
            let (write, made) =
                Stored::absent(0).replace(&partition, &environment(), cursor).unwrap();
            assert_eq!(Stored::decode(&write.item().unwrap()).unwrap(), made);
        }
    }

    #[test]
    fn a_cursor_stays_within_one_write_unit() {
        let most = crate::limits::SEQ_MAX;
        let cursor = Cursor {
            next: most,
            epoch: most,
            base: most,
            start: most,
            floor: most,
            gaps: most,
            gaps_ahead: most,
            lates: most,
            life: most,
            parked: Some(most),
            reset_to: Some(most),
        };
        let longest = crate::limits::NAME_BYTES_MAX + 3 + crate::limits::QUEUE_BYTES_MAX;
        let partition = Partition::new("p".repeat(longest)).unwrap();
        let mut stored = Stored::absent(0);
        for _ in 0..20 {
            let (write, made) = stored.replace(&partition, &environment(), cursor.clone()).unwrap();
            assert!(write.size() <= 1_024, "{} bytes", write.size());
            stored = made;
        }
    }

    #[test]
    fn the_trail_tells_what_became_of_a_write() {
        let (partition, environment) = (Partition::new("p").unwrap(), environment());
        let mut states = vec![Stored::absent(0)];
        for next in 1..=20 {
            let last = states.last().unwrap();
            let cursor = Cursor { next, ..last.cursor.clone() };
            states.push(last.replace(&partition, &environment, cursor).unwrap().1);
        }
        let stranger = environment.version();
        let now = states.last().unwrap();
        for (age, state) in states.iter().rev().enumerate() {
            let version = state.version.unwrap_or(stranger);
            let seen = now.fate(version, None);
            assert_eq!(seen == Fate::Applied, age <= TRAIL_MAX, "age {age}");
            let refused = now.fate(stranger, state.version);
            let known = state.version.is_some() && age <= TRAIL_MAX;
            assert_eq!(refused == Fate::NotApplied, known, "age {age}");
        }
        assert_eq!(states[3].fate(stranger, None), Fate::NotApplied);
    }
}
