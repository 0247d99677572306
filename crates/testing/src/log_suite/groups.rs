//! Groups: leases, checkpoints, balance, administration.

use std::collections::BTreeSet;
use std::time::Duration;

use millpond_log::{
    Assignment, Consumer, ConsumerOptions, GroupConfig, LogError, Seek, Start, Topic,
};

use super::{LogSubject, append, number, record};

const LEASE: Duration = Duration::from_secs(30);

async fn join(topic: &Topic, group: &str) -> Consumer {
    let options = ConsumerOptions { lease: LEASE, ..ConsumerOptions::default() };
    topic.consumer(group, options).await.unwrap()
}

async fn poll(consumer: &Consumer, at: Assignment) -> Vec<u64> {
    consumer.poll(at, 100).await.unwrap().records.iter().map(number).collect()
}

fn partitions(consumers: &[&Consumer]) -> Vec<usize> {
    consumers.iter().map(|consumer| consumer.held().len()).collect()
}

/// What a group has checkpointed it does not see again, also in another process; other groups see all.
pub async fn a_committed_record_is_not_read_again_and_other_groups_see_everything(
    world: &LogSubject,
) {
    let topic = world.topic(1).await;
    append(&topic, 0, (0..10).map(|n| record(n, 20)).collect()).await;
    let first = join(&topic, "one").await;
    let at = first.balance().await.unwrap().taken[0];
    assert_eq!(poll(&first, at).await, (0..10).collect::<Vec<_>>());
    assert!(poll(&first, at).await.is_empty(), "read twice within an assignment");
    first.checkpoint(at, 6).await.unwrap();
    for wrong in [5, 11] {
        let refused = first.checkpoint(at, wrong).await;
        assert!(matches!(refused, Err(LogError::Invalid { field: "checkpoint", .. })), "{wrong}");
    }
    first.leave().await.unwrap();
    let second = join(&world.again(&topic).await, "one").await;
    let again = second.balance().await.unwrap().taken[0];
    assert!(again.epoch > at.epoch, "the epoch must rise");
    assert_eq!(poll(&second, again).await, [6, 7, 8, 9]);
    second.checkpoint(again, 10).await.unwrap();
    let other = join(&topic, "two").await;
    let at = other.balance().await.unwrap().taken[0];
    assert_eq!(poll(&other, at).await, (0..10).collect::<Vec<_>>());
    append(&topic, 0, vec![record(10, 20)]).await;
    assert_eq!(poll(&second, again).await, [10]);
    assert_eq!(poll(&other, at).await, [10]);
}

/// Whoever balances when, as often as they like: no partition has two holders that could work.
pub async fn two_workers_never_hold_one_partition(world: &LogSubject) {
    let topic = world.topic(5).await;
    let workers = [join(&topic, "g").await, join(&topic, "g").await, join(&topic, "g").await];
    for round in 0..12_u64 {
        for (at, worker) in (0_u64..).zip(&workers) {
            // Now and then one is silent for a while, and counts its leases as lost.
            if (round + at) % 5 != 0 {
                worker.beat().await.unwrap();
            }
            worker.balance().await.unwrap();
            let mut seen = BTreeSet::new();
            for worker in &workers {
                for at in worker.held() {
                    // Who holds it can read it now: two of them must not.
                    if worker.poll(at, 1).await.is_ok() {
                        assert!(seen.insert(at.partition), "{at:?} in round {round}");
                    }
                }
            }
        }
        world.subject.clock.advance(LEASE / 3);
    }
    let held: usize = partitions(&[&workers[0], &workers[1], &workers[2]]).iter().sum();
    assert!(held >= 3, "{held}");
}

