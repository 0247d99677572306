//! Reading: bounds, places, waiting, what retention removed.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::cargo::Objects;
use millpond_log::{AppendOptions, Gap, Log, LogError, Seek, TopicConfig};
use millpond_store::Timestamp;
use object_store::memory::InMemory;

use super::{LogSubject, append, number, read_all, record};
use crate::subject::bounded;

/// A read returns what was asked for and says whether there is more, within and across segments.
pub async fn count_bounds_a_read_and_the_answer_tells_whether_more_remains(world: &LogSubject) {
    let topic = world.topic(1).await;
    for first in [0, 3, 6, 9] {
        append(&topic, 0, (first..first + 3).map(|n| record(n, 400)).collect()).await;
    }
    for from in 0..=12_u64 {
        for max in [1_usize, 2, 3, 4, 6, 11, 12, 100] {
            let batch = topic.read(0, from, max).await.unwrap();
            let expected = (12 - from).min(max as u64);
            assert_eq!(batch.records.len() as u64, expected, "from {from}, {max}");
            assert!(batch.records.iter().map(number).eq(from..from + expected));
            assert_eq!(batch.next, from + expected);
            assert_eq!(batch.more, batch.next < 12, "from {from}, {max}");
        }
    }
    let beyond = topic.read(0, 13, 1).await;
    assert!(
        matches!(beyond, Err(LogError::OutOfRange { wanted: 13, earliest: 0, latest: 12, .. })),
        "{beyond:?}"
    );
    let zero = topic.read(0, 0, 0).await;
    assert!(matches!(zero, Err(LogError::Invalid { field: "max", .. })), "{zero:?}");
    let nowhere = topic.read(1, 0, 1).await;
    assert!(matches!(nowhere, Err(LogError::UnknownPartition { .. })), "{nowhere:?}");
}

/// Every way to name a place, in an empty partition too; what is outside says what is there.
pub async fn seeks_by_offset_time_earliest_and_latest(world: &LogSubject) {
    let topic = world.topic(2).await;
    let clock = &world.subject.clock;
    let mut times: Vec<Timestamp> = Vec::new();
    for n in 0..20 {
        clock.advance(Duration::from_secs(10));
        append(&topic, 0, vec![record(2 * n, 10), record(2 * n + 1, 10)]).await;
        times.push(world.subject.environment.now());
    }
    let other = world.again(&topic).await;
    let seek = async |place| other.seek(0, place).await.unwrap();
    assert_eq!(seek(Seek::Earliest).await, 0);
    assert_eq!(seek(Seek::Latest).await, 40);
    assert_eq!(seek(Seek::Offset(17)).await, 17);
    assert_eq!(seek(Seek::Offset(40)).await, 40);
    for (segment, time) in (0..).zip(&times) {
        assert_eq!(seek(Seek::Time(*time)).await, 2 * segment);
        let later = time.plus(Duration::from_millis(1));
        assert_eq!(seek(Seek::Time(later)).await, 2 * segment + 2);
    }
    assert_eq!(seek(Seek::Time(Timestamp::default())).await, 0);
    assert_eq!(seek(Seek::Time(times[19].plus(Duration::from_secs(9)))).await, 40);
    for place in [Seek::Earliest, Seek::Latest, Seek::Offset(0), Seek::Time(times[3])] {
        assert_eq!(other.seek(1, place).await.unwrap(), 0, "an empty partition");
    }
    let outside = other.seek(0, Seek::Offset(41)).await.unwrap_err();
    assert!(outside.to_string().contains("there are 0 to 40"), "{outside}");

    // A clock that goes back does not take the log's time with it.
    clock.set_wall(times[2]);
    append(&topic, 0, vec![record(40, 10)]).await;
    assert_eq!(seek(Seek::Time(times[19])).await, 38);
    assert_eq!(topic.read(0, 40, 1).await.unwrap().records[0].timestamp, times[19]);
}

