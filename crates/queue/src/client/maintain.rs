//! What must be done now and then: removing what has ended, shedding, storing counters. In bounded steps.

use std::sync::Arc;

use millpond_lanes::Scan;
use millpond_store::Timestamp;

use super::claim::mover_token;
use super::core::{ClientCore, lock};
use super::inspect::Pages;
use crate::config::QueueConfig;
use crate::counters::Event;
use crate::error::Result;
use crate::limits::{MAINTAIN_PAGES_MAX, MOVE_LEASE, SCAN_ROWS_MAX};
use crate::origin::MoveReason;
use crate::state::{Lease, Slot};
use crate::view::SegmentView;

/// What a step of maintenance did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Maintained {
    /// Messages that had ended and were removed.
    pub expired: usize,
    /// Messages that were shed since too many waited.
    pub shed: usize,
    /// Whether the pass over the queue is not finished: call again.
    pub more: bool,
}

/// Where a pass over the queue goes on.
#[derive(Debug, Default)]
pub struct Pass {
    lane: u8,
    next: Option<Scan>,
    depth_checked: Option<Timestamp>,
}

impl ClientCore {
    /// One step: a bounded part of the queue is looked through.
    pub async fn maintain(self: &Arc<Self>) -> Result<Maintained> {
        let config = self.queue.config().await?;
        let mut done = self.expire_step(&config).await?;
        done.shed = self.shed_depth(&config).await?;
        self.store_totals().await?;
        Ok(done)
    }

    /// Removes messages that have ended, in the next part of the queue.
    async fn expire_step(self: &Arc<Self>, config: &Arc<QueueConfig>) -> Result<Maintained> {
        let lanes = self.known_lanes();
        let (mut lane, mut next) = {
            let mut pass = lock(&self.pass);
            (pass.lane, pass.next.take())
        };
        let mut done = Maintained::default();
        for _ in 0..MAINTAIN_PAGES_MAX {
            let Some(of) = lanes.get(usize::from(lane)) else { break };
            let scan = match next.take() {
                Some(scan) => scan,
                None => of.scan()?.limit(SCAN_ROWS_MAX).relaxed(),
            };
            let page = of.page(scan).await?;
            let now = self.now();
            for segment in page.segments {
                let view = SegmentView::of(segment, config)?;
                if view.undone().any(|(at, slot)| has_ended(&view, at, slot, now)) {
                    done.expired += self.expire(lane, &view, now).await?;
                }
            }
            next = page.next;
            if next.is_none() {
                lane += 1;
            }
        }
        done.more = usize::from(lane) < lanes.len();
        let mut pass = lock(&self.pass);
        (pass.lane, pass.next) = if done.more { (lane, next) } else { (0, None) };
        Ok(done)
    }

    async fn expire(
        self: &Arc<Self>,
        lane: u8,
        view: &SegmentView,
        now: Timestamp,
    ) -> Result<usize> {
        let (expired, _) = self
            .edit(lane, view.place(), move |view| {
                let Some(view) = view else { return (0, false) };
                let ended: Vec<usize> = view
                    .undone()
                    .filter(|(at, slot)| has_ended(view, *at, slot, now))
                    .map(|(at, _)| at)
                    .collect();
                for at in &ended {
                    if let Some(slot) = view.slot_mut(*at) {
                        *slot = Slot::Done;
                    }
                }
                (ended.len(), !ended.is_empty())
            })
            .await?;
        self.count(Event::Expired, expired);
        Ok(expired)
    }

    /// Sheds the oldest messages when too many wait, if that has not been looked at for a while.
    pub(super) async fn shed_depth_soon(self: &Arc<Self>, config: &Arc<QueueConfig>) -> Result<()> {
        let now = self.now();
        {
            let mut pass = lock(&self.pass);
            let recent = crate::limits::DEPTH_CHECK_EVERY;
            if pass.depth_checked.is_some_and(|checked| now.since(checked) < recent) {
                return Ok(());
            }
            pass.depth_checked = Some(now);
        }
        self.shed_depth(config).await?;
        Ok(())
    }

