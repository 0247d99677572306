//! A group follows its topic when that grows, without seeing a key's new records before its old ones.
//!
//! A key may have moved from an old partition to a new one. So the group first notes how long the old partitions are,
//! at a time when no writer can still put a moved key there, and reads new ones when it has come that far.

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use millpond_store::{Expect, StoreError, Write};

use super::consumer::{Shared, Survey};
use super::item::{GroupItem, Growth};
use crate::error::Result;
use crate::limits::{GROWTH_SETTLED, PARTITIONS_AT_A_TIME, TOPIC_AGE_MAX};
use crate::seek::Seek;

impl Shared {
    pub(super) async fn follow_growth(&self, survey: &Survey) -> Result<()> {
        let topic = self.topic.recent().await?;
        if topic.config.partitions <= self.group().partitions {
            return Ok(());
        }
        // Another worker may have been here.
        let key = GroupItem::key(&self.topic.groups_partition(), &self.name)?;
        let Some(item) = self.topic.store().get(&key).await? else { return Ok(()) };
        let group = GroupItem::decode(&item)?;
        self.set_group(group.clone());
        let sizes = topic.grown_from.iter().chain([&topic.config.partitions]);
        let Some(goal) = sizes.copied().find(|size| *size > group.partitions) else {
            return Ok(());
        };
        let after = match &group.growth {
            None if self.is_settled(goal, topic.grown) => {
                let barrier = self.tails(group.partitions).await?;
                GroupItem { growth: Some(Growth { to: goal, barrier }), ..group.clone() }
            }
            Some(growth) if is_reached(growth, survey) => {
                GroupItem { partitions: growth.to, growth: None, ..group.clone() }
            }
            _ => return Ok(()),
        };
        let after = GroupItem { version: self.environment().version(), ..after };
        let expect = Expect::Version(group.version);
        let put = Write::put(key, after.attributes(), expect, after.version);
        match self.topic.store().write(put).await {
            Ok(()) => self.set_group(after),
            // Another worker was faster: the next look finds what it did.
            Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether every writer knows by now that the topic has grown.
    fn is_settled(&self, goal: u32, grown: Option<millpond_store::Timestamp>) -> bool {
        let environment = self.environment();
        if grown.is_none_or(|grown| environment.now().since(grown) >= GROWTH_SETTLED) {
            return true;
        }
        let now = self.now();
        let mut seen = self.growth_seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match *seen {
            Some((known, since)) if known == goal => now.since(since) >= TOPIC_AGE_MAX * 2,
            _ => {
                *seen = Some((goal, now));
                false
            }
        }
    }

    async fn tails(&self, partitions: u32) -> Result<Vec<u64>> {
        let tails: Vec<_> = (0..partitions)
            .map(|partition| self.topic.seek(partition, Seek::Latest).boxed())
            .collect();
        stream::iter(tails).buffered(PARTITIONS_AT_A_TIME).try_collect().await
    }
}

fn is_reached(growth: &Growth, survey: &Survey) -> bool {
    (0..).zip(&growth.barrier).all(|(partition, offset): (u32, &u64)| {
        let checkpoint = survey.leases.get(&partition).map_or(0, |lease| lease.checkpoint);
        checkpoint >= *offset
    })
}
