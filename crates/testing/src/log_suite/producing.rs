//! The producer: batches, backpressure, order, flush.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_log::{Log, LogError, NewRecord, ProducerOptions, Receipt, TopicConfig};
use millpond_store::{Fault, FaultPlan, FaultRates, Faulty, Meter, Metered, Operation};
use object_store::memory::InMemory;

use super::{LogSubject, number, payload, read_all, record, until};
use crate::subject::bounded;

/// Records that come within the linger, or fill a batch, go together; a flush waits for no company.
pub async fn a_producer_batches_by_linger_and_size(world: &LogSubject) {
    let topic = world.topic(1).await;
    let timed = world.timed(&topic).await;
    let clock = &world.subject.clock;
    let linger = Some(Duration::from_millis(50));
    let options = ProducerOptions { linger, batch_bytes: 1_000, ..ProducerOptions::default() };
    let producer = timed.producer(options).unwrap();
    let mut receipts = Vec::new();
    for n in 0..3 {
        receipts.push(producer.send(record(n, 10)).await.unwrap());
    }
    until("the producer's wait", || async { clock.sleepers() > 0 }).await;
    assert_eq!(read_all(&topic, 0).await.len(), 0, "it did not wait for company");
    clock.advance(Duration::from_millis(50));
    let stored = bounded("the batch", join_all(receipts.into_iter().map(Receipt::stored))).await;
    assert!(stored.into_iter().map(|at| at.unwrap().offset).eq(0..3));
    // Enough bytes: no wait.
    let full = producer.send(record(3, 1_000)).await.unwrap();
    assert_eq!(bounded("a full batch", full.stored()).await.unwrap().offset, 3);
    let last = producer.send(record(4, 10)).await.unwrap();
    bounded("the flush", producer.flush()).await.unwrap();
    assert_eq!(last.stored().await.unwrap().offset, 4);
    let closing = producer.send(record(5, 10)).await.unwrap();
    bounded("closing", producer.close()).await.unwrap();
    assert_eq!(closing.stored().await.unwrap().offset, 5);
    let numbers: Vec<u64> = read_all(&topic, 0).await.iter().map(number).collect();
    assert!(numbers.into_iter().eq(0..6));
}

/// Who sends more than the buffer holds waits until some of it is stored.
pub async fn a_producer_holds_back_who_sends_too_much(world: &LogSubject) {
    let topic = world.topic(1).await;
    let timed = world.timed(&topic).await;
    let linger = Some(Duration::from_secs(10));
    let options = ProducerOptions { linger, buffer_bytes: 5_000, ..ProducerOptions::default() };
    let producer = Arc::new(timed.producer(options).unwrap());
    for n in 0..4 {
        producer.send(record(n, 1_100)).await.unwrap();
    }
    let blocked = tokio::spawn({
        let producer = producer.clone();
        async move { producer.send(record(4, 1_100)).await.unwrap().stored().await }
    });
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!blocked.is_finished(), "there was no room");
    bounded("the flush", producer.flush()).await.unwrap();
    until("the linger", || async {
        world.subject.clock.advance(Duration::from_secs(1));
        blocked.is_finished()
    })
    .await;
    assert_eq!(blocked.await.unwrap().unwrap().offset, 4);
}