/// A worker that was paused past its lease finds everything refused, and changes nothing.
pub async fn a_paused_worker_that_wakes_cannot_move_the_checkpoint(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, (0..10).map(|n| record(n, 20)).collect()).await;
    let paused = join(&topic, "g").await;
    let old = paused.balance().await.unwrap().taken[0];
    assert_eq!(poll(&paused, old).await.len(), 10);
    let other = join(&topic, "g").await;
    assert!(other.balance().await.unwrap().taken.is_empty(), "the lease is held");
    // The other one goes on beating, and sees that the first one does not.
    let mut taken = None;
    for _ in 0..4 {
        world.subject.clock.advance(LEASE / 3);
        other.beat().await.unwrap();
        taken = other.balance().await.unwrap().taken.first().copied().or(taken);
    }
    let new = taken.expect("taken over after a lease");
    assert!(new.epoch > old.epoch);
    assert_eq!(poll(&other, new).await.len(), 10);
    other.checkpoint(new, 4).await.unwrap();
    let refused = paused.checkpoint(old, 10).await;
    assert!(matches!(refused, Err(LogError::LeaseLost { partition: 0, .. })), "{refused:?}");
    let refused = paused.poll(old, 1).await;
    assert!(matches!(refused, Err(LogError::LeaseLost { .. })), "{refused:?}");
    paused.release(old).await.expect("releasing what was lost is no error");
    let place = topic.describe_group("g").await.unwrap().partitions.remove(0);
    assert_eq!((place.checkpoint, place.epoch, place.lag), (4, new.epoch, 6));
    assert_eq!(place.owner.as_deref(), Some(other.worker().as_str()));
    other.checkpoint(new, 5).await.expect("the holder is not disturbed");
}

/// Workers that come and go share the partitions evenly, and each partition always finds one.
pub async fn partitions_are_balanced_across_workers(world: &LogSubject) {
    let topic = world.topic(8).await;
    let first = join(&topic, "g").await;
    first.balance().await.unwrap();
    assert_eq!(partitions(&[&first]), [8]);
    let (second, third) = (join(&topic, "g").await, join(&topic, "g").await);
    let settle = async |workers: &[&Consumer]| {
        for _ in 0..4 {
            for worker in workers {
                worker.beat().await.unwrap();
                worker.balance().await.unwrap();
            }
        }
        let mut held = partitions(workers);
        held.sort_unstable();
        held
    };
    assert_eq!(settle(&[&first, &second, &third]).await, [2, 3, 3]);
    second.leave().await.unwrap();
    assert_eq!(settle(&[&first, &third]).await, [4, 4]);
    let mut all: Vec<u32> =
        [first.held(), third.held()].concat().iter().map(|at| at.partition).collect();
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
}

/// A worker that dies without a word loses its partitions after a lease, from its checkpoints on.
pub async fn a_crashed_workers_partitions_are_taken_after_a_lease(world: &LogSubject) {
    let topic = world.topic(2).await;
    for partition in 0..2 {
        append(&topic, partition, (0..6).map(|n| record(n, 20)).collect()).await;
    }
    let crashes = join(&topic, "g").await;
    for at in crashes.balance().await.unwrap().taken {
        assert_eq!(poll(&crashes, at).await.len(), 6);
        crashes.checkpoint(at, 2).await.unwrap();
    }
    drop(crashes);
    let heir = join(&world.again(&topic).await, "g").await;
    let mut waited = Duration::ZERO;
    while heir.held().len() < 2 {
        assert!(waited <= LEASE * 2, "not taken over after {waited:?}");
        heir.beat().await.unwrap();
        let balance = heir.balance().await.unwrap();
        assert!(waited >= LEASE || balance.taken.is_empty(), "taken after {waited:?} already");
        assert!(waited >= LEASE || balance.others == [0, 1]);
        world.subject.clock.advance(LEASE / 3);
        waited += LEASE / 3;
    }
    for at in heir.held() {
        assert_eq!(poll(&heir, at).await, [2, 3, 4, 5]);
    }
    heir.beat().await.unwrap();
    heir.balance().await.unwrap();
    let workers = topic.describe_group("g").await.unwrap().workers;
    assert_eq!(workers.len(), 1, "the dead worker's heartbeat is left");
}

/// Clocks that jump, forward and back, end no lease and start none.
pub async fn clock_jumps_make_no_double_lease(world: &LogSubject) {
    let topic = world.topic(2).await;
    let (one, two) = (join(&topic, "g").await, join(&topic, "g").await);
    one.balance().await.unwrap();
    let clock = &world.subject.clock;
    let start = world.subject.environment.now();
    for jump in [3_600_i64 * 5, -3_600 * 7, 86_400 * 3] {
        let jumped = start.as_millis().saturating_add_signed(jump * 1_000);
        clock.set_wall(millpond_store::Timestamp::from_millis(jumped));
        // For longer than a lease, so that who seemed dead would be replaced.
        for _ in 0..5 {
            for worker in [&one, &two] {
                worker.balance().await.unwrap();
                worker.beat().await.unwrap();
            }
            clock.advance(LEASE / 3);
        }
        assert_eq!(topic.describe_group("g").await.unwrap().workers.len(), 2);
        let held = [one.held(), two.held()].concat();
        let distinct: BTreeSet<u32> = held.iter().map(|at| at.partition).collect();
        assert_eq!(held.len(), distinct.len(), "two leases on one partition");
        for worker in [&one, &two] {
            for at in worker.held() {
                worker.poll(at, 1).await.expect("a live lease was lost to a clock");
            }
        }
    }
}

