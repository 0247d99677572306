//! A queue as a map, and random operations of several processes that compare real queues with it.
//!
//! The model knows of each message whether it waits, is on loan or done. Each answer of the queue is judged by it: what
//! was handed out may have been (I3, I4), what a receipt did it had the right to do (I3), and in the end nothing is
//! missing (I2). Where a fault leaves an outcome open, the model allows for both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{
    Client, DeadLetters, Delivery, Message, Nack, Order, QueueConfig, QueueError, Queues, Receipt,
    Receive, Settled,
};
use millpond_store::{Environment, FaultPlan, FaultRates, Faulty, Store};

use crate::queue_operations::Operation;
use crate::queue_suite::name;
use crate::subject::Subject;

const VISIBILITY: u64 = 30;
const RECEIVES_MAX: u32 = 3;

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
struct Modelled {
    group: u8,
    place: Place,
    ends: u64,
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

struct World<'a> {
    subject: &'a Subject,
    setting: Setting,
    /// Messages by their number, in the order they were sent.
    messages: BTreeMap<usize, Modelled>,
    /// Each receipt that was given, with its message.
    receipts: Vec<(Receipt, usize)>,
    now: u64,
    faulty: Arc<Faulty<Arc<dyn Store>>>,
    ground: Ground,
    name: String,
    clients: Vec<Client>,
    dead: Client,
    /// Dead letters that were there before the last purge.
    letters_before: u64,
}

/// Runs `operations` in two processes on one queue, and judges every answer.
pub async fn check(subject: &Subject, setting: Setting, operations: Vec<Operation>) {
    let mut world = World::new(subject, setting).await;
    world.follow(true);
    for operation in operations {
        world.run(operation).await;
        if setting.faults.is_none() {
            world.compare_counts().await;
        }
    }
    world.follow(false);
    world.finish().await;
}

impl<'a> World<'a> {
    async fn new(subject: &'a Subject, setting: Setting) -> Self {
        let mut environment = subject.impatient();
        environment.rng =
            Environment::simulated(subject.clock.clone(), setting.faults.unwrap_or(1)).rng;
        let faulty = Arc::new(Faulty::new(subject.store.clone(), &environment));
        let ground = Ground::new(faulty.clone(), &subject.impatient());
        let queues = Queues::new(&ground);
        let base = if setting.strict { QueueConfig::strict() } else { QueueConfig::default() };
        let dead = queues.create(&name(), base.clone()).await.unwrap().main().unwrap();
        let queue = dead.queue().as_str().to_owned();
        let dead_letters = DeadLetters { queue, receives_max: RECEIVES_MAX };
        let dead_letters = setting.dead_letters.then_some(dead_letters);
        let name = name();
        queues.create(&name, QueueConfig { dead_letters, ..base }).await.unwrap();
        let (messages, receipts, clients) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut world = Self {
            subject,
            setting,
            messages,
            receipts,
            now: 0,
            faulty,
            ground,
            name,
            clients,
            dead,
            letters_before: 0,
        };
        world.clients = vec![world.open().await, world.open().await];
        world
    }

    async fn open(&self) -> Client {
        Queues::new(&self.ground).open(&self.name).await.unwrap().main().unwrap()
    }

    /// Lets faults happen, or not.
    fn follow(&self, faults: bool) {
        let rates = FaultRates {
            conflict: 0.03,
            definite: 0.05,
            unknown_before: 0.05,
            unknown_after: 0.08,
            throttle: 0.03,
            ..FaultRates::default()
        };
        let plan = if faults && self.setting.faults.is_some() {
            FaultPlan::Chance(rates)
        } else {
            FaultPlan::None
        };
        self.faulty.follow(plan);
    }

