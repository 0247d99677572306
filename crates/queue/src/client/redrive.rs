//! Bringing dead letters back.

use std::sync::Arc;
use std::time::Duration;

use super::core::ClientCore;
use super::moves::Source;
use super::receive::Receive;
use super::settle::Settle;
use crate::counters::Event;
use crate::error::{QueueError, Result};
use crate::head::Head;
use crate::limits::{MOVE_LEASE, VISIBILITY_MAX};
use crate::message::Delivery;
use crate::names::{ClientId, QueueName};
use crate::queues::Queues;

/// Messages that are moved at a time.
const EACH: u32 = 10;

/// How to bring dead letters back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Redrive {
    /// The queue that they go to. Default: the one that each came from.
    pub to: Option<String>,
    /// Most messages a second. Default: as fast as it goes.
    pub rate: Option<f64>,
    /// Most messages. Default: all that are there.
    pub max: Option<usize>,
}

/// What a redrive did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redriven {
    /// Messages that were brought back.
    pub moved: usize,
    /// Messages that stay, since they say no queue to go to.
    pub homeless: usize,
}

/// How long messages are on loan while they are moved, whatever the queue says of its receivers: at a low rate, until
/// all of a receive had their turn.
fn lease(rate: Option<f64>) -> Duration {
    let each = rate.map_or(Duration::ZERO, pause);
    MOVE_LEASE.saturating_add(each.saturating_mul(EACH)).min(VISIBILITY_MAX)
}

/// The time between two messages at a rate.
fn pause(rate: f64) -> Duration {
    Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX)
}

impl ClientCore {
    pub async fn redrive(self: &Arc<Self>, how: &Redrive) -> Result<Redriven> {
        if how.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err(QueueError::invalid("rate", "is not a positive number"));
        }
        let queues = Queues { root: Arc::clone(&self.queue.root) };
        if let Some(to) = &how.to {
            queues.open(to).await?;
        }
        let clock = Arc::clone(&self.queue.root.environment().clock);
        let mut done = Redriven::default();
        let most = how.max.unwrap_or(usize::MAX);
        let lease = lease(how.rate);
        while done.moved < most {
            let ask = Receive::up_to((EACH as usize).min(most - done.moved)).visibility(lease);
            let dead = self.receive(&ask).await?;
            if dead.is_empty() {
                return Ok(done);
            }
            for message in dead {
                match self.bring_back(&queues, how, &message).await {
                    Ok(true) => done.moved += 1,
                    Ok(false) => done.homeless += 1,
                    Err(error) => {
                        let back = Settle::GiveBack { delay: Duration::ZERO, error: None };
                        let _ = self.settle(&[(message.receipt, back)]).await;
                        return Err(error);
                    }
                }
                if let Some(rate) = how.rate {
                    clock.sleep(pause(rate)).await;
                }
            }
        }
        Ok(done)
    }

    /// Moves one message that is on loan. Says whether it had somewhere to go; if not, it stays on loan for now, so
    /// that the next receive does not find it again.
    async fn bring_back(
        self: &Arc<Self>,
        queues: &Queues,
        how: &Redrive,
        message: &Delivery,
    ) -> Result<bool> {
        let origin = message.origin.as_ref();
        let Some(to) = how.to.as_deref().or(origin.map(|origin| origin.queue.as_str())) else {
            return Ok(false);
        };
        let name = QueueName::new(to)?;
        let client = ClientId::new(origin.map_or(self.id.as_str(), |origin| &origin.client))?;
        let other = queues.open(name.as_str()).await?.core.client(&client)?;
        let head = Head {
            attributes: message.attributes.clone(),
            group: message.group.clone(),
            dedup_id: message.dedup_id.clone(),
            trace: message.trace.clone(),
            origin: None,
            shared: None,
            identity: None,
        };
        let stored = millpond_lanes::Message {
            body: message.body.clone(),
            group: super::send::group_hash(message.group.as_deref()),
            ..millpond_lanes::Message::default()
        };
        // When it was first received is the same however often this is tried, and recent as a rule: processes that have
        // read on do not look far back.
        other
            .accept(&stored, &head, &Source::of(self, &message.id, message.first_received))
            .await?;
        let finish = Settle::Finish { success: true, result: bytes::Bytes::new(), in_time: false };
        for outcome in self.settle(&[(message.receipt.clone(), finish)]).await? {
            match outcome {
                // It took so long that another receiver has it, who decides what becomes of it here.
                Ok(_) | Err(QueueError::LeaseLost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.count(Event::Redriven, 1);
        Ok(true)
    }
}