/// A group can be moved behind everything, also where nothing ever was.
pub async fn skip_to_end_also_on_an_empty_partition(world: &LogSubject) {
    let topic = world.topic(2).await;
    append(&topic, 0, (0..5).map(|n| record(n, 20)).collect()).await;
    topic.create_group("g", &GroupConfig::default()).await.unwrap();
    topic.skip_to_end("g").await.unwrap();
    let places = topic.describe_group("g").await.unwrap().partitions;
    assert_eq!(places.iter().map(|place| place.checkpoint).collect::<Vec<_>>(), [5, 0]);
    assert!(places.iter().all(|place| place.lag == 0 && place.epoch == 1), "{places:?}");
    for partition in 0..2 {
        append(&topic, partition, vec![record(7, 20)]).await;
    }
    let consumer = join(&topic, "g").await;
    for at in consumer.balance().await.unwrap().taken {
        assert_eq!(poll(&consumer, at).await, [7], "{at:?}");
    }
    assert!(matches!(topic.skip_to_end("other").await, Err(LogError::UnknownGroup { .. })));
}

/// Groups are listed with their lag, moved by place, and forgotten.
pub async fn groups_are_listed_described_reset_and_deleted(world: &LogSubject) {
    let topic = world.topic(2).await;
    append(&topic, 0, (0..5).map(|n| record(n, 20)).collect()).await;
    let consumer = join(&topic, "b").await;
    topic.create_group("a", &GroupConfig::default()).await.unwrap();
    assert_eq!(topic.groups().await.unwrap(), ["a", "b"]);
    let taken = consumer.balance().await.unwrap().taken;
    let at = *taken.iter().find(|at| at.partition == 0).unwrap();
    assert_eq!(poll(&consumer, at).await.len(), 5);
    consumer.checkpoint(at, 3).await.unwrap();
    let described = topic.describe_group("b").await.unwrap();
    assert_eq!(described.partitions.iter().map(|p| p.lag).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(described.workers.len(), 1);
    // A reset takes the lease away, so that the holder cannot put its checkpoint over it.
    topic.reset("b", Some(0), Seek::Offset(1)).await.unwrap();
    let lost = consumer.checkpoint(at, 5).await;
    assert!(matches!(lost, Err(LogError::LeaseLost { .. })), "{lost:?}");
    let retaken = consumer.balance().await.unwrap().taken;
    assert_eq!(poll(&consumer, retaken[0]).await, [1, 2, 3, 4]);
    let outside = topic.reset("b", None, Seek::Offset(3)).await;
    assert!(matches!(outside, Err(LogError::OutOfRange { partition: 1, latest: 0, .. })));
    assert_eq!(topic.describe_group("b").await.unwrap().partitions[0].checkpoint, 1);
    topic.delete_group("b").await.unwrap();
    assert_eq!(topic.groups().await.unwrap(), ["a"]);
    assert!(matches!(topic.describe_group("b").await, Err(LogError::UnknownGroup { .. })));
    let late = consumer.checkpoint(retaken[0], 5).await;
    assert!(matches!(late, Err(LogError::LeaseLost { .. })), "{late:?}");
}

/// A group that begins at the latest sees all that is appended after it was made, however late it is joined.
pub async fn a_group_at_the_latest_misses_nothing_after_it_was_made(world: &LogSubject) {
    let topic = world.topic(2).await;
    append(&topic, 0, vec![record(0, 20)]).await;
    let config = GroupConfig { start: Start::Latest, ..GroupConfig::default() };
    topic.create_group("g", &config).await.unwrap();
    for partition in 0..2 {
        append(&topic, partition, vec![record(1, 20)]).await;
    }
    let consumer = join(&world.again(&topic).await, "g").await;
    for at in consumer.balance().await.unwrap().taken {
        assert_eq!(poll(&consumer, at).await, [1], "{at:?}");
    }
}
