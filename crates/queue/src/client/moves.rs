//! Moving messages to another queue: dead letters, what is shed to a side queue, and back.
//!
//! A message is set aside first, then appended to the other queue under an id that depends only on where it was, then
//! done. So a crash in between, or a lost answer, neither loses it nor moves it twice.

use std::sync::Arc;

use millpond_lanes::{Append, Message as LaneMessage, Once};
use millpond_store::{Attributes, StoreError, Timestamp, UniqueId};
use sha2::{Digest as _, Sha256};

use super::claim::{mover_token, set_group_aside};
use super::core::{ClientCore, Views, no_lane, with};
use crate::config::GroupPoison;
use crate::counters::Event;
use crate::error::Result;
use crate::head::Head;
use crate::id::{MessageId, MessagePlace};
use crate::limits::DEDUP_WINDOW;
use crate::message::Message;
use crate::names::QueueName;
use crate::origin::{MoveReason, Origin};
use crate::queues::Queues;
use crate::state::Slot;
use crate::view::SegmentView;

impl ClientCore {
    /// Moves messages that are set aside. One that cannot be moved stays, and is tried again when the loan ends.
    pub(super) async fn move_out(
        self: &Arc<Self>,
        lane: u8,
        view: &SegmentView,
        moves: &[(usize, MoveReason)],
        token: u64,
    ) {
        for (slot, reason) in moves {
            if let Err(error) = self.move_one(lane, view, *slot, *reason, token).await {
                let id = MessageId::of(lane, view.place(), *slot);
                tracing::warn!(queue = %self.queue.name, message = %id, %error, "not moved yet");
                // Those behind it must not go first.
                return;
            }
        }
        let strict = self.queue.known_config().strict;
        if strict.is_some_and(|strict| strict.poison == GroupPoison::Park) {
            for (slot, reason) in moves {
                if *reason == MoveReason::ReceiveLimit {
                    self.park(lane, view.group(*slot)).await;
                }
            }
        }
    }

    /// Moves what waits of a group in later segments behind a dead message of its own, in order.
    async fn park(self: &Arc<Self>, lane: u8, group: u32) {
        let Views::Strict(all) = self.views() else { return };
        let behind = with(all, lane, |view| view.of_group(group)).unwrap_or_default();
        for view in behind {
            let token = self.queue.root.environment().rng.next_u64();
            let now = self.now();
            let edited = self.edit(lane, view.place(), move |view| {
                let Some(view) = view else { return (None, false) };
                let moves = set_group_aside(view, group, now, token);
                let changed = !moves.is_empty();
                (Some((moves, view.clone())), changed)
            });
            let Ok((Some((moves, view)), _)) = edited.await else { return };
            for (slot, reason) in moves {
                if let Err(error) = self.move_one(lane, &view, slot, reason, token).await {
                    let id = MessageId::of(lane, view.place(), slot);
                    tracing::warn!(queue = %self.queue.name, message = %id, %error, "not parked yet");
                    return;
                }
            }
        }
    }

    async fn move_one(
        self: &Arc<Self>,
        lane: u8,
        view: &SegmentView,
        slot: usize,
        reason: MoveReason,
        token: u64,
    ) -> Result<()> {
        let config = self.queue.known_config();
        let target = match reason {
            MoveReason::ReceiveLimit | MoveReason::Parked => {
                config.dead_letters.as_ref().map(|dead| dead.queue.clone())
            }
            MoveReason::ShedAge | MoveReason::ShedDepth | MoveReason::ShedDelay => {
                config.shedding.as_ref().and_then(|shedding| shedding.side_queue.clone())
            }
        };
        if let Some(target) = target {
            let messages = self.load(lane, &view.segment).await?;
            let mut message = messages.get(slot).ok_or_else(|| no_lane(lane))?.clone();
            let mut head = decode_head(&message)?;
            if let Some(shared) = head.shared.take() {
                // What is shared ends with the queues of its topic; here it may be kept for longer.
                message.body = shared.fetch(&self.queue.root).await?;
            }
            let mut origin = self.origin(lane, view, slot, reason);
            if let Some(before) = head.origin.take().filter(|_| config.keeps_age) {
                origin.sent_ms = before.sent_ms;
            }
            head.origin = Some(origin);
            let id = MessageId::of(lane, view.place(), slot);
            head.identity.get_or_insert_with(|| self.identity(&id));
            self.hand_over(&target, &message, &head, (lane, view, slot)).await?;
        }
        let token = mover_token(token);
        let (moved, _) = self
            .edit(lane, view.place(), move |view| {
                let Some(slot) = view.and_then(|view| view.slot_mut(slot)) else {
                    return (false, false);
                };
                let ours = slot.lease().is_some_and(|lease| lease.token == token);
                if ours {
                    *slot = Slot::Done;
                }
                (ours, ours)
            })
            .await?;
        self.count(Event::of_move(reason), usize::from(moved));
        Ok(())
    }

