//! How much the server has in hand: requests, waits and bytes, each with its own bound.

use std::sync::Arc;

use bytes::Bytes;
use millpond_store::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::Refusal;
use super::limits::TURN_TIMEOUT;
use crate::config::Limits;

/// Bytes are counted in blocks of this size.
const BLOCK: usize = 1_024;

/// The bounds as they are used.
#[derive(Debug, Clone)]
pub struct Room {
    requests: Arc<Semaphore>,
    waits: Arc<Semaphore>,
    blocks: Arc<Semaphore>,
    blocks_max: usize,
    waits_max: usize,
    requests_max: usize,
    clock: Arc<dyn Clock>,
}

/// The turn of a request; it ends when this is dropped.
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// Bytes that are counted while this lives.
#[derive(Default)]
pub struct Held {
    permit: Option<OwnedSemaphorePermit>,
    blocks: usize,
}

impl Room {
    pub fn new(limits: &Limits, clock: &Arc<dyn Clock>) -> Self {
        let blocks_max = limits.bodies_bytes_max.div_ceil(BLOCK).min(Semaphore::MAX_PERMITS);
        Self {
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            waits: Arc::new(Semaphore::new(limits.waits_max)),
            blocks: Arc::new(Semaphore::new(blocks_max)),
            blocks_max,
            waits_max: limits.waits_max,
            requests_max: limits.requests_max,
            clock: Arc::clone(clock),
        }
    }

    /// The turn of a request that does not wait for anything to happen. It may queue for a moment.
    pub async fn request(&self) -> Result<Turn, Refusal> {
        let turn = Arc::clone(&self.requests).acquire_owned();
        tokio::select! {
            biased;
            permit = turn => permit.map(|permit| Turn { _permit: permit }).map_err(|_| Refusal::Busy),
            () = self.clock.sleep(TURN_TIMEOUT) => Err(Refusal::Busy),
        }
    }

    /// The turn of a request that may wait for long.
    pub fn wait(&self) -> Result<Turn, Refusal> {
        let permit = Arc::clone(&self.waits).try_acquire_owned();
        permit.map(|permit| Turn { _permit: permit }).map_err(|_| Refusal::TooManyWaits)
    }

    /// Counts up to `bytes` in all for one body, at once or not at all.
    pub fn hold(&self, held: &mut Held, bytes: usize) -> Result<(), Refusal> {
        let more = bytes.div_ceil(BLOCK).saturating_sub(held.blocks);
        if more == 0 {
            return Ok(());
        }
        let wanted = u32::try_from(more).map_err(|_| Refusal::NoRoom)?;
        let permit = Arc::clone(&self.blocks).try_acquire_many_owned(wanted);
        let permit = permit.map_err(|_| Refusal::NoRoom)?;
        held.blocks += more;
        match &mut held.permit {
            Some(first) => first.merge(permit),
            none => *none = Some(permit),
        }
        Ok(())
    }

    /// The same bytes, counted until the last of them is sent or dropped.
    pub fn counted(&self, bytes: Bytes) -> Result<Bytes, Refusal> {
        let mut held = Held::default();
        self.hold(&mut held, bytes.len())?;
        Ok(Bytes::from_owner(Counted { bytes, _held: held }))
    }

    /// Requests in work, receives that wait, and bytes in memory.
    pub fn in_hand(&self) -> (usize, usize, usize) {
        let taken =
            |most: usize, semaphore: &Semaphore| most - semaphore.available_permits().min(most);
        (
            taken(self.requests_max, &self.requests),
            taken(self.waits_max, &self.waits),
            taken(self.blocks_max, &self.blocks) * BLOCK,
        )
    }
}

struct Counted {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::{Timestamp, VirtualClock};

    use super::*;

    fn room() -> Room {
        let clock = VirtualClock::automatic(Timestamp::from_millis(0));
        let shared: Arc<dyn Clock> = Arc::new(clock);
        Room::new(&Limits::example(), &shared)
    }

    #[tokio::test]
    async fn waits_do_not_take_the_turns_of_requests() {
        let room = room();
        let wait = room.wait().unwrap();
        assert_eq!(room.wait().err(), Some(Refusal::TooManyWaits));
        let turn = room.request().await.unwrap();
        assert_eq!(room.request().await.err(), Some(Refusal::Busy), "a second one queues in vain");
        assert_eq!(room.in_hand(), (1, 1, 0));
        drop((wait, turn));
        assert_eq!(room.in_hand(), (0, 0, 0));
        assert!(room.wait().is_ok() && room.request().await.is_ok());
    }

    #[tokio::test]
    async fn bytes_are_counted_until_they_are_dropped() {
        let room = room();
        let mut held = Held::default();
        room.hold(&mut held, 1).unwrap();
        room.hold(&mut held, BLOCK + 1).unwrap();
        room.hold(&mut held, BLOCK + 2).unwrap();
        assert_eq!(room.in_hand().2, 2 * BLOCK);
        let answer = room.counted(Bytes::from(vec![7; 2 * BLOCK])).unwrap();
        assert_eq!(room.hold(&mut held, 2 * BLOCK + 1), Err(Refusal::NoRoom));
        let part = answer.slice(1..5);
        drop(answer);
        assert_eq!(room.in_hand().2, 4 * BLOCK, "a part of them is still there");
        drop((part, held));
        assert_eq!(room.in_hand().2, 0);
    }
}
