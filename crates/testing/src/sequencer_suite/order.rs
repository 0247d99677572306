//! Any order in, one order out.

use futures::future::join_all;
use millpond_sequencer::{Advance, Arrival, Config, SequencerError};

use super::world::{World, message, only, shuffled};
use crate::subject::Subject;

/// Batch sizes 1, 2, 5, 10 and 50 agree, and no step is longer than the batch.
pub async fn shuffled_puts_end_at_the_highest_contiguous_number(subject: &Subject) {
    for batch in [1, 2, 5, 10, 50] {
        let world = World::new(subject);
        let sequencer = world.open(Config { batch, ..Config::default() });
        let mut returned = Vec::new();
        let numbers = (0..60).filter(|seq| *seq != 50);
        for seq in shuffled(numbers, batch as u64) {
            let put = sequencer.put("q", seq, message(seq, 20)).await.unwrap();
            assert_eq!(put.arrival, Arrival::Stored);
            returned.extend(put.advanced);
        }
        let cursor = sequencer.cursor("q").await.unwrap().unwrap();
        assert_eq!((cursor.next, cursor.position()), (50, 49), "batch {batch}");
        for pair in returned.windows(2) {
            assert_eq!(pair[0].next, pair[1].first, "every change starts where the former ended");
        }
        for change in world.recorder.changes(&world.name, "q") {
            assert!(
                change.new - change.old <= i64::try_from(batch).unwrap(),
                "batch {batch}: {change:?}"
            );
        }
        world.check("q", &returned, 0, "shuffled").await;
        let pending = sequencer.pending("q").await.unwrap();
        assert_eq!((pending.count, pending.bytes, pending.span), (9, 180, 10));
        assert_eq!(pending.runs, only(51..60));
    }
}

/// Three queues fed in turn do not notice each other.
pub async fn queues_are_independent(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    let queues = ["a", "a/b", "ä \"quoted\""];
    let mut returned = [Vec::new(), Vec::new(), Vec::new()];
    for seq in shuffled(0..20, 3) {
        for (queue, returned) in queues.iter().zip(&mut returned) {
            if *queue != "a/b" || seq != 7 {
                returned.extend(sequencer.put(queue, seq, message(seq, 5)).await.unwrap().advanced);
            }
        }
    }
    for ((queue, returned), next) in queues.iter().zip(&returned).zip([20, 7, 20]) {
        assert_eq!(sequencer.cursor(queue).await.unwrap().unwrap().next, next, "{queue}");
        world.check(queue, returned, 0, queue).await;
    }
    let names = sequencer.queues().await.unwrap();
    let names: Vec<&str> = names.iter().map(millpond_sequencer::QueueName::as_str).collect();
    assert_eq!(names, queues);
}

/// What is ahead is there after a restart, and announced only when its turn comes.
pub async fn ahead_is_stored_and_not_announced(subject: &Subject) {
    let world = World::new(subject);
    for seq in [3, 1, 2] {
        let put = world.open(Config::default()).put("q", seq, message(seq, 9)).await.unwrap();
        assert_eq!((put.arrival, put.advanced), (Arrival::Stored, None));
    }
    assert!(world.recorder.changes(&world.name, "q").is_empty());
    let sequencer = world.open(Config::default());
    assert_eq!(sequencer.cursor("q").await.unwrap(), None);
    assert_eq!(sequencer.missing("q").await.unwrap(), only(0..1));
    let put = sequencer.put("q", 0, message(0, 9)).await.unwrap();
    assert_eq!(put.advanced, Advance::new(0, 4));
    assert_eq!(format!("{:?}", put.advanced.unwrap()), "(-1, 3]");
}

/// Delivered or waiting, put through the same handle or another: a duplicate changes nothing.
pub async fn a_duplicate_announces_nothing_and_stores_nothing(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    for seq in [0, 1, 5] {
        sequencer.put("q", seq, message(seq, 30)).await.unwrap();
    }
    let before = world.rows("q/q").await;
    for handle in [&sequencer, &world.open(Config::default())] {
        for seq in [0, 1, 5] {
            let put = handle.put("q", seq, message(seq, 30)).await.unwrap();
            assert_eq!((put.arrival, put.advanced), (Arrival::Duplicate, None), "number {seq}");
        }
    }
    assert_eq!(world.rows("q/q").await, before);
}

/// The first one stays, and the error says which number.
pub async fn the_same_number_with_another_payload_is_a_conflict(subject: &Subject) {
    use millpond_sequencer::ConflictRule;
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    for seq in [0, 4] {
        sequencer.put("q", seq, message(seq, 30)).await.unwrap();
    }
    let before = world.rows("q/q").await;
    let keep = Config { conflicts: ConflictRule::KeepFirst, ..Config::default() };
    for seq in [0, 4] {
        let others = [message(seq, 31), message(seq, 30).with("more", "x")];
        for other in others {
            for handle in [&sequencer, &world.open(Config::default())] {
                let error = handle.put("q", seq, other.clone()).await.unwrap_err();
                let named =
                    matches!(error, SequencerError::Conflict { seq: found, .. } if found == seq);
                assert!(named, "{error}");
            }
            let put = world.open(keep).put("q", seq, other).await.unwrap();
            assert_eq!(put.arrival, Arrival::Duplicate);
        }
    }
    assert_eq!(world.rows("q/q").await, before);
}

/// A hundred numbers, four handles, every message twice.
pub async fn parallel_puts_of_every_message_twice_announce_each_once(subject: &Subject) {
    let world = World::new(subject);
    let writers = (0..4_u64).map(|writer| {
        let sequencer = world.open(Config { batch: 7, ..Config::default() });
        // Each number is put by two of the four.
        let own = (0..200).filter(|n| n % 4 == writer).map(|n| n / 2);
        let own = shuffled(own.chain((0..100).filter(move |n| (n + 1) % 2 == writer / 2)), writer);
        tokio::spawn(async move {
            let mut returned = Vec::new();
            for seq in own {
                returned.extend(sequencer.put("q", seq, message(seq, 64)).await.unwrap().advanced);
            }
            returned
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut returned = Vec::new();
    // Not bounded in time: over a network on a busy machine it may take more than half a minute.
    for writer in join_all(writers).await {
        returned.extend(writer.unwrap());
    }
    world.check("q", &returned, 0, "parallel").await;
    let sequencer = world.open(Config::default());
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, 100);
    assert!(sequencer.missing("q").await.unwrap().is_empty());
}

/// 41 items of 60 KB in batches of 50: more than one page of the store holds.
pub async fn large_items_do_not_stall_at_page_limits(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config { batch: 50, ..Config::default() });
    for seq in 1..=40 {
        sequencer.put("q", seq, message(seq, 60_000)).await.unwrap();
    }
    // Another handle, which knows nothing of what waits.
    let put = world.open(Config { batch: 50, ..Config::default() });
    let put = put.put("q", 0, message(0, 60_000)).await.unwrap();
    assert_eq!(put.advanced, Advance::new(0, 41));
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().position(), 40);
}