    fn origin(&self, lane: u8, view: &SegmentView, slot: usize, reason: MoveReason) -> Origin {
        let record = view.slot(slot).and_then(Slot::record).cloned().unwrap_or_default();
        Origin {
            queue: self.queue.name.as_str().to_owned(),
            client: self.id.as_str().to_owned(),
            id: MessageId::of(lane, view.place(), slot).to_string(),
            reason,
            receives: record.receives,
            error: Some(record.error).filter(|error| !error.is_empty()),
            sent_ms: view.segment.appended.as_millis(),
            moved_ms: self.queue.root.environment().now().as_millis(),
            attempts: record.attempts,
        }
    }

    /// Appends a message to the same client's queue of another name.
    async fn hand_over(
        &self,
        target: &str,
        message: &LaneMessage,
        head: &Head,
        from: (u8, &SegmentView, usize),
    ) -> Result<()> {
        let (lane, view, slot) = from;
        let id = MessageId::of(lane, view.place(), slot);
        let name = QueueName::new(target)?;
        let queue = Queues { root: Arc::clone(&self.queue.root) }.open(name.as_str()).await?;
        let other = queue.core.client(&self.id)?;
        other.accept(message, head, &Source::of(self, &id, view.segment.appended)).await?;
        Ok(())
    }

    /// Takes a message in that comes from another queue, once.
    pub(super) async fn accept(
        &self,
        message: &LaneMessage,
        head: &Head,
        from: &Source,
    ) -> Result<MessageId> {
        let config = self.queue.config().await?;
        let digest = Sha256::digest(format!("{}\0{}", from.segment, from.slot));
        let plain = Message { group: head.group.clone(), ..Message::default() };
        let lane = self.lane_of(&config, &plain);
        let once = Once {
            key: self.mark_key(&digest)?,
            kept: DEDUP_WINDOW,
            note: Attributes::new().with("lane", i64::from(lane)),
        };
        let aged = head.origin.as_ref().filter(|_| config.keeps_age && config.strict.is_none());
        let stored = LaneMessage {
            head: head.encode(),
            body: message.body.clone(),
            group: message.group,
            due: None,
            expires: aged.map(|origin| origin.sent().plus(config.retention)),
            once: config.strict.map(|_| once),
        };
        self.register().await?;
        let environment = self.queue.root.environment();
        let append =
            Append::new(environment, std::slice::from_ref(&stored))?.with_id(from.unique_id());
        let lanes = self.lanes(&config)?;
        let of = lanes.get(usize::from(lane)).ok_or_else(|| no_lane(lane))?;
        let id = of.append_move(append, stored).await?;
        if let MessagePlace::Slot(segment, _) = id.place {
            self.appended(lane, millpond_lanes::Place::Id(segment));
        }
        self.count(Event::Sent, 1);
        Ok(id)
    }
}

/// Where a message comes from that is moved: the same however often the move is tried.
#[derive(Debug)]
pub struct Source {
    /// The segment, with queue and client.
    segment: String,
    slot: u8,
    /// When it was sent there.
    sent: Timestamp,
}

impl Source {
    pub fn of(client: &ClientCore, id: &MessageId, sent: Timestamp) -> Self {
        let (place, slot) = match id.place {
            MessagePlace::Slot(segment, slot) => (segment.to_string(), slot),
            MessagePlace::Number(number) => (number.to_string(), 0),
        };
        Self { segment: format!("{}/{}/{place}", client.prefix(), id.lane), slot, sent }
    }

    /// The id of the message's new segment: messages of one segment keep their order.
    fn unique_id(&self) -> UniqueId {
        let digest = Sha256::digest(self.segment.as_bytes());
        let random = digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first));
        UniqueId::from_parts(self.sent, (random & !0xff) | u128::from(self.slot))
    }
}

pub fn decode_head(message: &LaneMessage) -> Result<Head> {
    Head::decode(&message.head)
        .ok_or_else(|| StoreError::corrupt("a message", "its head cannot be read").into())
}
