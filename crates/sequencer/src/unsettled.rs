//! The index of queues in which messages wait behind a number that is missing.
//!
//! Partition `NAME/unsettled/SHARD`, sort key the queue's name. A put that lands ahead of the cursor writes the row
//! before it is acknowledged; the sweeper removes it when nothing waits any more. A put in order writes nothing here,
//! and an idle queue has no row.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `gap` | number | the number that was waited for |
//! | `since` | number | when it was first seen missing, ms since 1970 |
//! | `at` | number | when the row was written, ms since 1970 |
//!
//! A writer does not repeat the row while its own is younger than
//! [`UNSETTLED_TRUSTED`], and the sweeper removes none that is younger than
//! [`UNSETTLED_KEPT`]: so the row stands as long as a writer relies on it.

use millpond_store::{
    Attributes, Certainty, Expect, Item, Key, StoreError, Timestamp, Version, Write,
};

use crate::config::GapPolicy;
use crate::error::{Result, SequencerError};
use crate::item::{millis, natural, stored, timestamp};
use crate::limits::{CONFLICTS_MAX, UNSETTLED_KEPT, UNSETTLED_TRUSTED};
use crate::sequencer::{Place, Sequencer};

/// A row of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsettled {
    pub(crate) gap: u64,
    pub(crate) since: Timestamp,
    pub(crate) at: Timestamp,
    pub(crate) version: Version,
}

impl Unsettled {
    pub(crate) fn decode(item: &Item) -> Result<Self> {
        Ok(Self {
            gap: natural(item, "gap")?,
            since: timestamp(item, "since")?,
            at: timestamp(item, "at")?,
            version: item.version,
        })
    }

    fn encode(&self) -> Attributes {
        Attributes::new()
            .with("gap", stored(self.gap))
            .with("since", millis(self.since))
            .with("at", millis(self.at))
    }
}

impl Sequencer {
    fn unsettled_key(&self, place: &Place) -> Result<Key> {
        let partition = self.names.unsettled(place.queue.shard())?;
        Ok(Key::new(partition.as_str(), place.queue.as_str().as_bytes().to_vec())?)
    }

    const fn has_timer(&self) -> bool {
        matches!(self.config.gaps, GapPolicy::SkipAfter(_) | GapPolicy::ParkAfter(_))
    }

    /// Sees to it that the queue is in the index, as waiting for `gap`.
    pub(crate) async fn touch(&self, place: &Place, gap: u64) -> Result<()> {
        let begun = self.environment.clock.monotonic();
        if let Some((touched, touched_gap)) = self.known.hint(&place.queue).touched {
            let same = touched_gap == gap || !self.has_timer();
            if same && begun.since(touched) < UNSETTLED_TRUSTED {
                return Ok(());
            }
        }
        self.write_unsettled(place, gap, None).await?;
        self.known.update(&place.queue, |hint| hint.touched = Some((begun, gap)));
        Ok(())
    }

    /// Writes the row, over `known` if that is given. The time since a gap is known stays as long as it is the same
    /// gap.
    pub(crate) async fn write_unsettled(
        &self,
        place: &Place,
        gap: u64,
        known: Option<Unsettled>,
    ) -> Result<Unsettled> {
        let key = self.unsettled_key(place)?;
        let now = self.environment.now();
        let mut known = known;
        let mut version = self.environment.version();
        for _ in 0..CONFLICTS_MAX {
            let since = known.filter(|row| row.gap == gap).map_or(now, |row| row.since);
            let row = Unsettled { gap, since, at: now, version };
            let expect = known.map_or(Expect::Absent, |row| Expect::Version(row.version));
            let write = Write::put(key.clone(), row.encode(), expect, version);
            match self.store.write(write).await {
                Ok(()) => return Ok(row),
                Err(StoreError::Conflict(conflicts)) => {
                    let current = conflicts.first().current.as_ref();
                    known = current.map(Unsettled::decode).transpose()?;
                    version = self.environment.version();
                }
                Err(error) if error.certainty() == Certainty::Unknown => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SequencerError::contended("put"))
    }

    /// Takes a queue out of the index, unless somebody may still rely on the row.
    pub(crate) async fn remove_unsettled(&self, place: &Place, row: &Unsettled) -> Result<bool> {
        if self.environment.now().since(row.at) < UNSETTLED_KEPT {
            return Ok(false);
        }
        let write = Write::delete(self.unsettled_key(place)?, Expect::Version(row.version));
        match self.store.write(write).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #[test]
        fn rows_survive_the_round_trip(gap in any::<u32>(), since in any::<u32>(), at in any::<u32>()) {
            let time = |millis: u32| Timestamp::from_millis(millis.into());
            let version = Version::from_u64(3);
            let row = Unsettled { gap: gap.into(), since: time(since), at: time(at), version };
            let key = Key::new("p", "q").unwrap();
            let write = Write::put(key, row.encode(), Expect::Absent, version);
            assert_eq!(Unsettled::decode(&write.item().unwrap()).unwrap(), row);
        }
    }
}
