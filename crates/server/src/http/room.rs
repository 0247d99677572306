//! How much the server has in hand: requests, waits and bytes, each with its own bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// In hand. Answers may take it beyond the bound, so no semaphore can count it.
    blocks: Arc<AtomicUsize>,
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
pub struct Held {
    all: Arc<AtomicUsize>,
    blocks: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.blocks, Ordering::AcqRel);
    }
}

impl Room {
    pub fn new(limits: &Limits, clock: &Arc<dyn Clock>) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            waits: Arc::new(Semaphore::new(limits.waits_max)),
            blocks: Arc::default(),
            blocks_max: limits.bodies_bytes_max.div_ceil(BLOCK),
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

    /// Nothing yet.
    pub fn nothing(&self) -> Held {
        Held { all: Arc::clone(&self.blocks), blocks: 0 }
    }

    /// Counts up to `bytes` in all for one request's body, at once or not at all.
    pub fn hold(&self, held: &mut Held, bytes: usize) -> Result<(), Refusal> {
        let more = bytes.div_ceil(BLOCK).saturating_sub(held.blocks);
        if more == 0 {
            return Ok(());
        }
        let fits = |taken: usize| taken.checked_add(more).filter(|all| *all <= self.blocks_max);
        let counted = self.blocks.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        counted.map_err(|_| Refusal::NoRoom)?;
        held.blocks += more;
        Ok(())
    }

    /// Whether a request may begin: not while answers have taken more than there is.
    pub fn check(&self) -> Result<(), Refusal> {
        let over = self.blocks.load(Ordering::Acquire) > self.blocks_max;
        if over { Err(Refusal::NoRoom) } else { Ok(()) }
    }

    /// The bytes of an answer, counted until the last of them is sent or dropped. They are counted beyond the bound
    /// too: what an answer says has happened, and whoever is not told, of messages that are on loan now, say, cannot
    /// know. New requests pay for it.
    pub fn counted(&self, bytes: Bytes) -> Bytes {
        let mut held = self.nothing();
        held.blocks = bytes.len().div_ceil(BLOCK);
        self.blocks.fetch_add(held.blocks, Ordering::AcqRel);
        Bytes::from_owner(Counted { bytes, _held: held })
    }

    /// Requests in work, receives that wait, and bytes in memory.
    pub fn in_hand(&self) -> (usize, usize, usize) {
        let taken =
            |most: usize, semaphore: &Semaphore| most - semaphore.available_permits().min(most);
        (
            taken(self.requests_max, &self.requests),
            taken(self.waits_max, &self.waits),
            self.blocks.load(Ordering::Acquire) * BLOCK,
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

    #[test]
    fn bytes_are_counted_until_they_are_dropped() {
        let room = room();
        let mut held = room.nothing();
        room.hold(&mut held, 1).unwrap();
        room.hold(&mut held, BLOCK + 1).unwrap();
        room.hold(&mut held, BLOCK + 2).unwrap();
        assert_eq!(room.in_hand().2, 2 * BLOCK);
        let answer = room.counted(Bytes::from(vec![7; 2 * BLOCK]));
        assert_eq!(room.hold(&mut held, 2 * BLOCK + 1), Err(Refusal::NoRoom));
        let part = answer.slice(1..5);
        drop(answer);
        assert_eq!(room.in_hand().2, 4 * BLOCK, "a part of them is still there");
        drop((part, held));
        assert_eq!(room.in_hand().2, 0);
    }

    #[test]
    fn an_answer_that_was_made_has_room_and_new_requests_have_none_until_it_is_gone() {
        let room = room();
        let mut held = room.nothing();
        room.hold(&mut held, 3 * BLOCK).unwrap();
        let answer = room.counted(Bytes::from(vec![7; 9 * BLOCK]));
        assert_eq!(room.in_hand().2, 12 * BLOCK);
        assert_eq!(room.check(), Err(Refusal::NoRoom));
        assert_eq!(room.hold(&mut room.nothing(), 1), Err(Refusal::NoRoom));
        drop(answer);
        assert_eq!((room.check(), room.hold(&mut held, 4 * BLOCK)), (Ok(()), Ok(())));
    }
}
