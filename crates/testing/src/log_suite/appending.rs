//! Appending: bytes, order, numbers, fences, sequences.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use millpond_lanes::cargo::Objects;
use millpond_log::{
    AppendOptions, Log, LogError, NewRecord, Position, ProducerId, Seek, Sequence, TopicConfig,
    limits, partition_of,
};
use millpond_store::{Meter, Operation};
use object_store::memory::InMemory;

use super::{LogSubject, append, number, payload, read_all, record, until};
use crate::faulty_objects::FaultyObjects;
use crate::subject::bounded;

/// Payloads of every size, keys and headers of any bytes, come back as they were.
pub async fn a_written_record_is_readable_bytes_intact(world: &LogSubject) {
    let topic = world.topic(3).await;
    let sizes = [0, 1, 100, 1_000, 5_000, 9_000, 70_000, 1_100_000];
    let sent: Vec<NewRecord> = (0..)
        .zip(sizes)
        .map(|(n, size)| {
            let record = NewRecord::keyed(vec![0xff, n as u8], payload(n, size));
            record.header("ünï", vec![0, 255]).header("twice", "1").header("twice", "2")
        })
        .collect();
    let before = world.subject.environment.now();
    let outcomes = topic.append_batch(sent.clone()).await.unwrap();
    let other = world.again(&topic).await;
    for (sent, position) in sent.iter().zip(outcomes) {
        let Position { partition, offset } = position.unwrap();
        let batch = other.read(partition, offset, 1).await.unwrap();
        let [found] = batch.records.as_slice() else { panic!("{batch:?}") };
        assert_eq!((found.partition, found.offset), (partition, offset));
        assert_eq!(
            (&found.key, &found.payload, &found.headers),
            (&sent.key, &sent.payload, &sent.headers)
        );
        assert_eq!(found.header("twice"), Some(&Bytes::from("1")));
        assert!(found.timestamp >= before);
    }
    assert!(topic.append_batch(Vec::new()).await.unwrap().is_empty());
}

/// A key decides the partition; partitions are numbered from 0; an explicit one is used.
pub async fn same_key_same_partition_and_partitions_count_from_zero(world: &LogSubject) {
    let topic = world.topic(5).await;
    let mut used = BTreeSet::new();
    for n in 0..40_u64 {
        let key = format!("key-{}", n % 20);
        let at = topic.append(NewRecord::keyed(key.clone(), "x")).await.unwrap();
        assert_eq!(at.partition, partition_of(key.as_bytes(), 5));
        used.insert(at.partition);
    }
    assert_eq!(used, BTreeSet::from([0, 1, 2, 3, 4]));
    let keyless: BTreeSet<u32> = join_all((0..10).map(|n| topic.append(record(n, 10))))
        .await
        .into_iter()
        .map(|at| at.unwrap().partition)
        .collect();
    assert_eq!(keyless.len(), 5, "records without a key should take turns");
    assert_eq!(topic.partitions(), 5);
    let before = topic.seek(3, Seek::Latest).await.unwrap();
    assert_eq!(append(&topic, 3, vec![record(0, 10), record(1, 10)]).await, before);
}

/// Three producers in three processes, one key: each one's records stay in its order, and nothing is lost.
pub async fn three_producers_on_one_key_keep_their_order(world: &LogSubject) {
    let topic = world.topic(4).await;
    let producers = join_all((0..3_u64).map(|producer| {
        let world = world.clone();
        let name = topic.name();
        tokio::spawn(async move {
            let topic = world.log().topic(&name).await.unwrap();
            for n in 0..15_u64 {
                let record = NewRecord::keyed("one", payload(n, 50));
                let header = (producer * 100 + n).to_be_bytes().to_vec();
                topic.append(record.header("who", header)).await.unwrap();
            }
        })
    }));
    for outcome in bounded("the producers", producers).await {
        outcome.unwrap();
    }
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let records = read_all(&topic, partition_of(b"one", 4)).await;
    assert_eq!(records.len(), 45);
    for record in records {
        let who = u64::from_be_bytes(record.header("who").unwrap().as_ref().try_into().unwrap());
        let next = last.entry(who / 100).or_default();
        assert_eq!(who % 100, *next, "out of order");
        *next += 1;
    }
}

/// Two writers that both begin an empty partition.
pub async fn two_first_writers_both_succeed(world: &LogSubject) {
    for _ in 0..5 {
        let one = world.topic(1).await;
        let two = world.again(&one).await;
        let (a, b) = futures::join!(one.append(record(0, 2_000)), two.append(record(1, 2_000)));
        let offsets = BTreeSet::from([a.unwrap().offset, b.unwrap().offset]);
        assert_eq!(offsets, BTreeSet::from([0, 1]));
        assert_eq!(read_all(&one, 0).await.len(), 2);
    }
}

