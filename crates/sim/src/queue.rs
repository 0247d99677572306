//! Queues under load, a loose and a strict one: what senders and receivers do, and what must be there afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_queue::{Client, Delivery, Message, QueueConfig, Queues, Receipt, Receive};
use millpond_store::{Environment, Rng, SeededRng};

use crate::load::print;
use crate::report::Acknowledged;

/// Senders to each queue; the strict queue's have a group each.
pub(crate) const SENDERS: u32 = 4;
const RECEIVERS: u32 = 2;
/// Most messages that one receiver acknowledges at a time.
const BATCH: usize = 10;
const NAMES: [&str; 2] = ["loose", "strict"];

async fn open(
    store: &EmbeddedStore,
    environment: &Environment,
    queue: usize,
) -> anyhow::Result<Client> {
    let name = NAMES.get(queue).context("there are two queues")?;
    let config = if queue == 0 { QueueConfig::default() } else { QueueConfig::strict() };
    // What a killed receiver held comes back soon.
    let config = QueueConfig { visibility: Duration::from_millis(50), ..config };
    let ground = Ground::new(Arc::new(store.clone()), environment);
    Ok(Queues::new(&ground).create(name, config).await?.main()?)
}

/// The stripe of a sender: those of the strict queue stand behind those of the loose one.
fn stripe(queue: usize, sender: u32) -> anyhow::Result<u32> {
    Ok(u32::try_from(queue)? * SENDERS + sender)
}

fn message(stripe: u32, serial: u64) -> Message {
    let padding = SeededRng::new(serial ^ (u64::from(stripe) << 48)).below(1_500);
    let padding = "x".repeat(usize::try_from(padding).unwrap_or_default());
    Message::new(format!("{stripe} {serial} {padding}")).group(format!("sender-{stripe}"))
}

fn serial_of(message: &Delivery) -> anyhow::Result<(u32, u64)> {
    let text = message.text().context("not text")?;
    let mut words = text.split(' ');
    let mut word = || words.next().context("too short");
    Ok((word()?.parse()?, word()?.parse()?))
}

#[derive(Clone)]
pub(crate) struct QueueLoad {
    client: Client,
    queue: usize,
    /// Serial numbers of this cycle begin here.
    serials: u64,
}

impl QueueLoad {
    /// The load of both queues.
    pub(crate) async fn open(
        store: &EmbeddedStore,
        environment: &Environment,
        cycle: u32,
    ) -> anyhow::Result<Vec<Self>> {
        let mut loads = Vec::new();
        for queue in 0..NAMES.len() {
            let client = open(store, environment, queue).await?;
            loads.push(Self { client, queue, serials: u64::from(cycle) << 32 });
        }
        Ok(loads)
    }

    /// Sends messages without end.
    pub(crate) async fn send(self, sender: u32) -> anyhow::Result<()> {
        let stripe = stripe(self.queue, sender)?;
        for serial in self.serials.. {
            self.client.send(message(stripe, serial)).await?;
            print(Acknowledged::Sent { stripe, serial })?;
        }
        Ok(())
    }

    /// Receives and acknowledges without end.
    pub(crate) async fn receive(self) -> anyhow::Result<()> {
        let ask = Receive::up_to(BATCH).wait(Duration::from_secs(1));
        loop {
            let got = self.client.receive(&ask).await?;
            let receipts: Vec<Receipt> = got.iter().map(|one| one.receipt.clone()).collect();
            let outcomes = self.client.ack_batch(&receipts).await?;
            for (message, outcome) in got.iter().zip(outcomes) {
                // A loan of 50 ms may end before the work does; then another has it.
                if outcome.is_ok() {
                    let (stripe, serial) = serial_of(message)?;
                    print(Acknowledged::Acked { stripe, serial })?;
                }
            }
        }
    }

    pub(crate) const fn receivers() -> u32 {
        RECEIVERS
    }
}

/// What was acknowledged of the queues.
#[derive(Debug, Default)]
pub(crate) struct QueueExpected {
    /// Sent and not acknowledged, by stripe.
    waiting: BTreeMap<u32, BTreeSet<u64>>,
    acked: BTreeSet<(u32, u64)>,
}

impl QueueExpected {
    pub(crate) fn sent(&mut self, stripe: u32, serial: u64) {
        // A receiver's report may come before the sender's.
        if !self.acked.contains(&(stripe, serial)) {
            self.waiting.entry(stripe).or_default().insert(serial);
        }
    }

    pub(crate) fn acked(&mut self, stripe: u32, serial: u64) {
        self.waiting.entry(stripe).or_default().remove(&serial);
        self.acked.insert((stripe, serial));
    }

    /// Everything sent and not acknowledged is there, and nothing that was acknowledged; each sender may have had a
    /// message under way, and each receiver a batch. What is found is what the next cycle starts from.
    pub(crate) async fn check(&mut self, store: &EmbeddedStore) -> anyhow::Result<()> {
        for (queue, name) in NAMES.iter().enumerate() {
            self.check_queue(store, queue).await.context(*name)?;
        }
        self.acked.clear();
        Ok(())
    }

    async fn check_queue(&mut self, store: &EmbeddedStore, queue: usize) -> anyhow::Result<()> {
        let client = open(store, &Environment::system(), queue).await?;
        let mut found: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for peeked in client.peek(usize::MAX).await? {
            let (stripe, serial) = serial_of(&peeked.message)?;
            let sent = message(stripe, serial);
            ensure!(peeked.message.body == sent.body, "{stripe} {serial} has changed");
            ensure!(!self.acked.contains(&(stripe, serial)), "{stripe} {serial} was acknowledged");
            let serials = found.entry(stripe).or_default();
            let last = serials.last().copied();
            ensure!(last < Some(serial) || queue == 0, "sender {stripe}: {serial} after {last:?}");
            ensure!(serials.insert(serial), "{stripe} {serial} is there twice");
        }
        let mut missing = 0;
        for sender in 0..SENDERS {
            let stripe = stripe(queue, sender)?;
            let found = found.remove(&stripe).unwrap_or_default();
            let waiting = self.waiting.insert(stripe, found.clone()).unwrap_or_default();
            missing += waiting.difference(&found).count();
            let new = found.difference(&waiting).count();
            ensure!(new <= 1, "sender {stripe}: {new} messages that it did not report");
        }
        let under_way = BATCH * usize::try_from(RECEIVERS)?;
        ensure!(missing <= under_way, "{missing} messages are missing, {under_way} may be");
        Ok(())
    }
}
