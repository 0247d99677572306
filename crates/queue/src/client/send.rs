//! Sending.

use std::sync::Arc;

use futures::future::join_all;
use millpond_lanes::{Message as LaneMessage, Once, Place};
use millpond_store::{Attributes, Key, Timestamp};
use sha2::{Digest as _, Sha256};

use super::core::{ClientCore, no_lane};
use crate::config::{Dedup, DedupScope, QueueConfig, Strict};
use crate::counters::Event;
use crate::error::{QueueError, Result};
use crate::head::Head;
use crate::id::MessagePlace;
use crate::lane::{Appended, QueueLane};
use crate::limits::DEDUP_WINDOW;
use crate::message::{Message, Sent};

impl ClientCore {
    /// Sends messages, with an outcome for each. What is refused keeps nothing else back, except that in a strict
    /// queue those behind one that failed to be stored are not tried.
    pub async fn send(&self, messages: Vec<Message>) -> Result<Vec<Result<Sent>>> {
        let config = self.queue.config().await?;
        let now = self.queue.root.environment().now();
        let mut outcomes: Vec<Option<Result<Sent>>> = vec![None; messages.len()];
        let mut by_lane: Vec<Vec<(usize, LaneMessage)>> = vec![Vec::new(); lane_count(&config)];
        for (index, message) in messages.into_iter().enumerate() {
            match message.check(&config) {
                Ok(()) => {
                    let head = Head::of(&message);
                    let lane = self.lane_of(&config, &message);
                    let stored = self.lane_message(&config, message, &head, lane, now)?;
                    if let Some(all) = by_lane.get_mut(usize::from(lane)) {
                        all.push((index, stored));
                    }
                }
                Err(error) => set(&mut outcomes, index, Err(error)),
            }
        }
        if by_lane.iter().all(Vec::is_empty) {
            return Ok(outcomes.into_iter().flatten().collect());
        }
        self.register().await?;
        let lanes = self.lanes(&config)?;
        let work = (0_u8..).zip(by_lane).filter(|(_, all)| !all.is_empty()).map(|(lane, all)| {
            let (indexes, messages): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let lanes = Arc::clone(&lanes);
            async move { (indexes, self.append(&lanes, lane, messages).await) }
        });
        for (indexes, appended) in join_all(work).await {
            match appended {
                Ok(all) => {
                    for (index, outcome) in indexes.into_iter().zip(all) {
                        set(&mut outcomes, index, outcome);
                    }
                }
                Err(error) => {
                    for index in indexes {
                        set(&mut outcomes, index, Err(error.clone()));
                    }
                }
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Sends one message whose body is stored elsewhere.
    pub async fn send_shared(&self, message: &Message, head: &Head) -> Result<Sent> {
        let config = self.queue.config().await?;
        let now = self.queue.root.environment().now();
        let lane = self.lane_of(&config, message);
        let stored = self.lane_message(&config, message.clone(), head, lane, now)?;
        self.register().await?;
        let sent = self.append(&self.lanes(&config)?, lane, vec![stored]).await?.pop();
        sent.unwrap_or_else(|| Err(QueueError::invalid("message", "was not sent")))
    }

    async fn append(
        &self,
        lanes: &[QueueLane],
        lane: u8,
        messages: Vec<LaneMessage>,
    ) -> Result<Vec<Result<Sent>>> {
        let of = lanes.get(usize::from(lane)).ok_or_else(|| no_lane(lane))?;
        let appended = of.append(messages).await?;
        let mut outcomes = Vec::with_capacity(appended.len());
        let mut last = None;
        for outcome in appended {
            outcomes.push(match outcome {
                Ok(Appended { id, duplicate }) => {
                    let event = if duplicate { Event::Duplicate } else { Event::Sent };
                    self.count(event, 1);
                    let sequence = match id.place {
                        MessagePlace::Number(number) => Some(number),
                        MessagePlace::Slot(segment, _) => {
                            if last != Some(segment) {
                                self.appended(lane, Place::Id(segment));
                            }
                            last = Some(segment);
                            None
                        }
                    };
                    Ok(Sent { id, sequence, duplicate })
                }
                Err(error) => Err(error.into()),
            });
        }
        Ok(outcomes)
    }

    /// The lane that a message goes to: by its group in a strict queue, else by its priority and chance.
    pub(super) fn lane_of(&self, config: &QueueConfig, message: &Message) -> u8 {
        if config.lanes == 1 {
            return message.priority;
        }
        let among = u64::from(config.lanes);
        let lane = if config.strict.is_some() {
            u64::from(group_hash(message.group.as_deref()).unwrap_or_default()) % among
        } else {
            self.queue.root.environment().rng.below(among)
        };
        message.priority * config.lanes + u8::try_from(lane).unwrap_or_default()
    }

    /// A message as its lane stores it.
    pub(super) fn lane_message(
        &self,
        config: &QueueConfig,
        message: Message,
        head: &Head,
        lane: u8,
        now: Timestamp,
    ) -> Result<LaneMessage> {
        let delay = message.delay.unwrap_or(config.delay);
        let once = match config.strict {
            Some(strict) => self.once(&strict, &message, lane)?,
            None => None,
        };
        Ok(LaneMessage {
            head: head.encode(),
            group: group_hash(message.group.as_deref()),
            due: (!delay.is_zero()).then(|| now.plus(delay)),
            expires: message.ttl.map(|ttl| now.plus(ttl)),
            once,
            body: message.body,
        })
    }

    /// The mark by which a message of a strict queue is known again.
    fn once(&self, strict: &Strict, message: &Message, lane: u8) -> Result<Option<Once>> {
        let mut hasher = Sha256::new();
        match (&message.dedup_id, strict.dedup) {
            (Some(id), _) => hasher.update([b"i", id.as_bytes()].concat()),
            (None, Dedup::ByContent) => {
                hasher.update(b"c");
                hasher.update(&message.body);
            }
            (None, Dedup::ById) => return Ok(None),
        }
        if strict.dedup_scope == DedupScope::Group {
            hasher.update(b"\0g");
            hasher.update(message.group.as_deref().unwrap_or_default());
        }
        let key = self.mark_key(&hasher.finalize())?;
        let note = Attributes::new().with("lane", i64::from(lane));
        Ok(Some(Once { key, kept: DEDUP_WINDOW, note }))
    }

    /// Where a mark is kept.
    pub(super) fn mark_key(&self, digest: &[u8]) -> Result<Key> {
        Ok(Key::new(format!("{}#once", self.prefix()), digest.to_vec())?)
    }
}

fn lane_count(config: &QueueConfig) -> usize {
    usize::from(config.lanes) * usize::from(config.priorities)
}

fn set(outcomes: &mut [Option<Result<Sent>>], index: usize, outcome: Result<Sent>) {
    if let Some(place) = outcomes.get_mut(index) {
        *place = Some(outcome);
    }
}

/// The hash of a group, by which it is known without reading messages.
pub fn group_hash(group: Option<&str>) -> Option<u32> {
    let digest = Sha256::digest(group?.as_bytes());
    let hash = digest.first_chunk().map_or(0, |first| u32::from_be_bytes(*first));
    // Zero is the group of messages without one.
    Some(hash.max(1))
}
