//! Random operations of several processes, on a real queue and on its [model](crate::queue_model).

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{Client, DeadLetters, Message, Nack, Order, QueueConfig, Queues, Receive};
use millpond_store::{Environment, FaultPlan, FaultRates, Faulty, Store};

use crate::queue_model::{Deed, Model, RECEIVES_MAX, Setting, VISIBILITY};
use crate::queue_operations::Operation;
use crate::queue_suite::name;
use crate::subject::Subject;

/// More letters than a history makes.
const LETTERS_MAX: usize = 1_000;

struct World<'a> {
    subject: &'a Subject,
    model: Model,
    faulty: Arc<Faulty<Arc<dyn Store>>>,
    ground: Ground,
    name: String,
    clients: Vec<Client>,
    dead: Client,
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
        let (model, clients) = (Model::new(setting), Vec::new());
        let mut world = Self { subject, model, faulty, ground, name, clients, dead };
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
        let plan = if faults && self.model.setting.faults.is_some() {
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
            Operation::Advance(time) => self.advance(time.into()),
            Operation::Reopen(by) => {
                self.follow(false);
                self.clients[usize::from(by)] = self.open().await;
                self.follow(true);
            }
            Operation::Purge(by) => {
                while self.clients[usize::from(by)].purge().await.is_err() {}
                self.model.purged(self.dead.count().await.map_or(0, |count| count.total()));
            }
        }
    }

    fn advance(&mut self, time: u64) {
        self.model.now += time;
        self.subject.clock.advance(Duration::from_secs(time));
    }

    async fn send(&mut self, by: u8, groups: &[u8], delay: u8, ttl: u8) {
        let ttl = if self.model.setting.dead_letters { 0 } else { ttl };
        for group in groups {
            let number = self.model.next().to_string();
            let mut message = Message::new(number.clone()).group(group.to_string());
            message.dedup_id = self.model.setting.strict.then_some(number);
            message.delay = (delay > 0).then(|| seconds(delay));
            message.ttl = (ttl > 0).then(|| seconds(ttl));
            // Tried until it is known to be there.
            while self.clients[usize::from(by)].send(message.clone()).await.is_err() {}
            self.model.sent(*group, delay, ttl);
            self.subject.clock.advance(Duration::from_millis(1));
        }
    }

    async fn receive(&mut self, by: u8, max: u8, newest: bool) {
        let ask = Receive::up_to(max.into());
        let ask = if newest && !self.model.setting.strict { ask.order(Order::Lifo) } else { ask };
        let received = self.clients[usize::from(by)].receive(&ask).await;
        if self.model.setting.faults.is_some() {
            self.look_at_dead_letters(true).await;
        }
        match received {
            Ok(taken) => self.model.received(&taken, max.into()),
            // What it may have claimed is nobody's until its lease ends; the model lets it be free.
            Err(error) => assert!(self.model.setting.faults.is_some(), "{error}"),
        }
    }

    /// Tells the model what the dead letters are.
    async fn look_at_dead_letters(&mut self, faults: bool) {
        self.follow(false);
        let letters = self.dead.peek(LETTERS_MAX).await.unwrap();
        self.follow(faults);
        assert!(letters.len() < LETTERS_MAX, "too many letters to know them all");
        self.model.dead(letters.iter().map(|letter| &letter.message));
    }

    async fn settle(&mut self, by: u8, at: u8, deed: Deed) {
        let Some((index, receipt)) = self.model.receipt(at) else { return };
        let client = &self.clients[usize::from(by)];
        let outcome = match deed {
            Deed::Ack => client.ack(&receipt).await,
            Deed::GiveBack(delay, true) => {
                client.nack(&receipt, Nack { delay: seconds(delay), error: "x".into() }).await
            }
            Deed::GiveBack(_, false) => client.release(&receipt).await,
            Deed::Extend(time) => client.extend(&receipt, seconds(time)).await,
        };
        self.model.settled(index, deed, outcome);
    }

    /// Nothing moves: counts are exact.
    async fn compare_counts(&self) {
        let count = self.clients[0].count().await.unwrap();
        let dead = self.dead.count().await.unwrap().total();
        let expected = self.model.count();
        assert_eq!(count.total() + dead, expected, "{count:?}, {dead} dead letters");
    }

    /// Receives all that is left.
    async fn finish(&mut self) {
        self.advance(3_600);
        let client = self.open().await;
        for _ in 0..4 {
            loop {
                let taken = client.receive(&Receive::up_to(100)).await.unwrap();
                self.look_at_dead_letters(false).await;
                if taken.is_empty() {
                    break;
                }
                self.model.received(&taken, 100);
                for delivery in &taken {
                    client.ack(&delivery.receipt).await.unwrap();
                    self.model.done(delivery);
                }
            }
            self.advance(VISIBILITY + 1);
        }
        while let Some(letter) = self.dead.receive(&Receive::default()).await.unwrap().pop() {
            self.model.found_dead(&letter);
            self.dead.ack(&letter.receipt).await.unwrap();
        }
        self.model.ended();
        assert_eq!(client.count().await.unwrap().total(), 0);
    }
}

fn seconds(count: u8) -> Duration {
    Duration::from_secs(count.into())
}
