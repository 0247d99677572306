//! A failure before and after every single request of each queue operation.
//!
//! For each operation the number of its requests is counted once; then it is run again and again with a fault at each
//! of them in turn, alone or followed by more so that retries are used up, and tried again as its caller would. Then
//! another process looks: nothing is lost, nothing acknowledged comes back, nothing on loan is unlocked.

use std::sync::Arc;

use millpond_lanes::Ground;
use millpond_queue::{
    Client, DeadLetters, Event, Message, Nack, QueueConfig, Queues, Receipt, Receive, Redrive,
    Result, StatusKeeping,
};
use millpond_store::{Certainty, FaultPlan, Faulty, Store};

use super::{drain, elsewhere, name, process, seconds, take, texts};
use crate::subject::Subject;
use crate::sweep::plans;

/// Requests at most for one operation: more would be a defect of its own.
const REQUESTS_MAX: u64 = 40;

/// More than the retries of all layers together.
const STORM: u64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Send,
    Receive,
    Ack,
    Nack,
    NackTheLastTime,
    ReceiveTheDead,
    Extend,
    Release,
    Purge,
    Redrive,
    Maintain,
}

const OPERATIONS: [Operation; 11] = [
    Operation::Send,
    Operation::Receive,
    Operation::Ack,
    Operation::Nack,
    Operation::NackTheLastTime,
    Operation::ReceiveTheDead,
    Operation::Extend,
    Operation::Release,
    Operation::Purge,
    Operation::Redrive,
    Operation::Maintain,
];

struct World<'a> {
    subject: &'a Subject,
    faulty: Arc<Faulty<Arc<dyn Store>>>,
    client: Client,
    dead: Client,
    receipts: Vec<Receipt>,
    unknown: usize,
    received: Vec<String>,
}

impl<'a> World<'a> {
    /// A queue with the messages `1` and `2` in one segment, as far as an operation needs them.
    async fn new(subject: &'a Subject, strict: bool, operation: Operation) -> Self {
        let environment = subject.impatient();
        let faulty = Arc::new(Faulty::new(subject.store.clone(), &environment));
        let queues = Queues::new(&Ground::new(faulty.clone(), &environment));
        let base = if strict { QueueConfig::strict() } else { QueueConfig::default() };
        let dead = queues.create(&name(), base.clone()).await.unwrap().main().unwrap();
        let receives_max = match operation {
            Operation::NackTheLastTime | Operation::ReceiveTheDead | Operation::Redrive => 1,
            _ => 100,
        };
        let dead_letters = DeadLetters { queue: dead.queue().as_str().to_owned(), receives_max };
        let status = Some(StatusKeeping { keep: seconds(60) });
        let config = QueueConfig { dead_letters: Some(dead_letters), status, ..base };
        let client = queues.create(&name(), config).await.unwrap().main().unwrap();
        let messages = ["1", "2"].map(|text| Message::new(text).group("g"));
        super::send_all(&client, messages).await;
        let (receipts, received) = (Vec::new(), Vec::new());
        let mut world = Self { subject, faulty, client, dead, receipts, unknown: 0, received };
        world.prepare(operation).await;
        world
    }

    async fn prepare(&mut self, operation: Operation) {
        if matches!(operation, Operation::Send | Operation::Receive | Operation::Maintain) {
            return;
        }
        let taken = take(&self.client, 2).await;
        self.receipts = taken.into_iter().map(|delivery| delivery.receipt).collect();
        if matches!(operation, Operation::ReceiveTheDead | Operation::Redrive) {
            self.subject.clock.advance(seconds(31));
        }
        if operation == Operation::Redrive {
            assert!(take(&self.client, 2).await.is_empty());
        }
    }

    async fn operate(&mut self, operation: Operation) -> Result<()> {
        let (client, first) = (&self.client, self.receipts.first());
        let first = first.cloned().unwrap_or_else(|| Receipt::from_text(""));
        match operation {
            Operation::Send => {
                let message = Message::new("3").group("h");
                let strict = client.config().await?.strict.is_some();
                let message = if strict { message.dedup_id("3") } else { message };
                client.send(message).await.map(|_| ())
            }
            Operation::Receive | Operation::ReceiveTheDead => {
                let taken = client.receive(&Receive::up_to(2)).await?;
                self.received.extend(texts(&taken));
                self.receipts.extend(taken.into_iter().map(|delivery| delivery.receipt));
                Ok(())
            }
            Operation::Ack => client.ack(&first).await.map(|_| ()),
            Operation::Nack => {
                let nack = Nack { delay: seconds(60), error: "x".into() };
                client.nack(&first, nack).await.map(|_| ())
            }
            Operation::NackTheLastTime => client.nack(&first, Nack::default()).await.map(|_| ()),
            Operation::Extend => client.extend(&first, seconds(600)).await.map(|_| ()),
            Operation::Release => client.release(&first).await.map(|_| ()),
            Operation::Purge => client.purge().await.map(|_| ()),
            Operation::Redrive => self.dead.redrive(&Redrive::default()).await.map(|_| ()),
            Operation::Maintain => client.maintain().await.map(|_| ()),
        }
    }

    /// What another process receives now, in its order of arrival.
    async fn seen_now(&self) -> Vec<String> {
        texts(&take(&elsewhere(self.subject, &self.client).await, 10).await)
    }

    async fn seen_after(&self, wait: u64) -> Vec<String> {
        self.subject.clock.advance(seconds(wait));
        self.seen_now().await
    }

