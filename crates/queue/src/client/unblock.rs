//! Letting a blocked group go on.

use std::sync::Arc;

use super::core::ClientCore;
use super::inspect::Pages;
use super::send::group_hash;
use crate::error::{QueueError, Result};
use crate::state::{Record, Slot};
use crate::view::SegmentView;

impl ClientCore {
    pub async fn unblock(self: &Arc<Self>, group: &str) -> Result<usize> {
        let config = self.queue.config().await?;
        if config.strict.is_none() {
            return Err(QueueError::invalid("group", "can only be blocked in a strict queue"));
        }
        let hash = group_hash(Some(group).filter(|group| !group.is_empty())).unwrap_or_default();
        let mut freed = 0;
        for (number, lane) in (0_u8..).zip(self.known_lanes().iter()) {
            let mut pages = Pages::new(lane, lane.scan()?);
            while let Some(page) = pages.next().await? {
                for segment in page.segments {
                    let view = SegmentView::of(segment, &config)?;
                    if held(&view, hash).next().is_some() {
                        freed += self.let_go(number, &view, hash).await?;
                    }
                }
            }
        }
        Ok(freed)
    }

    async fn let_go(self: &Arc<Self>, lane: u8, view: &SegmentView, group: u32) -> Result<usize> {
        let now = self.now();
        let (freed, _) = self
            .edit(lane, view.place(), move |view| {
                let Some(view) = view else { return (0, false) };
                let all: Vec<usize> = held(view, group).collect();
                for at in &all {
                    if let Some(slot) = view.slot_mut(*at) {
                        let record = slot.record().cloned().unwrap_or_default();
                        let record = Record { receives: 0, ..record };
                        *slot = Slot::Waiting { record, ended_by: 0, due: now };
                    }
                }
                (all.len(), !all.is_empty())
            })
            .await?;
        Ok(freed)
    }
}

fn held(view: &SegmentView, group: u32) -> impl Iterator<Item = usize> {
    view.undone()
        .filter(move |(at, slot)| matches!(slot, Slot::Held { .. }) && view.group(*at) == group)
        .map(|(at, _)| at)
}
