//! Queues that were left halfway.

use std::time::Duration;

use millpond_sequencer::limits::UNSETTLED_KEPT;
use millpond_sequencer::{Advance, Config, SequencerError, Start};
use millpond_store::{Fault, FaultPlan, Meter, Metered, StoreError};

use super::world::{World, message, only};
use crate::subject::Subject;

/// Every read of an existing queue fails in turn: the error is told, and the queue does not begin anew.
pub async fn a_store_error_is_never_taken_for_a_new_queue(subject: &Subject) {
    let world = World::new(subject);
    for start in [Start::At(0), Start::FirstSeen, Start::Stored] {
        let config = Config { start, ..Config::default() };
        let queue = format!("{start:?}");
        world.open(config).reset(&queue, 0).await.unwrap();
        for seq in 0..3 {
            world.open(config).put(&queue, seq, message(seq, 5)).await.unwrap();
        }
        for at in 0..6 {
            for fault in [Fault::Definite, Fault::Throttle, Fault::UnknownBefore] {
                let handle = world.open(config);
                world.faulty.follow(FaultPlan::once(at, fault));
                let put = handle.put(&queue, 7, message(7, 5)).await;
                if let Err(error) = put {
                    assert!(matches!(error, SequencerError::Store(_)), "{error}");
                }
                world.faulty.follow(FaultPlan::once(0, fault));
                assert!(handle.cursor(&queue).await.is_err());
                world.calm();
                let cursor = handle.cursor(&queue).await.unwrap().unwrap();
                assert_eq!((cursor.next, cursor.epoch, cursor.start), (3, 0, 0), "{start:?}");
            }
        }
        let left = world.open(config).missing(&queue).await.unwrap();
        assert_eq!(left, only(3..7));
    }
}

/// Messages were acknowledged ahead; the one that fills the hole is stored, and then its process dies.
pub async fn a_queue_nobody_writes_to_is_healed_by_the_sweeper(subject: &Subject) {
    for lost in 1..4_u64 {
        let world = World::new(subject);
        let config = Config::default();
        for seq in [1, 2, 4] {
            world.open(config).put("q", seq, message(seq, 5)).await.unwrap();
        }
        // From the request with this number on nothing works any more.
        let storm = (lost..lost + 200).map(|at| (at, Fault::Definite)).collect();
        world.faulty.follow(FaultPlan::Script(storm));
        let put = world.open(config).put("q", 0, message(0, 5)).await;
        world.calm();
        let swept = world.open(config).sweep().await.unwrap();
        assert!(swept.failed.is_empty(), "{swept:?}");
        let cursor = world.open(config).cursor("q").await.unwrap().unwrap();
        assert_eq!(cursor.next, 3, "stranded after request {lost} failed");
        let failed = usize::from(put.is_err());
        let mut returned: Vec<Advance> =
            put.ok().and_then(|put| put.advanced).into_iter().collect();
        returned.extend(swept.advanced.iter().map(|(_, passed)| *passed));
        world.check("q", &returned, failed, "healed").await;
        assert_eq!(world.open(config).missing("q").await.unwrap(), only(3..4));
    }
    // Nothing waits, and the only message's process died after storing it: a pass over all queues finds it, and so
    // does the handle that failed.
    let world = World::new(subject);
    let config = Config::default();
    world.open(config).put("q", 0, message(0, 5)).await.unwrap();
    let handle = world.open(config);
    world.faulty.follow(FaultPlan::Script((1..200).map(|at| (at, Fault::Definite)).collect()));
    handle.put("q", 1, message(1, 5)).await.unwrap_err();
    world.calm();
    assert_eq!(handle.clone().sweep().await.unwrap().advanced[0].1, Advance::new(1, 2).unwrap());
    world.faulty.follow(FaultPlan::Script((1..200).map(|at| (at, Fault::Definite)).collect()));
    world.open(config).put("q", 2, message(2, 5)).await.unwrap_err();
    world.calm();
    let swept = world.open(config).sweep_all().await.unwrap();
    assert_eq!(swept.advanced[0].1, Advance::new(2, 3).unwrap());
}

/// The index is written when a message lands ahead, once, and left when nothing waits.
pub async fn puts_in_order_leave_the_index_alone(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    for seq in 0..20 {
        sequencer.put("q", seq, message(seq, 5)).await.unwrap();
    }
    assert_eq!(world.index_rows().await, 0);
    world.faulty.follow(FaultPlan::None);
    sequencer.put("q", 22, message(22, 5)).await.unwrap();
    assert_eq!(world.index_rows().await, 1);
    let first = world.faulty.requests();
    world.faulty.follow(FaultPlan::None);
    sequencer.put("q", 23, message(23, 5)).await.unwrap();
    assert!(world.faulty.requests() < first, "the index was written again");
    for seq in [20, 21] {
        sequencer.put("q", seq, message(seq, 5)).await.unwrap();
    }
    assert_eq!(sequencer.sweep().await.unwrap().settled, 0, "somebody may rely on the row");
    subject.clock.advance(UNSETTLED_KEPT);
    assert_eq!(sequencer.sweep().await.unwrap().settled, 1);
    assert_eq!(world.index_rows().await, 0);
    assert_eq!(sequencer.sweep().await.unwrap().visited, 0);
    // A handle that remembers its row from before writes it anew.
    sequencer.put("q", 30, message(30, 5)).await.unwrap();
    assert_eq!(world.index_rows().await, 1, "a queue with something waiting is not in the index");
}

/// A sweep of many queues looks only at the one in which something waits.
pub async fn idle_queues_cost_nothing_and_no_stranded_one_is_missed(subject: &Subject) {
    let world = World::new(subject);
    let meter = Meter::new();
    let metered = Metered::new(world.faulty.clone(), meter.clone());
    let environment = subject.impatient();
    let sequencer = millpond_sequencer::Sequencer::open(
        std::sync::Arc::new(metered),
        &environment,
        &world.name,
        Config::default(),
    )
    .unwrap();
    let _ = meter.take();
    sequencer.sweep().await.unwrap();
    let nothing = meter.take().total().requests;
    for queue in 0..100 {
        sequencer.put(&format!("idle-{queue}"), 0, "x").await.unwrap();
    }
    subject.clock.advance(Duration::from_secs(3_600));
    let _ = meter.take();
    assert_eq!(sequencer.sweep().await.unwrap().visited, 0);
    assert_eq!(meter.take().total().requests, nothing, "idle queues cost something");
    sequencer.put("idle-7", 2, "x").await.unwrap();
    let _ = meter.take();
    assert_eq!(sequencer.sweep().await.unwrap().visited, 1);
    assert!(meter.take().total().requests <= nothing + 4);
    // Acknowledged means in the index: when that fails, so does the put.
    let handle = world.open(Config::default());
    world.faulty.follow(FaultPlan::None);
    handle.put("idle-8", 2, "x").await.unwrap();
    let requests = world.faulty.requests();
    for at in 0..requests {
        let storm = (at..at + 200).map(|at| (at, Fault::Definite)).collect();
        let queue = format!("idle-{}", 20 + at);
        let handle = world.open(Config::default());
        world.faulty.follow(FaultPlan::Script(storm));
        let put = handle.put(&queue, 2, "x").await;
        world.calm();
        let rows = world.index_rows().await;
        handle.put(&queue, 3, "x").await.unwrap();
        if put.is_ok() {
            assert_eq!(world.index_rows().await, rows, "acknowledged, and not in the index");
        } else {
            let kept = matches!(put, Err(SequencerError::Store(StoreError::Unavailable { .. })));
            assert!(kept, "{put:?}");
        }
    }
}
