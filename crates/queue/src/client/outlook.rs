//! Whether there is anything left to do.

use std::collections::HashSet;

use millpond_store::Timestamp;

use super::core::ClientCore;
use super::inspect::{MessageState, Pages, state_of};
use crate::error::Result;
use crate::limits::SCAN_ROWS_MAX;
use crate::view::SegmentView;

/// What is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outlook {
    /// A message can be received now. Then the rest was not looked at.
    pub available: bool,
    /// When the first of those that wait, or that others have, can be received.
    pub due: Option<Timestamp>,
}

impl Outlook {
    /// Whether anything is left to do, now or later. What is held back until somebody lets it go does not count.
    pub const fn work_remains(&self) -> bool {
        self.available || self.due.is_some()
    }
}

impl ClientCore {
    /// Looks, with strong consistency, whether a message can be received, now or later. It ends at the first that can
    /// be now; it reads what comes before that, not the bodies.
    pub async fn outlook(&self) -> Result<Outlook> {
        let config = self.queue.config().await?;
        let mut outlook = Outlook::default();
        for lane in self.known_lanes().iter() {
            let mut pages = Pages::new(lane, lane.scan()?.limit(SCAN_ROWS_MAX));
            let mut waiting = HashSet::new();
            while let Some(page) = pages.next().await? {
                let now = self.now();
                for segment in page.segments {
                    let view = SegmentView::of(segment, &config)?;
                    judge(&view, now, config.strict.is_some(), &mut waiting, &mut outlook);
                    if outlook.available {
                        return Ok(outlook);
                    }
                }
            }
        }
        Ok(outlook)
    }
}

/// Takes a segment's messages into account. In a strict queue, those behind another of their group wait for it.
fn judge(
    view: &SegmentView,
    now: Timestamp,
    strict: bool,
    waiting: &mut HashSet<u32>,
    outlook: &mut Outlook,
) {
    for (slot, _) in view.undone() {
        let group = view.group(slot);
        if strict && waiting.contains(&group) {
            continue;
        }
        match state_of(view, slot, now) {
            MessageState::Available => outlook.available = true,
            MessageState::Delayed(due) | MessageState::Leased(due) => {
                outlook.due = Some(outlook.due.map_or(due, |known| known.min(due)));
            }
            MessageState::Held => {}
            MessageState::Expired | MessageState::Done => continue,
        }
        waiting.insert(group);
    }
}