/// While a payload is on its way for long, others write and readers read; then it comes behind them, whole.
pub async fn a_slow_payload_write_is_never_skipped_and_never_blocks_others(world: &LogSubject) {
    let slow = FaultyObjects::new(Arc::new(InMemory::new()));
    let objects = Objects::new(slow.clone(), "payload".into());
    let ground = world.ground(&world.subject.impatient()).with_objects(objects);
    let log = Log::new(&ground);
    let topic = log.create(&world.name(), TopicConfig::with_partitions(2)).await.unwrap();
    slow.hold(true);
    let held = tokio::spawn({
        let topic = topic.clone();
        async move { topic.append_to(0, vec![record(1, 20_000)], &AppendOptions::default()).await }
    });
    until("the put", || async { slow.waiting() == 1 }).await;
    // Another process writes to the same partition, and this one to another.
    let other = Log::new(&ground).topic(&topic.name()).await.unwrap();
    assert_eq!(append(&other, 0, vec![record(2, 100)]).await, 0);
    assert_eq!(append(&topic, 1, vec![record(3, 100)]).await, 0);
    assert_eq!(read_all(&other, 0).await.len(), 1, "numbered before it is readable");
    slow.hold(false);
    assert_eq!(bounded("the slow append", held).await.unwrap().unwrap().first, 1);
    let numbers: Vec<u64> = read_all(&other, 0).await.iter().map(number).collect();
    assert_eq!(numbers, [2, 1]);

    // One whose payload cannot be written at all leaves nothing behind, and no hole.
    slow.follow((0..100).map(|n| (n, crate::faulty_objects::ObjectFault::Before)));
    let failed = topic.append_to(0, vec![record(4, 20_000)], &AppendOptions::default()).await;
    assert!(matches!(&failed, Err(error) if error.is_transient()), "{failed:?}");
    assert_eq!(append(&topic, 0, vec![record(5, 100)]).await, 2);
    slow.follow([]);
    assert_eq!(read_all(&other, 0).await.iter().map(number).collect::<Vec<_>>(), [2, 1, 5]);
}

/// A reader that races writers finds every record below the end, every time.
pub async fn nothing_is_numbered_before_it_is_readable(world: &LogSubject) {
    let topic = world.topic(1).await;
    let writer = tokio::spawn({
        let topic = world.again(&topic).await;
        async move {
            for n in 0..30 {
                topic.append(record(n, if n % 3 == 0 { 12_000 } else { 40 })).await.unwrap();
            }
        }
    });
    bounded("the reader", async {
        loop {
            let end = topic.seek(0, Seek::Latest).await.unwrap();
            let numbers: Vec<u64> = read_all(&topic, 0).await.iter().map(number).collect();
            assert!(numbers.len() as u64 >= end, "the end is {end}, {} are there", numbers.len());
            assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
            if end == 30 {
                return;
            }
        }
    })
    .await;
    writer.await.unwrap();
}

/// A batch over all partitions is one object; cold reads fetch their part of it; the cache has a bound.
pub async fn one_flush_writes_one_object_for_all_partitions(world: &LogSubject) {
    let meter = Meter::new();
    let store = world.objects.clone().unwrap_or_else(|| Arc::new(InMemory::new()));
    let objects = Objects::new(store, "shared".into()).metered(meter.clone());
    let ground = world.ground(&world.subject.impatient()).with_objects(objects);
    let log = Log::new(&ground);
    let topic = log.create(&world.name(), TopicConfig::with_partitions(4)).await.unwrap();
    let batch = (0..40).map(|n| NewRecord::keyed(vec![n as u8], payload(n, 2_000))).collect();
    let sent = topic.append_batch(batch).await.unwrap();
    assert!(sent.iter().all(Result::is_ok));
    assert_eq!(meter.read().of(Operation::ObjectPut).requests, 1, "one object for the flush");
    let reader = Log::new(&ground).topic(&topic.name()).await.unwrap();
    let mut found = 0;
    for partition in 0..4 {
        let records = read_all(&reader, partition).await;
        found += records.len();
        for record in &records {
            let n = record.key.as_ref().unwrap()[0];
            assert_eq!(record.payload, payload(n.into(), 2_000));
        }
        // Again, from the cache.
        assert_eq!(read_all(&reader, partition).await, records);
    }
    assert_eq!(found, 40);
    let gets = meter.read().of(Operation::ObjectGet);
    assert_eq!(gets.requests, 4, "each partition's part is fetched once");
    assert!(gets.bytes < 100_000, "{} bytes were fetched: more than the parts", gets.bytes);
    assert!(reader.cached_bytes() <= limits::CACHE_BYTES && reader.cached_bytes() > 0);
}