/// Whatever is written while a follower reads, it reads or is woken for.
pub async fn a_write_during_a_read_is_read_or_signalled(world: &LogSubject) {
    let topic = world.topic(1).await;
    let mut follower = topic.follow(0, Seek::Latest, 7).await.unwrap();
    let writer = tokio::spawn({
        let topic = topic.clone();
        async move {
            for n in 0..40 {
                topic.append(record(n, 30)).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let mut next = 0;
    bounded("the follower", async {
        while next < 40 {
            for record in follower.next().await.unwrap().records {
                assert_eq!(number(&record), next);
                next += 1;
            }
        }
    })
    .await;
    writer.await.unwrap();
    assert_eq!(follower.position(), 40);
    let clock = world.subject.clock.clone();
    let mut timed = world.timed(&topic).await.follow(0, Seek::Latest, 7).await.unwrap();
    let waiting = tokio::spawn(async move { timed.next_within(Duration::from_secs(3)).await });
    super::until("the wait", || async {
        clock.advance(Duration::from_secs(1));
        waiting.is_finished()
    })
    .await;
    assert_eq!(waiting.await.unwrap().unwrap(), None, "nothing came");
}

/// A follower that is at the end is woken once by one write, and by many at once only a few times.
pub async fn many_rapid_writes_cause_few_wake_ups_and_one_causes_one(world: &LogSubject) {
    let topic = world.topic(1).await;
    let mut follower = topic.follow(0, Seek::Latest, 1_000).await.unwrap();
    append(&topic, 0, vec![record(0, 10)]).await;
    assert_eq!(bounded("one", follower.next()).await.unwrap().records.len(), 1);
    assert!(follower.wakes() <= 1, "{} wake-ups for one write", follower.wakes());
    let before = follower.wakes();
    for n in 1..=50 {
        append(&topic, 0, vec![record(n, 10)]).await;
    }
    let mut seen = 0;
    while seen < 50 {
        seen += bounded("many", follower.next()).await.unwrap().records.len();
    }
    assert!(follower.wakes() - before <= 3, "{} wake-ups", follower.wakes() - before);
}

/// By age and by size, oldest first; who reads below learns what is missing.
pub async fn retention_removes_only_a_prefix_and_readers_below_it_get_a_gap(world: &LogSubject) {
    let config = TopicConfig {
        retention_age: Some(Duration::from_secs(3_600)),
        retention_bytes: Some(30_000),
        ..TopicConfig::with_partitions(2)
    };
    let topic = world.topic_with(config).await;
    let clock = &world.subject.clock;
    for n in 0..10 {
        append(&topic, 0, vec![record(2 * n, 3_000), record(2 * n + 1, 3_000)]).await;
        append(&topic, 1, vec![record(n, 100)]).await;
        clock.advance(Duration::from_secs(600));
    }
    // By age: those of an hour ago and before. By size: 5 segments of 6,000 bytes stay.
    let mut follower = world.again(&topic).await.follow(0, Seek::Offset(3), 100).await.unwrap();
    let trimmed = topic.trim().await.unwrap();
    let earliest = topic.seek(0, Seek::Earliest).await.unwrap();
    assert!((10..=12).contains(&earliest) && earliest % 2 == 0, "{earliest}");
    assert_eq!(topic.seek(1, Seek::Earliest).await.unwrap(), 5, "{trimmed:?}");
    assert_eq!(trimmed.records, earliest + 5);
    assert!(!trimmed.more);
    let batch = world.again(&topic).await.read(0, 3, 100).await.unwrap();
    assert_eq!(batch.gap, Some(Gap { from: 3, to: earliest }));
    assert!(batch.records.iter().map(number).eq(earliest..20));
    assert_eq!(follower.next().await.unwrap().gap, Some(Gap { from: 3, to: earliest }));
    let below = topic.seek(0, Seek::Offset(3)).await;
    assert!(matches!(below, Err(LogError::OutOfRange { wanted: 3, latest: 20, .. })), "{below:?}");
    let described = topic.describe().await.unwrap().partitions[0];
    assert_eq!((described.earliest, described.latest), (earliest, 20));
    assert!((24_000..36_000).contains(&described.bytes), "{described:?}");
    assert_eq!(topic.trim().await.unwrap(), millpond_log::Trimmed::default());
}

/// After everything has gone, and every process with it, the next record has the next number.
pub async fn numbers_are_never_reused_after_everything_expired(world: &LogSubject) {
    let config = TopicConfig {
        retention_age: Some(Duration::from_secs(60)),
        ..TopicConfig::with_partitions(1)
    };
    let topic = world.topic_with(config).await;
    let fenced = AppendOptions { fence: Some(9), ..AppendOptions::default() };
    for n in 0..4 {
        topic.append_to(0, vec![record(n, 5_000)], &fenced).await.unwrap();
    }
    for hours in 0..3 {
        world.subject.clock.advance(Duration::from_secs(3_600 * (1 + hours)));
        world.again(&topic).await.trim().await.unwrap();
        let topic = world.again(&topic).await;
        assert_eq!(topic.seek(0, Seek::Earliest).await.unwrap(), 4);
        let batch = topic.read(0, 1, 10).await.unwrap();
        assert_eq!((batch.gap, batch.next), (Some(Gap { from: 1, to: 4 }), 4));
        assert!(batch.records.is_empty() && !batch.more);
    }
    let topic = world.again(&topic).await;
    let weak = AppendOptions { fence: Some(8), ..AppendOptions::default() };
    let refused = topic.append_to(0, vec![record(4, 10)], &weak).await;
    assert!(matches!(refused, Err(LogError::Fenced { current: 9, .. })), "the fence went too");
    assert_eq!(append(&topic, 0, vec![record(4, 10)]).await, 4);
    assert_eq!(read_all(&topic, 0).await.len(), 1);
}

/// An object goes when the last segment that names it is gone, and not before.
pub async fn objects_of_trimmed_records_are_swept_and_no_others(world: &LogSubject) {
    let store = world.objects.clone().unwrap_or_else(|| Arc::new(InMemory::new()));
    let ground = world.ground(&world.subject.impatient());
    let ground = ground.with_objects(Objects::new(store, "swept".into()));
    let log = Log::new(&ground);
    let config = TopicConfig { retention_bytes: Some(15_000), ..TopicConfig::with_partitions(2) };
    let topic = log.create(&world.name(), config).await.unwrap();
    // Partition 0 keeps its only segment, partition 1 loses its first: both are in the first object.
    let pair = |n| vec![key_of(0, n), key_of(1, n)];
    assert!(topic.append_batch(pair(0)).await.unwrap().iter().all(Result::is_ok));
    append(&topic, 1, vec![record(1, 12_000)]).await;
    append(&topic, 1, vec![record(2, 12_000)]).await;
    append(&topic, 1, vec![record(3, 12_000)]).await;
    topic.trim().await.unwrap();
    world.subject.clock.advance(Duration::from_secs(2 * 3_600));
    let dry = topic.sweep(true).await.unwrap();
    assert_eq!((dry.objects, dry.named, dry.orphans, dry.removed), (4, 3, 1, 0), "{dry:?}");
    let swept = topic.sweep(false).await.unwrap();
    assert_eq!((swept.named, swept.removed), (3, 1));
    assert_eq!(read_all(&topic, 0).await.len(), 1);
    assert_eq!(read_all(&Log::new(&ground).topic(&topic.name()).await.unwrap(), 1).await.len(), 2);
    log.delete(&topic.name()).await.unwrap();
    let gone = log.create(&topic.name(), config).await.unwrap().sweep(true).await.unwrap();
    assert_eq!(gone.objects, 0, "objects of a deleted topic are left");
}

/// A record of 9,000 bytes for this partition of two.
fn key_of(partition: u32, n: u64) -> millpond_log::NewRecord {
    let key = (0_u32..)
        .map(|key| key.to_be_bytes().to_vec())
        .find(|key| millpond_log::partition_of(key, 2) == partition)
        .expect("some key");
    millpond_log::NewRecord { key: Some(key.into()), ..record(n, 9_000) }
}
