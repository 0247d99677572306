//! What a queue's messages cost on DynamoDB, in units as the service reports them: `cargo xtask cost`.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_queue::{
    Client, Delivery, Message, Order, QueueConfig, Queues, Receipt, Receive, Strict,
};
use millpond_store::{Environment, Meter, VirtualClock};
use object_store::memory::InMemory;

use crate::support::Setup;
use crate::support::cost::{Cost, Costs, body, judge, most};

const ROUNDS: usize = 10;

struct World {
    _setup: Setup,
    queues: Queues,
    meter: Meter,
    objects: Meter,
}

impl World {
    async fn new(objects: bool, environment: &Environment) -> Self {
        let setup = Setup::new().await;
        let (meter, counted) = (setup.store.meter().clone(), Meter::new());
        let mut ground = Ground::new(Arc::new(setup.store.clone()), environment);
        if objects {
            let store = Objects::new(Arc::new(InMemory::new()), "cargo".into());
            ground = ground.with_objects(store.metered(counted.clone()));
        }
        Self { _setup: setup, queues: Queues::new(&ground), meter, objects: counted }
    }

    async fn client(&self, config: QueueConfig) -> Client {
        let client = self.queues.create("orders", config).await.unwrap().client("c-01").unwrap();
        // What a process does once is not part of what a message costs.
        client.send(Message::new("first")).await.unwrap();
        let first = client.receive(&Receive::default()).await.unwrap().remove(0);
        client.ack(&first.receipt).await.unwrap();
        client
    }

    fn costs(&self, messages: usize) -> Costs {
        let (meter, objects) = (self.meter.clone(), self.objects.clone());
        let costs = Costs { meter, objects, messages: messages as f64 };
        let _ = (costs.meter.take(), costs.objects.take());
        costs
    }
}

async fn send(client: &Client, messages: Vec<Message>) {
    for sent in client.send_batch(messages).await.unwrap() {
        sent.unwrap();
    }
}

async fn ack(client: &Client, got: Vec<Delivery>) {
    let receipts: Vec<Receipt> = got.into_iter().map(|message| message.receipt).collect();
    for outcome in client.ack_batch(&receipts).await.unwrap() {
        outcome.unwrap();
    }
}

/// Sends, receives and acknowledges in batches of this size.
async fn cycle(client: &Client, costs: &Costs, bytes: usize, batch: usize) -> Cost {
    for _ in 0..ROUNDS {
        send(client, vec![Message::new(body(bytes)); batch]).await;
    }
    let mut total = costs.of("send");
    let mut received = Vec::new();
    for _ in 0..ROUNDS {
        let got = client.receive(&Receive::up_to(batch)).await.unwrap();
        assert_eq!(got.len(), batch);
        received.push(got);
    }
    total = total.plus(costs.of("receive"));
    for got in received {
        ack(client, got).await;
    }
    total.plus(costs.of("ack"))
}

#[tokio::test]
async fn send_receive_and_ack_cost_at_most_their_target() {
    let cases = [
        ("1 KB, batches of 10", 1_024, 10, false, most(1.45, 0.5, 0.0, 0.0)),
        ("1 KB, batches of 10, objects", 1_024, 10, true, most(0.35, 0.5, 0.1, 0.1)),
        ("1 KB, one by one", 1_024, 1, false, most(5.0, 1.5, 0.0, 0.0)),
        ("100 bytes, batches of 10", 100, 10, false, most(0.6, 0.5, 0.0, 0.0)),
        ("64 KB", 65_536, 1, false, most(68.0, 20.0, 0.0, 0.0)),
        ("64 KB, objects", 65_536, 1, true, most(3.0, 1.5, 1.0, 1.0)),
    ];
    for (name, bytes, batch, objects, target) in cases {
        println!("queue, {name}");
        let world = World::new(objects, &Environment::system()).await;
        let client = world.client(QueueConfig::default()).await;
        let costs = world.costs(ROUNDS * batch);
        judge(name, cycle(&client, &costs, bytes, batch).await, target);
    }
}

