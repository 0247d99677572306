//! Removing everything that is there.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use millpond_lanes::{Place, Segment};
use millpond_store::{Expect, Item, Partition, Query, Write};

use super::core::ClientCore;
use super::inspect::Pages;
use crate::counters::Event;
use crate::error::Result;
use crate::limits::REQUESTS_MAX;
use crate::state::Slot;

/// Marks that are removed at a time.
const MARKS_EACH: usize = 500;

impl ClientCore {
    /// Removes every message that was sent before the call; one that is sent at the same time is removed or stays,
    /// whole. Messages on loan are removed too. Returns how many.
    pub async fn purge(self: &Arc<Self>) -> Result<usize> {
        self.queue.config().await?;
        let removed = self.remove_all().await?;
        self.count(Event::Purged, removed);
        Ok(removed)
    }

    /// The same, also when the queue itself is gone.
    pub async fn remove_all(self: &Arc<Self>) -> Result<usize> {
        let mut removed = 0;
        // Up to which number each lane is removed: all that was sent before, also what is finished and may be the last...
        let mut ends = Vec::new();
        for lane in self.known_lanes().iter() {
            ends.push(lane.tail().await?);
        }
        for (number, lane) in (0_u8..).zip(self.known_lanes().iter()) {
            let mut pages = Pages::new(lane, lane.scan()?);
            while let Some(page) = pages.next().await? {
                if let (Some(end), Some(place @ Place::Number(last))) =
                    (ends.get_mut(usize::from(number)), page.last)
                {
                    // ...and what of the rest is found.
                    let segment = page.segments.last().filter(|found| found.place == place);
                    *end = (*end).max(last + segment.map_or(0, |segment| segment.count as u64));
                }
                let work = page.segments.into_iter().map(|segment| self.remove(number, segment));
                let mut work = stream::iter(work).buffer_unordered(REQUESTS_MAX);
                while let Some(outcome) = work.next().await {
                    removed += outcome?;
                }
            }
        }
        self.forget_marks(&ends).await?;
        Ok(removed)
    }

    async fn remove(self: &Arc<Self>, lane: u8, segment: Segment) -> Result<usize> {
        let (removed, _) = self
            .edit(lane, segment.place, |view| {
                let Some(view) = view else { return (0, false) };
                let undone: Vec<usize> = view.undone().map(|(at, _)| at).collect();
                for at in &undone {
                    if let Some(slot) = view.slot_mut(*at) {
                        *slot = Slot::Done;
                    }
                }
                (undone.len(), true)
            })
            .await?;
        Ok(removed)
    }

    /// Forgets that messages were sent which are removed, so that they can be sent again. What was sent meanwhile
    /// stays, and its mark with it.
    async fn forget_marks(&self, ends: &[u64]) -> Result<()> {
        let is_removed = |item: &Item| {
            let number =
                |name| item.attributes.number(name).ok().and_then(|n| u64::try_from(n).ok());
            let lane = number("lane").and_then(|lane| usize::try_from(lane).ok());
            let end = lane.and_then(|lane| ends.get(lane)).copied().unwrap_or_default();
            number("num").is_some_and(|number| number < end)
        };
        let partition = Partition::new(format!("{}#once", self.prefix()))?;
        let store = self.queue.root.store();
        let mut next = Some(Query::new(partition).limit(MARKS_EACH));
        while let Some(query) = next {
            let page = store.query(query).await?;
            next = page.next;
            let removed = page.items.into_iter().filter(is_removed);
            let deletes =
                removed.map(|item| Write::delete(item.key, Expect::Version(item.version)));
            for outcome in store.write_each(deletes.collect()).await? {
                match outcome {
                    Err(error) if !error.is_conflict() => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