/// Failures are tried again before anything later goes; what cannot be stored takes what waits behind it along.
pub async fn a_producer_keeps_order_when_the_store_fails(world: &LogSubject) {
    let environment = world.subject.impatient();
    let faulty = Arc::new(Faulty::new(world.subject.store.clone(), &environment));
    let mut ground = Ground::new(faulty.clone(), &environment);
    if let Some(objects) = &world.objects {
        ground = ground.with_objects(Objects::new(objects.clone(), "faulty".into()));
    }
    let topic =
        Log::new(&ground).create(&world.name(), TopicConfig::with_partitions(1)).await.unwrap();
    let options = ProducerOptions { linger: Some(Duration::ZERO), ..ProducerOptions::default() };
    let producer = topic.producer(options).unwrap();
    // Every third request fails, in one way or another.
    let rates = FaultRates {
        throttle: 0.1,
        unknown_before: 0.1,
        unknown_after: 0.15,
        ..FaultRates::default()
    };
    faulty.follow(FaultPlan::Chance(rates));
    for n in 0..30_u64 {
        producer.send(record(n, 2_000)).await.unwrap();
    }
    bounded("the flush", producer.flush()).await.unwrap();
    faulty.follow(FaultPlan::None);
    let numbers: Vec<u64> = read_all(&topic, 0).await.iter().map(number).collect();
    assert!(numbers.iter().copied().eq(0..30), "{numbers:?}");

    // The store fails for good: the records fail, the later ones without being tried, and nothing is out of order.
    faulty.follow(FaultPlan::Script((0..1_000).map(|at| (at, Fault::Definite)).collect()));
    let mut receipts = Vec::new();
    for n in 100..105 {
        receipts.push(producer.send(record(n, 2_000)).await.unwrap());
    }
    bounded("the failure", producer.flush()).await.unwrap_err();
    for (at, receipt) in receipts.into_iter().enumerate() {
        let failed = receipt.stored().await;
        assert!(
            matches!(failed, Err(LogError::Store(_) | LogError::NotTried { .. })),
            "{at}: {failed:?}"
        );
    }
    faulty.follow(FaultPlan::None);
    producer.send(record(200, 10)).await.unwrap();
    bounded("well again", producer.flush()).await.unwrap();
    let last: Vec<u64> = read_all(&topic, 0).await.iter().map(number).skip(30).collect();
    assert_eq!(last, [200]);
}

/// Ten seconds of 450 records of 4 KB each, over 8 partitions, with an object store: one object and one small row for
/// each partition a second, and everything is read back.
pub async fn four_kilobytes_450_times_a_second_take_few_requests(world: &LogSubject) {
    let environment = &world.subject.environment;
    let (meter, object_meter) = (Meter::new(), Meter::new());
    let store = Arc::new(Metered::new(world.subject.store.clone(), meter.clone()));
    let objects = world.objects.clone().unwrap_or_else(|| Arc::new(InMemory::new()));
    let objects = Objects::new(objects, "sustained".into()).metered(object_meter.clone());
    let ground = Ground::new(store, environment).with_objects(objects);
    let log = Log::new(&ground);
    let topic = log.create(&world.name(), TopicConfig::with_partitions(8)).await.unwrap();
    let linger = Some(Duration::from_secs(1));
    let options = ProducerOptions { linger, batch_bytes: 4 << 20, ..ProducerOptions::default() };
    let producer = topic.producer(options).unwrap();
    let _ = meter.take();
    const SECONDS: u64 = 10;
    for second in 0..SECONDS {
        for n in 0..450 {
            let n = second * 450 + n;
            let record = NewRecord::keyed(n.to_be_bytes().to_vec(), payload(n, 4_096));
            producer.send(record).await.unwrap();
        }
        bounded("a second's records", producer.flush()).await.unwrap();
        world.subject.clock.advance(Duration::from_secs(1));
    }
    let (rows, puts) = (meter.read().of(Operation::Write), object_meter.read());
    assert_eq!(puts.of(Operation::ObjectPut).requests, SECONDS, "one object a second");
    assert!(rows.requests <= 8 * SECONDS, "{} writes", rows.requests);
    assert!(rows.write_units <= 8.0 * SECONDS as f64, "{} write units", rows.write_units);
    let mut found = 0;
    for partition in 0..8 {
        for record in read_all(&topic, partition).await {
            let n = u64::from_be_bytes(record.key.as_ref().unwrap().as_ref().try_into().unwrap());
            assert_eq!(record.payload, payload(n, 4_096));
            found += 1;
        }
    }
    assert_eq!(found, 450 * SECONDS);
}
