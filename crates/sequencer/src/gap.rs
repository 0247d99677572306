//! The record of a gap: numbers that are passed although no message came.
//!
//! Partition `NAME/q/QUEUE`, sort key `g`, the queue's life (8 bytes) and the first number (8 bytes). It is only
//! ever written together with the cursor, so that it never changes unseen and gaps never overlap.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `end` | number | the number behind the last one skipped |
//! | `why` | text | `timeout`, `declared` or `skipped` |
//! | `at` | number | when it was recorded, ms since 1970 |

use millpond_store::{
    Attributes, Environment, Expect, Item, Partition, StoreError, Timestamp, Version, Write,
};

use crate::error::Result;
use crate::item::{millis, natural, stored, timestamp};
use crate::names::{kind, life_key, number_of};

/// Why numbers were skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapReason {
    /// They did not come in time.
    Timeout,
    /// A producer said that they will not come.
    Declared,
    /// Somebody skipped them by hand.
    Skipped,
}

impl GapReason {
    const fn text(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Declared => "declared",
            Self::Skipped => "skipped",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Timeout, Self::Declared, Self::Skipped]
            .into_iter()
            .find(|reason| reason.text() == text)
    }
}

/// Numbers that were skipped, or will be once the cursor gets there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The first number.
    pub first: u64,
    /// The number behind the last.
    pub end: u64,
    /// Why.
    pub reason: GapReason,
    /// When it was recorded.
    pub at: Timestamp,
}

impl Gap {
    /// Whether `seq` was skipped by it.
    #[must_use]
    pub const fn covers(&self, seq: u64) -> bool {
        self.first <= seq && seq < self.end
    }

    pub(crate) fn put(
        &self,
        partition: &Partition,
        life: u64,
        expect: Expect,
        environment: &Environment,
    ) -> Result<Write> {
        let attributes = Attributes::new()
            .with("end", stored(self.end))
            .with("why", self.reason.text())
            .with("at", millis(self.at));
        let key = life_key(partition, kind::GAP, life, self.first)?;
        Ok(Write::put(key, attributes, expect, environment.version()))
    }
}

/// A gap as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoredGap {
    pub(crate) gap: Gap,
    pub(crate) version: Version,
}

impl StoredGap {
    pub(crate) fn decode(item: &Item) -> Result<Self> {
        let damaged =
            || StoreError::corrupt(format!("item {}", item.key), "it is no record of a gap");
        let reason = GapReason::parse(item.attributes.text("why")?).ok_or_else(damaged)?;
        let (first, end) = (number_of(&item.key)?, natural(item, "end")?);
        if end <= first {
            return Err(damaged().into());
        }
        let gap = Gap { first, end, reason, at: timestamp(item, "at")? };
        Ok(Self { gap, version: item.version })
    }

    pub(crate) fn delete(&self, partition: &Partition, life: u64) -> Result<Write> {
        let key = life_key(partition, kind::GAP, life, self.gap.first)?;
        Ok(Write::delete(key, Expect::Version(self.version)))
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::VirtualClock;
    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #[test]
        fn gaps_survive_the_round_trip(
            first in any::<u32>(), count in 1..1_000_u64, life in any::<u32>(), why in 0..3_usize,
        ) {
            let reason = [GapReason::Timeout, GapReason::Declared, GapReason::Skipped][why];
            let first = u64::from(first);
            let gap = Gap { first, end: first + count, reason, at: Timestamp::from_millis(5) };
            let environment = Environment::simulated(VirtualClock::new(gap.at), 1);
            let partition = Partition::new("p").unwrap();
            let write = gap.put(&partition, life.into(), Expect::Absent, &environment).unwrap();
            assert_eq!(StoredGap::decode(&write.item().unwrap()).unwrap().gap, gap);
        }
    }
}
