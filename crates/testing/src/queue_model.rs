//! A queue as a map.
//!
//! The model knows of each message whether it waits, is on loan or done. Each answer of the queue is judged by it: what
//! was handed out may have been (I3, I4), what a receipt did it had the right to do (I3), and in the end nothing is
//! missing (I2). Where a fault leaves an outcome open, the model allows for both. [`queue_runs`](crate::queue_runs) runs
//! real queues beside it.

use std::collections::{BTreeMap, BTreeSet};

use millpond_queue::{Delivery, QueueError, Receipt, Settled};

/// How long messages are on loan, in seconds.
pub(crate) const VISIBILITY: u64 = 30;
/// After so many receives a message is dead.
pub(crate) const RECEIVES_MAX: u32 = 3;

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Free from then on.
    Waiting(u64),
    /// On loan until then, under the receipt of this number.
    Leased(u64, usize),
    Done,
    /// One of these, by a change whose outcome is unknown: nothing is known until it is seen again.
    Open,
}

#[derive(Debug, Clone)]
pub(crate) struct Modelled {
    group: u8,
    place: Place,
    ends: u64,
    /// How often it was received, as far as is known.
    receives: u32,
}

/// Which queue to run on: strict or not, with dead letters or with messages that end, with faults of a seed or without.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Whether order within groups is strict.
    pub strict: bool,
    /// Whether messages go to the dead letters after three receives, instead of ending by themselves.
    pub dead_letters: bool,
    /// The seed of faults.
    pub faults: Option<u64>,
}

/// What a holder does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deed {
    Ack,
    GiveBack(u8, bool),
    Extend(u8),
}

/// What must be true of a queue.
pub(crate) struct Model {
    pub setting: Setting,
    /// Messages by their number, in the order they were sent.
    messages: BTreeMap<usize, Modelled>,
    /// Each receipt that was given, with its message.
    receipts: Vec<(Receipt, usize)>,
    /// Seconds since the beginning.
    pub now: u64,
    /// Dead letters that were there before the last purge.
    letters_before: u64,
    /// Messages that were handed out, or found among the dead letters.
    seen: BTreeSet<usize>,
}

impl Model {
    pub fn new(setting: Setting) -> Self {
        let (messages, receipts, seen) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        Self { setting, messages, receipts, now: 0, letters_before: 0, seen }
    }

    /// The number of the next message.
    pub fn next(&self) -> usize {
        self.messages.len()
    }

    /// The next message was sent.
    pub fn sent(&mut self, group: u8, delay: u8, ttl: u8) {
        let ends = if ttl == 0 { u64::MAX } else { self.now + u64::from(ttl) };
        let place = Place::Waiting(self.now + u64::from(delay));
        self.messages.insert(self.next(), Modelled { group, place, ends, receives: 0 });
    }

    /// Everything was removed, except so many dead letters.
    pub fn purged(&mut self, letters: u64) {
        self.letters_before = letters;
        self.messages.values_mut().for_each(|message| message.place = Place::Done);
    }

    /// One of the receipts that were given, if any was.
    pub fn receipt(&self, at: u8) -> Option<(usize, Receipt)> {
        let index = usize::from(at).checked_rem(self.receipts.len())?;
        Some((index, self.receipts[index].0.clone()))
    }

    /// Judges what was handed out.
    pub fn received(&mut self, taken: &[Delivery], max: usize) {
        assert!(taken.len() <= max, "more than was asked for");
        let ids: BTreeSet<_> = taken.iter().map(|delivery| delivery.id).collect();
        assert_eq!(ids.len(), taken.len(), "a message came twice");
        let numbers: BTreeSet<usize> = taken.iter().map(number_of).collect();
        let mut last = [None; 3];
        for delivery in taken {
            let number = number_of(delivery);
            let message = self.messages[&number].clone();
            // A standard queue may have it twice when a send was tried again: then each is a message of its own.
            let twice = !self.setting.strict && self.setting.faults.is_some();
            match message.place {
                Place::Waiting(from) => assert!(from <= self.now || twice, "{number} is not due"),
                Place::Leased(until, _) => {
                    assert!(until <= self.now || twice, "{number} has two leases");
                }
                Place::Done => assert!(twice, "{number} is done and comes again"),
                Place::Open => {}
            }
            assert!(message.ends > self.now, "{number} is past its end");
            if self.setting.strict {
                let before = last[usize::from(message.group)].replace(number);
                assert!(before < Some(number), "out of order");
                let waits = |(earlier, other): &(&usize, &Modelled)| {
                    other.group == message.group
                        && !self.is_over(other)
                        && !numbers.contains(earlier)
                };
                let first = self.messages.range(..number).find(waits);
                assert!(
                    first.is_none(),
                    "{number} is before its turn, {first:?}, now {}",
                    self.now
                );
            }
            let place = Place::Leased(self.now + VISIBILITY, self.receipts.len());
            self.receipts.push((delivery.receipt.clone(), number));
            self.seen.insert(number);
            let message = self.messages.get_mut(&number).unwrap();
            (message.place, message.receives) = (place, delivery.receives);
        }
    }