    async fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Send(by, groups, delay, ttl) => self.send(by, &groups, delay, ttl).await,
            Operation::Receive(by, max, newest) => self.receive(by, max, newest).await,
            Operation::Ack(by, at) => self.settle(by, at, Deed::Ack).await,
            Operation::GiveBack(by, at, delay, failed) => {
                self.settle(by, at, Deed::GiveBack(delay, failed)).await;
            }
            Operation::Extend(by, at, time) => self.settle(by, at, Deed::Extend(time)).await,
            Operation::Advance(time) => {
                self.now += u64::from(time);
                self.subject.clock.advance(seconds(time));
            }
            Operation::Reopen(by) => {
                self.follow(false);
                self.clients[usize::from(by)] = self.open().await;
                self.follow(true);
            }
            Operation::Purge(by) => {
                while self.clients[usize::from(by)].purge().await.is_err() {}
                self.letters_before = self.dead.count().await.map_or(0, |count| count.total());
                self.messages.values_mut().for_each(|message| message.place = Place::Done);
            }
        }
    }

    async fn send(&mut self, by: u8, groups: &[u8], delay: u8, ttl: u8) {
        let ttl = if self.setting.dead_letters { 0 } else { ttl };
        for group in groups {
            let number = self.messages.len();
            let mut message = Message::new(number.to_string()).group(group.to_string());
            message.dedup_id = self.setting.strict.then(|| number.to_string());
            message.delay = (delay > 0).then(|| seconds(delay));
            message.ttl = (ttl > 0).then(|| seconds(ttl));
            // Tried until it is known to be there.
            while self.clients[usize::from(by)].send(message.clone()).await.is_err() {}
            let ends = if ttl == 0 { u64::MAX } else { self.now + u64::from(ttl) };
            let place = Place::Waiting(self.now + u64::from(delay));
            self.messages.insert(number, Modelled { group: *group, place, ends, receives: 0 });
            self.subject.clock.advance(Duration::from_millis(1));
        }
    }

    async fn receive(&mut self, by: u8, max: u8, newest: bool) {
        let ask = Receive::up_to(max.into());
        let ask = if newest && !self.setting.strict { ask.order(Order::Lifo) } else { ask };
        match self.clients[usize::from(by)].receive(&ask).await {
            Ok(taken) => self.received(&taken, max.into()),
            // What it may have claimed is nobody's until its lease ends; the model lets it be free.
            Err(error) => assert!(self.setting.faults.is_some(), "{error}"),
        }
    }

    /// Judges what was handed out.
    fn received(&mut self, taken: &[Delivery], max: usize) {
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
            let message = self.messages.get_mut(&number).unwrap();
            (message.place, message.receives) = (place, delivery.receives);
        }
    }

    /// Whether a message is no longer in the way of those behind it, or may be so.
    fn is_over(&self, message: &Modelled) -> bool {
        let on_loan = matches!(message.place, Place::Leased(until, _) if until > self.now);
        let dead = self.setting.dead_letters && message.receives >= RECEIVES_MAX;
        let open = matches!(message.place, Place::Done | Place::Open);
        open || (!on_loan && (dead || message.ends <= self.now))
    }

    async fn settle(&mut self, by: u8, at: u8, deed: Deed) {
        let Some(index) = usize::from(at).checked_rem(self.receipts.len()) else { return };
        let (receipt, number) = self.receipts[index].clone();
        let client = &self.clients[usize::from(by)];
        let outcome = match deed {
            Deed::Ack => client.ack(&receipt).await,
            Deed::GiveBack(delay, true) => {
                client.nack(&receipt, Nack { delay: seconds(delay), error: "x".into() }).await
            }
            Deed::GiveBack(_, false) => client.release(&receipt).await,
            Deed::Extend(time) => client.extend(&receipt, seconds(time)).await,
        };
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

    /// Nothing moves: counts are exact.
    async fn compare_counts(&self) {
        let count = self.clients[0].count().await.unwrap();
        let there = |message: &&Modelled| {
            let on_loan = matches!(message.place, Place::Leased(until, _) if until > self.now);
            message.place != Place::Done && (on_loan || message.ends > self.now)
        };
        let there = self.messages.values().filter(there).count() as u64;
        let dead = self.dead.count().await.unwrap().total();
        assert_eq!(
            count.total() + dead,
            there + self.letters_before,
            "{count:?}, {dead} dead letters"
        );
    }

    /// Receives all that is left: nothing is missing, and nothing that is done comes again.
    async fn finish(&mut self) {
        self.now += 3_600;
        self.subject.clock.advance(Duration::from_secs(3_600));
        let client = self.open().await;
        let mut seen: BTreeSet<usize> = self.receipts.iter().map(|(_, number)| *number).collect();
        for _ in 0..4 {
            loop {
                let taken = client.receive(&Receive::up_to(100)).await.unwrap();
                if taken.is_empty() {
                    break;
                }
                self.received(&taken, 100);
                for delivery in &taken {
                    client.ack(&delivery.receipt).await.unwrap();
                    let message = self.messages.get_mut(&number_of(delivery)).unwrap();
                    message.place = Place::Done;
                    seen.insert(number_of(delivery));
                }
            }
            self.now += 31;
            self.subject.clock.advance(Duration::from_secs(31));
        }
        while let Some(letter) = self.dead.receive(&Receive::default()).await.unwrap().pop() {
            let receives = letter.origin.as_ref().unwrap().receives;
            assert_eq!(receives, RECEIVES_MAX, "dead before its time");
            let done = self.messages[&number_of(&letter)].place == Place::Done;
            assert!(!done || self.letters_before > 0 || self.setting.faults.is_some());
            self.dead.ack(&letter.receipt).await.unwrap();
            seen.insert(number_of(&letter));
        }
        for (number, message) in &self.messages {
            let gone = message.place == Place::Done || message.ends <= self.now;
            assert!(seen.contains(number) || gone, "{number} is lost");
        }
        assert_eq!(client.count().await.unwrap().total(), 0);
    }
}

/// What a holder does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Ack,
    GiveBack(u8, bool),
    Extend(u8),
}

fn seconds(count: u8) -> Duration {
    Duration::from_secs(count.into())
}

fn number_of(delivery: &Delivery) -> usize {
    delivery.text_lossy().parse().unwrap()
}
