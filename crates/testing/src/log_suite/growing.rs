//! Adding partitions.

use std::collections::BTreeMap;

use millpond_log::{Consumer, ConsumerOptions, LogError, NewRecord, Topic, limits, partition_of};

use super::{LogSubject, payload};

/// Few, so that a group is still at the old partitions when the new ones could be read.
const AT_A_TIME: usize = 2;

async fn write(topic: &Topic, round: u64) {
    let records = (0..24_u8).map(|key| {
        NewRecord::keyed(vec![key], payload(round, 20)).header("n", round.to_be_bytes().to_vec())
    });
    let outcomes = topic.append_batch(records.collect()).await.unwrap();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Reads what there is and checks that each key's rounds come in order.
async fn read(consumer: &Consumer, last: &mut BTreeMap<u8, u64>) -> usize {
    let mut read = 0;
    for at in consumer.held() {
        let batch = consumer.poll(at, AT_A_TIME).await.unwrap();
        for record in &batch.records {
            let key = record.key.as_ref().unwrap()[0];
            let round = super::number(record);
            let expected = last.entry(key).or_default();
            assert_eq!(round, *expected, "key {key} out of order in partition {}", at.partition);
            *expected += 1;
            read += 1;
        }
        consumer.checkpoint(at, batch.next).await.unwrap();
    }
    read
}

/// Old records stay where they are; a key moves to a new partition or not at all; a group sees each key in order,
/// because it reads new partitions after what was in the old ones.
pub async fn growing_keeps_the_order_of_each_key_for_groups(world: &LogSubject) {
    let topic = world.topic(2).await;
    let log = world.log();
    let early = topic.consumer("early", ConsumerOptions::default()).await.unwrap();
    let mut last = BTreeMap::new();
    for round in 0..3 {
        write(&topic, round).await;
    }
    early.balance().await.unwrap();
    log.grow(&topic.name(), 5).await.unwrap();
    log.grow(&topic.name(), 5).await.expect("growing to what it is does nothing");
    let shrunk = log.grow(&topic.name(), 4).await;
    assert!(matches!(shrunk, Err(LogError::Invalid { field: "partitions", .. })), "{shrunk:?}");
    let grown = world.again(&topic).await;
    assert_eq!((grown.partitions(), grown.describe().await.unwrap().grown_from), (5, vec![2]));
    for round in 3..6 {
        write(&grown, round).await;
    }
    let moved = (0..24_u8).filter(|key| partition_of(&[*key], 5) != partition_of(&[*key], 2));
    assert!(moved.clone().count() > 3 && moved.clone().all(|key| partition_of(&[key], 5) >= 2));

    // One group that was there, and one that comes now: both see rounds 0 to 5 of every key in order.
    let late =
        world.again(&topic).await.consumer("late", ConsumerOptions::default()).await.unwrap();
    let mut late_last = BTreeMap::new();
    let (mut early_read, mut late_read) = (0, 0);
    for _ in 0..60 {
        for (consumer, last, read_so_far) in
            [(&early, &mut last, &mut early_read), (&late, &mut late_last, &mut late_read)]
        {
            consumer.beat().await.unwrap();
            consumer.balance().await.unwrap();
            *read_so_far += read(consumer, last).await;
        }
        world.subject.clock.advance(limits::TOPIC_AGE_MAX / 2);
    }
    assert_eq!((early_read, late_read), (144, 144), "something was not read");
    assert_eq!(early.held().len(), 5);
    write(&grown, 6).await;
    assert!(read(&early, &mut last).await > 0);
}
