//! Queues, loose and strict, in a simulated world.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use millpond_queue::{Client, Delivery, Message, Nack, Order, QueueConfig, Queues, Receive};

use super::history::{Deed, History, Span, VISIBILITY};
use super::world::{Process, Scenario};

const NAME: &str = "simulated";
/// Deliveries that a process holds at most.
const HELD_MAX: usize = 12;

#[derive(Clone)]
pub(crate) struct QueueScenario {
    history: Arc<Mutex<History>>,
    strict: bool,
}

impl QueueScenario {
    pub(crate) fn new(strict: bool) -> Self {
        Self { history: Arc::new(Mutex::new(History::new(strict))), strict }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue, however often that must be tried.
    async fn open(&self, process: &Process) -> Client {
        let base = if self.strict { QueueConfig::strict() } else { QueueConfig::default() };
        loop {
            let config = QueueConfig { visibility: VISIBILITY, ..base.clone() };
            if let Ok(queue) = Queues::new(&process.ground).create(NAME, config).await
                && let Ok(client) = queue.main()
            {
                return client;
            }
            process.environment.clock.sleep(Duration::from_millis(100)).await;
        }
    }

    async fn send(&self, process: &Process, client: &Client) {
        let number = self.history().begin_send(process.slot);
        let mut message = Message::new(number.to_string()).group(process.slot.to_string());
        message.dedup_id = self.strict.then(|| number.to_string());
        let outcome = client.send(message).await;
        self.history().end_send(number, outcome.is_ok());
        process.ended(format_args!("send {number}: {}", outcome.is_ok()));
    }

    async fn receive(&self, process: &Process, client: &Client) -> Vec<Delivery> {
        let rng = &process.environment.rng;
        let mut ask = Receive::up_to(1 + usize::try_from(rng.below(5)).unwrap_or_default());
        if rng.chance(0.2) {
            ask = ask.wait(Duration::from_millis(rng.below(5_000)));
        }
        if !self.strict && rng.chance(0.3) {
            ask = ask.order(Order::Lifo);
        }
        let begun = process.now();
        let outcome = client.receive(&ask).await;
        let span = Span { begun, ended: process.now() };
        let taken = outcome.unwrap_or_default();
        self.history().received(&taken, span);
        let numbers: Vec<_> = taken.iter().filter_map(Delivery::text).collect();
        process.ended(format_args!("received {numbers:?}"));
        taken
    }

    async fn settle(&self, process: &Process, client: &Client, delivery: &Delivery) {
        let rng = &process.environment.rng;
        let seconds = Duration::from_secs(1 + rng.below(40));
        let deed = match rng.below(10) {
            0..7 => Deed::Ack,
            7 => Deed::Extend,
            _ => Deed::GiveBack,
        };
        self.history().begin_settle(delivery, deed, process.now(), seconds);
        let outcome = match deed {
            Deed::Ack => client.ack(&delivery.receipt).await,
            Deed::Extend => client.extend(&delivery.receipt, seconds).await,
            Deed::GiveBack if rng.chance(0.5) => client.release(&delivery.receipt).await,
            Deed::GiveBack => {
                let nack = Nack { delay: seconds, error: "simulated".into() };
                client.nack(&delivery.receipt, nack).await
            }
        };
        self.history().end_settle(delivery, deed, process.now(), outcome.is_ok());
        let number = delivery.text().unwrap_or_default();
        process.ended(format_args!("{deed:?} {number}: {outcome:?}"));
    }
}

impl Scenario for QueueScenario {
    async fn work(self, process: Process) -> anyhow::Result<()> {
        let client = self.open(&process).await;
        let mut held = Vec::new();
        let rng = Arc::clone(&process.environment.rng);
        loop {
            match rng.below(10) {
                0..3 => self.send(&process, &client).await,
                3..6 if held.len() < HELD_MAX => {
                    held.extend(self.receive(&process, &client).await);
                }
                6..9 if !held.is_empty() => {
                    let at = usize::try_from(rng.below(held.len() as u64))?;
                    let delivery = held.swap_remove(at);
                    self.settle(&process, &client, &delivery).await;
                    if rng.chance(0.1) {
                        // An old receipt, to be tried again later.
                        held.push(delivery);
                    }
                }
                _ => process.environment.clock.sleep(Duration::from_millis(rng.below(8_000))).await,
            }
        }
    }

    async fn finish(self, process: Process) -> anyhow::Result<()> {
        let client = self.open(&process).await;
        // Longer than any lease or delay: by then everything that is left is free.
        for _ in 0..4 {
            process.environment.clock.sleep(Duration::from_secs(60)).await;
            loop {
                let begun = process.now();
                let taken = client.receive(&Receive::up_to(10)).await?;
                self.history().received(&taken, Span { begun, ended: process.now() });
                if taken.is_empty() {
                    break;
                }
                for delivery in &taken {
                    self.history().begin_settle(delivery, Deed::Ack, process.now(), VISIBILITY);
                    let outcome = client.ack(&delivery.receipt).await;
                    ensure!(outcome.is_ok(), "the last ack: {outcome:?}");
                    self.history().end_settle(delivery, Deed::Ack, process.now(), true);
                }
            }
        }
        let count = client.count().await.context("the last count")?;
        ensure!(count.total() == 0, "left in the end: {count:?}");
        self.history().check_end();
        Ok(())
    }

    fn wrong(&self) -> Option<String> {
        self.history().wrong.clone()
    }
}