#[tokio::test]
async fn a_lifo_task_costs_at_most_its_target() {
    for (name, batch, wcu) in [("alone", 1, 5.0), ("batches of 10", 10, 1.45)] {
        println!("lifo task, 1 KB, {name}");
        let world = World::new(false, &Environment::system()).await;
        let config = QueueConfig { order: Order::Lifo, ..QueueConfig::default() };
        let client = world.client(config).await;
        let costs = world.costs(ROUNDS * batch);
        judge(name, cycle(&client, &costs, 1_024, batch).await, most(wcu, 3.0, 0.0, 0.0));
    }
}

/// Read units of a receive of 10 and its ack, one message each.
async fn reads(client: &Client, world: &World, rounds: usize) -> f64 {
    let costs = world.costs(rounds * 10);
    for _ in 0..rounds {
        let got = client.receive(&Receive::up_to(10)).await.unwrap();
        assert_eq!(got.len(), 10);
        ack(client, got).await;
    }
    costs.of("receive+ack").rcu
}

/// The largest and the smallest figure are within 20 % of each other.
fn assert_flat(figures: &[f64]) {
    let low = figures.iter().copied().fold(f64::MAX, f64::min);
    let high = figures.iter().copied().fold(0.0, f64::max);
    assert!(high <= low * 1.2, "RCU a message: {figures:?}");
}

#[tokio::test]
async fn strict_groups_read_the_same_at_any_backlog() {
    const EACH: usize = 50;
    // Made once: it is the same for all, and drawing it a hundred thousand times took half of the test.
    let body = body(400);
    let mut figures = Vec::new();
    for backlog in [100_usize, 10_000, 100_000] {
        println!("strict, 100 groups, standing backlog {backlog}");
        let world = World::new(false, &Environment::system()).await;
        let strict = Some(Strict::default());
        let client = world.client(QueueConfig { strict, ..QueueConfig::default() }).await;
        let message = |n: usize| Message::new(body.clone()).group(format!("g{}", n % 100));
        for start in (0..backlog).step_by(EACH) {
            send(&client, (start..start + EACH).map(message).collect()).await;
        }
        reads(&client, &world, EACH / 10).await;
        let mut rcu = 0.0;
        for round in 0..12 {
            send(&client, (round * EACH..(round + 1) * EACH).map(message).collect()).await;
            rcu += reads(&client, &world, EACH / 10).await / 12.0;
        }
        assert!(rcu <= 1.0, "{rcu} RCU a message, at most 1");
        figures.push(rcu);
    }
    assert_flat(&figures);
}

#[tokio::test]
async fn a_receive_costs_the_same_at_any_backlog_and_behind_leased_messages() {
    let mut figures = Vec::new();
    for (backlog, leased) in [(200_usize, 0_usize), (10_000, 0), (2_000, 1_000)] {
        println!("backlog {backlog}, {leased} leased at the head");
        let world = World::new(false, &Environment::system()).await;
        let client = world.client(QueueConfig::default()).await;
        for _ in 0..backlog / 10 {
            send(&client, vec![Message::new(body(1_024)); 10]).await;
        }
        for _ in 0..leased / 100 {
            assert_eq!(client.receive(&Receive::up_to(100)).await.unwrap().len(), 100);
        }
        // A consumer that is running.
        let got = client.receive(&Receive::up_to(10)).await.unwrap();
        ack(&client, got).await;
        figures.push(reads(&client, &world, 10).await);
    }
    assert_flat(&figures);
}

#[tokio::test]
async fn an_idle_queue_costs_at_most_one_read_unit_a_second() {
    let clock = VirtualClock::automatic(Environment::system().now());
    let environment = Environment::simulated(clock, 7);
    let world = World::new(false, &environment).await;
    let client = world.client(QueueConfig::default()).await;
    let costs = world.costs(60);
    let wait = Receive::up_to(10).wait(Duration::from_secs(60));
    assert!(client.receive(&wait).await.unwrap().is_empty());
    println!("idle, for each second");
    judge("idle", costs.of("wait"), most(0.0, 1.0, 0.0, 0.0));
}