/// Once a writer with a greater token has appended, one with a smaller token is refused for ever.
pub async fn a_fenced_writer_never_appears_again(world: &LogSubject) {
    let old = world.topic(1).await;
    let new = world.again(&old).await;
    let fenced = |token| AppendOptions { fence: Some(token), ..AppendOptions::default() };
    old.append_to(0, vec![record(1, 10)], &fenced(1)).await.unwrap();
    old.append_to(0, vec![record(2, 10)], &fenced(1)).await.unwrap();
    new.append_to(0, vec![record(3, 10)], &fenced(2)).await.unwrap();
    for _ in 0..3 {
        let refused = old.append_to(0, vec![record(4, 10)], &fenced(1)).await;
        assert!(matches!(refused, Err(LogError::Fenced { token: 1, current: 2 })), "{refused:?}");
    }
    // Who comes without a token is not checked, and does not lower the fence; nor does removal.
    append(&old, 0, vec![record(5, 10)]).await;
    let again = world.again(&old).await;
    let refused = again.append_to(0, vec![record(6, 10)], &fenced(1)).await;
    assert!(matches!(refused, Err(LogError::Fenced { .. })), "{refused:?}");
    let numbers: Vec<u64> = read_all(&new, 0).await.iter().map(number).collect();
    assert_eq!(numbers, [1, 2, 3, 5]);
    assert_eq!(new.describe().await.unwrap().partitions[0].fence, 2);
}

/// A producer that sends a batch again, after a crash and from another process, has it in the log once.
pub async fn a_sequenced_batch_is_appended_once(world: &LogSubject) {
    let topic = world.topic(2).await;
    let other = world.again(&topic).await;
    let producer = ProducerId::new("till-7").unwrap();
    let at = |first| AppendOptions {
        sequence: Some(Sequence { producer: producer.clone(), first }),
        ..AppendOptions::default()
    };
    let batch = |numbers: std::ops::Range<u64>| numbers.map(|n| record(n, 700)).collect::<Vec<_>>();
    let first = topic.append_to(1, batch(0..3), &at(0)).await.unwrap();
    assert!(!first.duplicate);
    let again = other.append_to(1, batch(0..3), &at(0)).await.unwrap();
    assert!(again.duplicate && again.first == first.first);
    let next = other.append_to(1, batch(3..5), &at(3)).await.unwrap();
    assert_eq!(next.first, 3);
    let part = topic.append_to(1, batch(4..5), &at(4)).await.unwrap();
    assert_eq!((part.first, part.duplicate), (4, true));
    let old = topic.append_to(1, batch(0..3), &at(0)).await;
    assert!(matches!(old, Err(LogError::AlreadyAppended { sequence: 0, next: 5 })), "{old:?}");
    let gap = topic.append_to(1, batch(7..8), &at(7)).await;
    assert!(matches!(gap, Err(LogError::OutOfSequence { expected: 5, got: 7 })), "{gap:?}");
    // Two instances at once: one of them appends it.
    let (batch_a, batch_b) = (batch(5..7), batch(5..7));
    let options = at(5);
    let (a, b) = futures::join!(
        topic.append_to(1, batch_a, &options),
        other.append_to(1, batch_b, &options)
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(a.first == b.first && a.duplicate != b.duplicate, "{a:?} {b:?}");
    let numbers: Vec<u64> = read_all(&topic, 1).await.iter().map(number).collect();
    assert!(numbers.into_iter().eq(0..7));
    // Another partition has a sequence of its own.
    assert!(!topic.append_to(0, batch(0..1), &at(0)).await.unwrap().duplicate);
}

/// What is over a limit or makes no sense is named, and nothing of the call is written.
pub async fn bad_records_are_refused_and_nothing_is_written(world: &LogSubject) {
    let topic = world.topic(2).await;
    let large = NewRecord::new(vec![0; limits::PAYLOAD_BYTES_MAX + 1]);
    let refused = topic.append_batch(vec![record(0, 10), large]).await;
    assert!(matches!(refused, Err(LogError::TooLarge { what: "payload", .. })), "{refused:?}");
    let many = topic.append_batch(vec![record(0, 1); limits::BATCH_RECORDS_MAX + 1]).await;
    assert!(matches!(many, Err(LogError::TooLarge { what: "batch", .. })), "{many:?}");
    let nowhere = topic.append_to(2, vec![record(0, 10)], &AppendOptions::default()).await;
    assert!(
        matches!(nowhere, Err(LogError::UnknownPartition { partition: 2, partitions: 2, .. })),
        "{nowhere:?}"
    );
    assert!(nowhere.unwrap_err().to_string().contains("there are 0 to 1"));
    let nothing = topic.append_to(0, Vec::new(), &AppendOptions::default()).await;
    assert!(matches!(nothing, Err(LogError::Invalid { field: "batch", .. })), "{nothing:?}");
    for partition in 0..2 {
        assert_eq!(topic.seek(partition, Seek::Latest).await.unwrap(), 0, "something was written");
    }
}