    /// Sheds the oldest messages when too many wait: of the lowest priority first.
    async fn shed_depth(self: &Arc<Self>, config: &Arc<QueueConfig>) -> Result<usize> {
        let Some(depth_max) = config.shedding.as_ref().and_then(|shedding| shedding.depth_max)
        else {
            return Ok(0);
        };
        let mut left = depth_max;
        let mut shed = 0;
        for level in (0..config.priorities).rev() {
            let each = left.div_ceil(u64::from(config.lanes));
            for lane in 0..config.lanes {
                let number = level * config.lanes + lane;
                let (kept, dropped) = self.shed_lane(number, each.min(left), config).await?;
                left -= kept;
                shed += dropped;
            }
        }
        Ok(shed)
    }

    /// Keeps the newest messages of a lane, as many as said, and sheds the rest. Returns how many are kept and shed.
    async fn shed_lane(
        self: &Arc<Self>,
        number: u8,
        keep: u64,
        config: &Arc<QueueConfig>,
    ) -> Result<(u64, usize)> {
        let lanes = self.known_lanes();
        let Some(lane) = lanes.get(usize::from(number)) else { return Ok((0, 0)) };
        let mut pages = Pages::new(lane, lane.scan()?.reverse().limit(SCAN_ROWS_MAX).relaxed());
        let (mut kept, mut shed) = (0, 0);
        while let Some(page) = pages.next().await? {
            let now = self.now();
            for segment in page.segments {
                let view = SegmentView::of(segment, config)?;
                let waiting = waiting(&view, now).len() as u64;
                let over = waiting.saturating_sub(keep - kept);
                kept += waiting - over;
                if over > 0 {
                    let over = usize::try_from(over).unwrap_or(usize::MAX);
                    shed += self.shed_oldest(number, &view, over, config, now).await?;
                }
            }
        }
        Ok((kept, shed))
    }

    /// Sheds the oldest messages of a segment that wait.
    async fn shed_oldest(
        self: &Arc<Self>,
        lane: u8,
        view: &SegmentView,
        count: usize,
        config: &QueueConfig,
        now: Timestamp,
    ) -> Result<usize> {
        let moves = config.shedding.as_ref().is_some_and(|shedding| shedding.side_queue.is_some());
        let token = self.queue.root.environment().rng.next_u64();
        let edited = self.edit(lane, view.place(), move |view| {
            let Some(view) = view else { return (None, false) };
            let oldest: Vec<usize> = waiting(view, now).into_iter().take(count).collect();
            for at in &oldest {
                if let Some(slot) = view.slot_mut(*at) {
                    let record = slot.record().cloned().unwrap_or_default();
                    let (token, until) = (mover_token(token), now.plus(MOVE_LEASE));
                    let lease = Lease { token, until, worker: String::new() };
                    *slot = if moves { Slot::Leased { record, lease } } else { Slot::Done };
                }
            }
            let changed = !oldest.is_empty();
            (Some((oldest, view.clone())), changed)
        });
        let (Some((oldest, view)), _) = edited.await? else { return Ok(0) };
        if moves {
            let all: Vec<_> = oldest.iter().map(|at| (*at, MoveReason::ShedDepth)).collect();
            self.move_out(lane, &view, &all, token).await;
        } else {
            self.count(Event::ShedDepth, oldest.len());
        }
        Ok(oldest.len())
    }
}

/// Messages that wait to be received, now or later, oldest first.
fn waiting(view: &SegmentView, now: Timestamp) -> Vec<usize> {
    let on_loan = |slot: &Slot| slot.lease().is_some_and(|lease| lease.until > now);
    view.undone().filter(|(_, slot)| !on_loan(slot)).map(|(at, _)| at).collect()
}

/// Whether a message is past its end and nobody works on it.
fn has_ended(view: &SegmentView, at: usize, slot: &Slot, now: Timestamp) -> bool {
    let on_loan = slot.lease().is_some_and(|lease| lease.until > now);
    !on_loan && view.is_expired(at, now)
}