    /// What is in the dead letters.
    async fn letters(&self) -> Vec<String> {
        let dead = elsewhere(self.subject, &self.dead).await;
        let mut letters = texts(&drain(&dead).await);
        letters.sort();
        letters
    }

    async fn check_receive(&self, case: &str) {
        let mut all = self.received.clone();
        let now = self.seen_now().await;
        assert!(now.iter().all(|text| !all.contains(text)), "{case}: unlocked");
        for receipt in &self.receipts {
            self.client.ack(receipt).await.unwrap_or_else(|e| panic!("{case}: {e}"));
        }
        all.extend(now.clone());
        let later = self.seen_after(31).await;
        all.extend(later.into_iter().filter(|text| !now.contains(text)));
        all.sort();
        assert_eq!(all, ["1", "2"], "{case}");
    }

    async fn check(&self, operation: Operation, case: &str) {
        let none = Vec::<String>::new();
        match operation {
            Operation::Send => {
                let mut seen = self.seen_now().await;
                let extra = seen.iter().filter(|text| *text == "3").count();
                let strict = self.client.config().await.unwrap().strict.is_some();
                let most = if strict { 1 } else { 1 + self.unknown };
                assert!((1..=most).contains(&extra), "{case}: sent {extra} times");
                seen.retain(|text| text != "3");
                assert_eq!(seen, ["1", "2"], "{case}");
            }
            Operation::Receive => self.check_receive(case).await,
            Operation::Ack => {
                assert_eq!(self.seen_now().await, none, "{case}: unlocked");
                assert_eq!(self.seen_after(31).await, ["2"], "{case}: resurrected");
                assert_eq!(self.seen_after(3_600).await, ["2"], "{case}: resurrected");
            }
            Operation::Nack => {
                assert_eq!(self.seen_now().await, none, "{case}: unlocked");
                let strict = self.client.config().await.unwrap().strict.is_some();
                let expected = if strict { none } else { vec!["2".to_owned()] };
                assert_eq!(self.seen_after(31).await, expected, "{case}");
                assert_eq!(self.seen_after(31).await, ["1", "2"], "{case}");
            }
            Operation::NackTheLastTime | Operation::ReceiveTheDead => {
                for _ in 0..3 {
                    assert_eq!(
                        self.seen_after(31).await,
                        none,
                        "{case}: more often than the limit"
                    );
                }
                assert_eq!(self.letters().await, ["1", "2"], "{case}");
                assert_eq!(self.received, none, "{case}");
            }
            Operation::Extend => {
                let strict = self.client.config().await.unwrap().strict.is_some();
                let expected = if strict { none.clone() } else { vec!["2".to_owned()] };
                assert_eq!(self.seen_after(31).await, expected, "{case}: unlocked");
                assert!(!self.seen_after(500).await.contains(&"1".into()), "{case}: unlocked");
                assert!(self.seen_after(100).await.contains(&"1".into()), "{case}: lost");
            }
            Operation::Release => {
                assert_eq!(self.seen_now().await, ["1"], "{case}");
                assert_eq!(self.seen_after(31).await, ["1", "2"], "{case}");
            }
            Operation::Purge => assert_eq!(self.seen_after(3_600).await, none, "{case}"),
            Operation::Redrive => {
                let mut back = texts(&drain(&elsewhere(self.subject, &self.client).await).await);
                back.sort();
                assert_eq!(
                    (back, self.letters().await),
                    (vec!["1".into(), "2".into()], none),
                    "{case}"
                );
            }
            Operation::Maintain => {
                let totals =
                    process(self.subject).open(self.client.queue().as_str()).await.unwrap();
                let totals = totals.main().unwrap().totals().await.unwrap();
                assert_eq!(totals.of(Event::Sent), 2, "{case}");
            }
        }
    }
}

async fn every_request(subject: &Subject, strict: bool) {
    for operation in OPERATIONS {
        let mut calm = World::new(subject, strict, operation).await;
        calm.faulty.follow(FaultPlan::None);
        calm.operate(operation).await.unwrap();
        let requests = calm.faulty.requests();
        assert!((1..=REQUESTS_MAX).contains(&requests), "{requests} requests for {operation:?}");
        calm.check(operation, "without faults").await;
        for (plan_name, plan) in plans(&*subject.store, requests, STORM) {
            let case = format!("{operation:?}, {plan_name}, strict {strict}");
            let mut world = World::new(subject, strict, operation).await;
            world.faulty.follow(plan);
            let mut outcome = world.operate(operation).await;
            for _ in 0..3 {
                world.faulty.follow(FaultPlan::None);
                let Err(error) = &outcome else { break };
                world.unknown += usize::from(error.certainty() == Certainty::Unknown);
                if operation == Operation::Redrive {
                    // What it took stays on loan for a while.
                    subject.clock.advance(seconds(31));
                }
                outcome = world.operate(operation).await;
            }
            outcome.unwrap_or_else(|error| panic!("{case}: {error}"));
            if operation == Operation::Maintain {
                world.operate(operation).await.unwrap();
            }
            world.check(operation, &case).await;
        }
    }
}

/// Every operation of a standard queue.
pub async fn no_fault_loses_resurrects_or_unlocks(subject: &Subject) {
    every_request(subject, false).await;
}

/// Every operation of a strict queue.
pub async fn no_fault_loses_resurrects_or_unlocks_in_strict_queues(subject: &Subject) {
    every_request(subject, true).await;
}
