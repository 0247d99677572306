//! Being told what was passed.

use std::collections::VecDeque;
use std::sync::Arc;

use millpond_store::{ChangeHint, Store as _};

use crate::advance::Advance;
use crate::config::LatePolicy;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::hub::Inbox;
use crate::names::QueueName;
use crate::read::{Delivered, check_range};
use crate::sequencer::{Place, Sequencer};

/// Where a subscription begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum From {
    /// With what is passed from now on.
    Now,
    /// With the first number that is kept.
    Start,
    /// With this number.
    Number(u64),
    /// Where the reader of this name is. Commit to the reader what was dealt with: after a crash the subscription
    /// begins there again, so that everything is told at least once.
    Reader(String),
}

/// What happened in a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The cursor passed these numbers.
    Advanced(Advance),
    /// A message came after its number was skipped, since the subscription began; `late` lists all of them.
    Late(Delivered),
    /// The queue is parked, since this number did not come.
    Parked(u64),
}

/// What a subscription tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// The queue.
    pub queue: QueueName,
    /// The epoch: ranges of one epoch follow each other without gap or repeat; a new one begins where a rewind or a
    /// reset set the cursor to.
    pub epoch: u64,
    /// What happened.
    pub event: Event,
}

/// The changes of one queue, from its stored cursor: whoever moved it, in whatever process.
#[derive(Debug)]
pub struct Subscription {
    sequencer: Sequencer,
    place: Place,
    hint: ChangeHint,
    /// Where the subscriber is; none while the queue has not begun.
    seen: Option<Seen>,
    waiting: VecDeque<Announcement>,
}

#[derive(Debug, Clone)]
struct Seen {
    epoch: u64,
    life: u64,
    next: u64,
    lates: u64,
    parked: Option<u64>,
}

impl Seen {
    const fn at(cursor: &Cursor, next: u64) -> Self {
        let Cursor { epoch, life, lates, .. } = *cursor;
        Self { epoch, life, next, lates, parked: None }
    }
}

/// What this process passes in any queue, through one sequencer and its clones, from the subscription on. What other
/// processes pass is told by the store's own stream, where it has one, and by subscriptions to single queues.
#[derive(Debug)]
pub struct AllSubscription {
    inbox: Arc<Inbox>,
}

impl Sequencer {
    /// Tells the changes of one queue, in order, each at least once.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`](crate::SequencerError::OutOfRange) when the place to begin is not kept.
    pub async fn subscribe(&self, queue: &str, from: From) -> Result<Subscription> {
        let place = self.place(queue)?;
        // The hint first, so that no change comes between it and the look.
        let hint = self.store.changed(&place.partition);
        let cursor = self.stored_cursor(&place).await?.map(|stored| stored.cursor);
        let seen = match (cursor, from) {
            (None, _) => None,
            (Some(cursor), From::Now) => Some(Seen::at(&cursor, cursor.next)),
            (Some(cursor), From::Start) => Some(Seen::at(&cursor, cursor.floor)),
            (Some(cursor), From::Number(next)) => {
                check_range(&place, &cursor, &(next..next))?;
                Some(Seen::at(&cursor, next))
            }
            (Some(cursor), From::Reader(name)) => {
                let next = self.reader(queue, &name)?.position().await?;
                check_range(&place, &cursor, &(next..next))?;
                Some(Seen::at(&cursor, next))
            }
        };
        Ok(Subscription { sequencer: self.clone(), place, hint, seen, waiting: VecDeque::new() })
    }

    /// Tells what this process passes in any queue.
    ///
    /// # Errors
    /// When there are too many subscriptions.
    pub fn subscribe_all(&self) -> Result<AllSubscription> {
        Ok(AllSubscription { inbox: self.hub.subscribe()? })
    }
}

impl Subscription {
    /// Waits for the next change.
    ///
    /// # Errors
    /// As the store's; call it again.
    pub async fn next(&mut self) -> Result<Announcement> {
        loop {
            if let Some(announcement) = self.waiting.pop_front() {
                return Ok(announcement);
            }
            self.look().await?;
            if self.waiting.is_empty() {
                self.hint.wait().await;
            } else {
                self.hint.found();
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        let Some(stored) = self.sequencer.stored_cursor(&self.place).await? else {
            return Ok(());
        };
        let cursor = &stored.cursor;
        let mut seen = match self.seen.clone() {
            // Everything of a queue that begins now is new.
            None => Seen { lates: 0, ..Seen::at(cursor, cursor.start) },
            Some(seen) if seen.epoch == cursor.epoch => seen,
            Some(seen) => {
                let lates = if seen.life == cursor.life { seen.lates } else { 0 };
                Seen { lates, ..Seen::at(cursor, cursor.base) }
            }
        };
        let mut events = Vec::new();
        if cursor.lates > seen.lates && self.sequencer.config.late == LatePolicy::Deliver {
            let late = self.sequencer.late_of(&self.place, cursor, seen.lates).await?;
            events.extend(late.into_iter().map(Event::Late));
        }
        seen.lates = cursor.lates;
        if let Some(passed) = Advance::new(seen.next, cursor.next) {
            seen.next = cursor.next;
            events.push(Event::Advanced(passed));
        }
        if cursor.parked != seen.parked {
            seen.parked = cursor.parked;
            events.extend(cursor.parked.map(Event::Parked));
        }
        let (queue, epoch) = (&self.place.queue, cursor.epoch);
        self.waiting.extend(events.into_iter().map(|event| Announcement {
            queue: queue.clone(),
            epoch,
            event,
        }));
        self.seen = Some(seen);
        Ok(())
    }
}

impl AllSubscription {
    /// Waits for the next change of any queue. Ranges of one queue that were not asked for yet are joined.
    ///
    /// # Errors
    /// [`SequencerError::Lagged`](crate::SequencerError::Lagged) when too many queues changed without being asked for.
    pub async fn next(&mut self) -> Result<Announcement> {
        let (queue, epoch, passed) = self.inbox.next().await?;
        Ok(Announcement { queue, epoch, event: Event::Advanced(passed) })
    }
}