    /// These are among the dead letters: of one that the model takes to have been received less often, a claim was lost,
    /// which counts all the same.
    pub fn dead<'a>(&mut self, letters: impl Iterator<Item = &'a Delivery>) {
        for letter in letters {
            self.messages.get_mut(&number_of(letter)).unwrap().receives = RECEIVES_MAX;
        }
    }

    /// Whether a message is no longer in the way of those behind it, or may be so.
    fn is_over(&self, message: &Modelled) -> bool {
        let on_loan = matches!(message.place, Place::Leased(until, _) if until > self.now);
        let dead = self.setting.dead_letters && message.receives >= RECEIVES_MAX;
        let open = matches!(message.place, Place::Done | Place::Open);
        open || (!on_loan && (dead || message.ends <= self.now))
    }

    /// Judges what became of a receipt.
    pub fn settled(&mut self, index: usize, deed: Deed, outcome: Result<Settled, QueueError>) {
        let number = self.receipts[index].1;
        let (now, twice) = (self.now, !self.setting.strict && self.setting.faults.is_some());
        // Late, at its last receive or past its end, it may have been moved or removed.
        let over = self.is_over(&self.messages[&number]);
        let message = self.messages.get_mut(&number).unwrap();
        let held = matches!(message.place, Place::Leased(_, by) if by == index);
        match outcome {
            Ok(Settled::Now) => {
                assert!(
                    held || message.place == Place::Open || twice,
                    "{number}: not its holder's"
                );
                message.place = match deed {
                    Deed::Ack => Place::Done,
                    Deed::GiveBack(delay, true) => Place::Waiting(now + u64::from(delay)),
                    Deed::GiveBack(_, false) => Place::Waiting(now),
                    Deed::Extend(time) => Place::Leased(now + u64::from(time), index),
                };
            }
            Ok(Settled::Already) => {
                assert!(!held || over || self.setting.faults.is_some());
                // It was done by this very call, whose first answer was lost; or it is among the dead letters.
                if held && !over {
                    message.place =
                        if matches!(deed, Deed::Ack) { Place::Done } else { Place::Open };
                }
            }
            Err(QueueError::LeaseLost { .. }) => {
                let lost = !held || over || self.setting.faults.is_some();
                assert!(lost, "{number}: its holder was refused");
            }
            Err(error) => {
                assert!(self.setting.faults.is_some(), "{error}");
                if held {
                    message.place = Place::Open;
                }
            }
        }
    }

    /// A message that was handed out is done.
    pub fn done(&mut self, delivery: &Delivery) {
        self.messages.get_mut(&number_of(delivery)).unwrap().place = Place::Done;
    }

    /// How many messages there are, dead letters among them.
    pub fn count(&self) -> u64 {
        let there = |message: &&Modelled| {
            let on_loan = matches!(message.place, Place::Leased(until, _) if until > self.now);
            message.place != Place::Done && (on_loan || message.ends > self.now)
        };
        self.messages.values().filter(there).count() as u64 + self.letters_before
    }

    /// Judges a dead letter.
    pub fn found_dead(&mut self, letter: &Delivery) {
        let receives = letter.origin.as_ref().unwrap().receives;
        assert_eq!(receives, RECEIVES_MAX, "dead before its time");
        let done = self.messages[&number_of(letter)].place == Place::Done;
        assert!(!done || self.letters_before > 0 || self.setting.faults.is_some());
        self.seen.insert(number_of(letter));
    }

    /// Everything was received: nothing is missing.
    pub fn ended(&self) {
        for (number, message) in &self.messages {
            let gone = message.place == Place::Done || message.ends <= self.now;
            assert!(self.seen.contains(number) || gone, "{number} is lost");
        }
    }
}

fn number_of(delivery: &Delivery) -> usize {
    delivery.text_lossy().parse().unwrap()
}
