//! What the log costs on DynamoDB, in units as the service reports them: `cargo xtask cost`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_log::{
    AppendOptions, Consumer, ConsumerOptions, Log, NewRecord, ProducerId, Sequence, Topic,
    TopicConfig,
};
use millpond_store::{Environment, Meter, Operation, Rng as _, SeededRng, VirtualClock};
use object_store::memory::InMemory;

use crate::support::Setup;

const ROUNDS: u64 = 10;
const BATCH: usize = 100;

/// Bytes that do not compress.
fn body(bytes: usize) -> Bytes {
    let rng = SeededRng::new(bytes as u64);
    (0..bytes).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
}

struct World {
    setup: Setup,
    ground: Ground,
    objects: Meter,
    clock: VirtualClock,
}

impl World {
    async fn new() -> Self {
        let setup = Setup::new().await;
        let clock = VirtualClock::new(Environment::system().now());
        let environment = Environment::simulated(clock.clone(), 11);
        let objects = Meter::new();
        let store = Objects::new(Arc::new(InMemory::new()), "cargo".into());
        let ground = Ground::new(Arc::new(setup.store.clone()), &environment)
            .with_objects(store.metered(objects.clone()));
        Self { setup, ground, objects, clock }
    }

    async fn topic(&self, partitions: u32) -> Topic {
        let config = TopicConfig::with_partitions(partitions);
        Log::new(&self.ground).create("orders", config).await.unwrap()
    }

    fn forget(&self) {
        let _ = (self.setup.store.meter().take(), self.objects.take());
    }

    /// Prints what was used since the last call, for each of `records`, and holds it to `most`: write units, puts
    /// and gets.
    fn judge(&self, name: &str, records: f64, most: [f64; 3]) {
        let (store, objects) = (self.setup.store.meter().take().total(), self.objects.take());
        let requests = |operation| objects.of(operation).requests as f64 / records;
        let (wcu, rcu) = (store.write_units / records, store.read_units / records);
        let [puts, gets] = [Operation::ObjectPut, Operation::ObjectGet].map(requests);
        println!(
            "{name}\n  measured   {wcu:>8.4} WCU {rcu:>8.4} RCU {puts:>8.4} PUT {gets:>8.4} GET"
        );
        let [wcu_most, puts_most, gets_most] = most;
        println!(
            "  at most    {wcu_most:>8.4} WCU              {puts_most:>8.4} PUT {gets_most:>8.4} GET"
        );
        for (what, value, most) in
            [("WCU", wcu, wcu_most), ("PUT", puts, puts_most), ("GET", gets, gets_most)]
        {
            assert!(value <= most + 1e-9, "{name}: {value} {what}, at most {most}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_record_costs_at_most_its_target() {
    let world = World::new().await;
    let topic = world.topic(8).await;
    let batch = || vec![NewRecord::new(body(1_024)); BATCH];
    let records = ROUNDS as f64 * BATCH as f64;
    topic.append_to(0, batch(), &AppendOptions::default()).await.unwrap();
    world.forget();
    for _ in 0..ROUNDS {
        topic.append_to(0, batch(), &AppendOptions::default()).await.unwrap();
    }
    world.judge("log: append 1 KB, batches of 100, one partition", records, [0.02, 0.01, 0.0]);

    let spread =
        || (0..8 * BATCH as u64).map(|n| NewRecord::keyed(n.to_be_bytes().to_vec(), body(1_024)));
    for _ in 0..ROUNDS {
        assert!(topic.append_batch(spread().collect()).await.unwrap().iter().all(Result::is_ok));
    }
    world.judge(
        "log: append 1 KB, 8 partitions of about 100 at once",
        8.0 * records,
        [0.02, 0.002, 0.0],
    );

    let producer = ProducerId::new("till-1").unwrap();
    for round in 0..ROUNDS {
        let first = round * BATCH as u64;
        let sequence = Some(Sequence { producer: producer.clone(), first });
        let options = AppendOptions { fence: Some(1), sequence };
        topic.append_to(1, batch(), &options).await.unwrap();
    }
    world.judge("log: append 1 KB, batches of 100, idempotent", records, [0.08, 0.01, 0.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_and_checkpointing_costs_at_most_its_target() {
    let world = World::new().await;
    let topic = world.topic(1).await;
    for _ in 0..ROUNDS {
        let batch = vec![NewRecord::new(body(1_024)); BATCH];
        topic.append_to(0, batch, &AppendOptions::default()).await.unwrap();
    }
    // Another process: nothing is cached.
    let reader = Log::new(&world.ground).topic("orders").await.unwrap();
    let consumer = reader.consumer("billing", ConsumerOptions::default()).await.unwrap();
    let at = consumer.balance().await.unwrap().taken[0];
    world.forget();
    for round in 1..=ROUNDS {
        let batch = consumer.poll(at, BATCH).await.unwrap();
        assert_eq!(batch.records.len(), BATCH);
        assert_eq!(batch.next, round * BATCH as u64);
        consumer.checkpoint(at, batch.next).await.unwrap();
    }
    let records = ROUNDS as f64 * BATCH as f64;
    world.judge("log: read + checkpoint, batches of 100", records, [0.02, 0.0, 0.01]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeping_a_thousand_leases_costs_at_most_its_target() {
    const PARTITIONS: u32 = 1_000;
    const WORKERS: usize = 10;
    const SECONDS: u64 = 60;
    let world = World::new().await;
    let topic = world.topic(PARTITIONS).await;
    let join = || topic.consumer("billing", ConsumerOptions::default());
    let workers: Vec<_> = join_all((0..WORKERS).map(|_| join())).await;
    let workers: Vec<_> = workers.into_iter().map(Result::unwrap).collect();
    // They share the partitions among them in a few rounds.
    while workers.iter().any(|worker| worker.held().len() != PARTITIONS as usize / WORKERS) {
        let balanced = join_all(workers.iter().map(Consumer::balance)).await;
        assert!(balanced.iter().all(Result::is_ok), "{balanced:?}");
    }
    world.forget();
    let interval = workers[0].beat_interval();
    for _ in 0..SECONDS / interval.as_secs() {
        world.clock.advance(interval);
        for worker in &workers {
            worker.beat().await.unwrap();
            let balance = worker.balance().await.unwrap();
            assert!(balance.taken.is_empty() && balance.released.is_empty());
        }
    }
    assert!(interval <= Duration::from_secs(SECONDS));
    world.judge("leases: 1,000 partitions, 10 workers, a second", SECONDS as f64, [10.0, 0.0, 0.0]);
}
