//! Looking without taking: count, peek, get.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::{Scan, SegmentPage};
use millpond_store::Timestamp;

use super::core::ClientCore;
use crate::error::Result;
use crate::id::MessageId;
use crate::lane::QueueLane;
use crate::message::Delivery;
use crate::receipt::Receipt;
use crate::state::{Lease, Slot};
use crate::view::SegmentView;

/// How many messages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Can be received now.
    pub available: u64,
    /// On loan.
    pub leased: u64,
    /// To be received later.
    pub delayed: u64,
    /// Held back, with their groups, after too many receives.
    pub held: u64,
    /// How long ago the oldest of all of them was sent.
    pub oldest_age: Option<Duration>,
}

impl Count {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.available + self.leased + self.delayed + self.held
    }
}

/// A message that was looked at, not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peeked {
    /// The message. Its receipt is empty, since it is not on loan.
    pub message: Delivery,
    /// What state it is in.
    pub state: MessageState,
}

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It can be received.
    Available,
    /// It can be received from then on.
    Delayed(Timestamp),
    /// It is on loan until then.
    Leased(Timestamp),
    /// It is held back, with its group.
    Held,
    /// It is past its end, and will not be delivered.
    Expired,
    /// It is finished.
    Done,
}

impl ClientCore {
    /// Counts messages by reading the rows of all segments, not their bodies.
    pub async fn count_messages(&self) -> Result<Count> {
        self.queue.config().await?;
        let now = self.now();
        let (mut count, mut oldest) = (Count::default(), None::<Timestamp>);
        for lane in self.known_lanes().iter() {
            let mut pages = Pages::new(lane, lane.scan()?);
            while let Some(page) = pages.next().await? {
                let config = self.queue.known_config();
                for segment in page.segments {
                    let view = SegmentView::of(segment, &config)?;
                    let before = count.total();
                    tally(&view, now, &mut count);
                    if count.total() > before {
                        let sent = view.segment.appended;
                        oldest = Some(oldest.map_or(sent, |oldest| oldest.min(sent)));
                    }
                }
            }
        }
        count.oldest_age = oldest.map(|oldest| now.since(oldest));
        Ok(count)
    }

    /// The first messages from the old end, whatever their state.
    pub async fn peek(self: &Arc<Self>, max: usize) -> Result<Vec<Peeked>> {
        self.queue.config().await?;
        let now = self.now();
        let mut found = Vec::new();
        for (number, lane) in (0_u8..).zip(self.known_lanes().iter()) {
            let mut pages = Pages::new(lane, lane.scan()?.limit(max.clamp(1, 100)));
            while found.len() < max
                && let Some(page) = pages.next().await?
            {
                let config = self.queue.known_config();
                for segment in page.segments {
                    let view = SegmentView::of(segment, &config)?;
                    let slots: Vec<usize> = view.undone().map(|(at, _)| at).collect();
                    for slot in slots.into_iter().take(max - found.len()) {
                        found.push(self.peek_at(number, &view, slot, now).await?);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The message of this id, if it is still there.
    pub async fn get(&self, id: &MessageId) -> Result<Option<Peeked>> {
        self.queue.config().await?;
        let lanes = self.known_lanes();
        let Some(lane) = lanes.get(usize::from(id.lane)) else { return Ok(None) };
        let Some((segment, slot)) = lane.find(id.place).await? else { return Ok(None) };
        let view = SegmentView::of(segment, &self.queue.known_config())?;
        self.peek_at(id.lane, &view, slot, self.now()).await.map(Some)
    }

    async fn peek_at(
        &self,
        lane: u8,
        view: &SegmentView,
        slot: usize,
        now: Timestamp,
    ) -> Result<Peeked> {
        let messages = self.load(lane, &view.segment).await?;
        let until = view.slot(slot).and_then(Slot::lease).map_or(now, |lease| lease.until);
        let lease = Lease { token: 0, until, worker: String::new() };
        let mut message = self.delivery(lane, view, slot, &messages, &lease).await?;
        message.receipt = Receipt::from_text("");
        Ok(Peeked { message, state: state_of(view, slot, now) })
    }
}

/// The state of a message at a time.
pub fn state_of(view: &SegmentView, slot: usize, now: Timestamp) -> MessageState {
    let state = match view.slot(slot) {
        None | Some(Slot::Done | Slot::Ended { .. }) => return MessageState::Done,
        Some(state) => state,
    };
    if let Some(lease) = state.lease().filter(|lease| lease.until > now) {
        return MessageState::Leased(lease.until);
    }
    if view.is_expired(slot, now) {
        return MessageState::Expired;
    }
    match view.free_at(slot) {
        Some(free) if free <= now => MessageState::Available,
        Some(free) => MessageState::Delayed(free),
        None => MessageState::Held,
    }
}

fn tally(view: &SegmentView, now: Timestamp, count: &mut Count) {
    for (slot, _) in view.undone() {
        match state_of(view, slot, now) {
            MessageState::Available => count.available += 1,
            MessageState::Delayed(_) => count.delayed += 1,
            MessageState::Leased(_) => count.leased += 1,
            MessageState::Held => count.held += 1,
            MessageState::Expired | MessageState::Done => {}
        }
    }
}

/// The pages of a scan, one after the other.
pub struct Pages<'a> {
    lane: &'a QueueLane,
    next: Option<Scan>,
}

impl<'a> Pages<'a> {
    pub const fn new(lane: &'a QueueLane, scan: Scan) -> Self {
        Self { lane, next: Some(scan) }
    }

    pub async fn next(&mut self) -> Result<Option<SegmentPage>> {
        let Some(scan) = self.next.take() else { return Ok(None) };
        let mut page = self.lane.page(scan).await?;
        self.next = page.next.take();
        Ok(Some(page))
    }
}
