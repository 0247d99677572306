//! Steps of tasks, and what a kill repeats of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_consumer::limits::STEPS_SAVED_EVERY;
use millpond_consumer::{Consumer, Message};

use super::events::{queue, stream};
use super::world::{Killer, World};
use crate::subject::Subject;

/// What a handler does between its steps, by the number of its call.
#[derive(Clone, Copy)]
enum Does {
    /// Kills the process, before the first step.
    DiesFirst,
    /// Waits this long, then takes the second step and kills the process.
    DiesLast(Duration),
    /// Takes both, and waits this long in between.
    Works(Duration),
}

fn consumer(world: &World, killer: &Killer, calls: &[Does]) -> Consumer {
    let calls = calls.to_vec();
    let (killer, notes) = (killer.clone(), world.calls.clone());
    let (clock, made) = (Arc::clone(&world.environment.clock), Arc::new(AtomicUsize::new(0)));
    let handler = move |message: Message| {
        let (killer, notes, clock) = (killer.clone(), notes.clone(), Arc::clone(&clock));
        let does = calls[made.fetch_add(1, Ordering::Relaxed).min(calls.len() - 1)];
        async move {
            let note = |step: &'static str| {
                let (notes, message) = (notes.clone(), message.clone());
                async move {
                    notes.note(step, &message);
                    Ok::<_, String>(())
                }
            };
            if matches!(does, Does::DiesFirst) {
                killer.strike().await;
            }
            message.step("charge", note("charge")).await?;
            if let Does::DiesLast(wait) | Does::Works(wait) = does {
                clock.sleep(wait).await;
            }
            message.step("ship", note("ship")).await?;
            if matches!(does, Does::DiesLast(_)) {
                killer.strike().await;
            }
            Ok::<_, String>(())
        }
    };
    world.builder().one("order", handler).attempts(5).build().unwrap()
}

/// Steps that ended well before a kill are not repeated, those just before it are: of a stream and of a queue.
pub async fn a_kill_repeats_only_the_last_steps(subject: &Subject) {
    const LONG: Duration = Duration::from_secs(6);
    assert!(LONG > STEPS_SAVED_EVERY);
    for events in [[stream([1]), stream([1])], [queue([(1, 1)]), queue([(1, 2)])]] {
        let (world, killer) = (World::of(subject), Killer::default());
        let calls = &[Does::DiesLast(LONG), Does::Works(Duration::ZERO)];
        let consumer = consumer(&world, &killer, calls);
        assert!(world.deliver_to_mortal(&consumer, &events[0], &killer).await.is_none());
        let (_, report) = world.deliver_to_mortal(&consumer, &events[1], &killer).await.unwrap();
        assert!(report.is_complete() && report.careful, "{report:?}");
        assert_eq!((world.calls.of("charge").len(), world.calls.of("ship").len()), (1, 2));
    }
}

/// After a kill, messages run one by one, and each step is saved as it ends. The kill counts as before.
pub async fn a_careful_run_saves_each_step(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let calls = &[Does::DiesFirst, Does::DiesLast(Duration::ZERO), Does::Works(Duration::ZERO)];
    let consumer = consumer(&world, &killer, calls);
    for _ in 0..2 {
        assert!(world.deliver_to_mortal(&consumer, &stream([1]), &killer).await.is_none());
    }
    let (_, report) = world.deliver_to_mortal(&consumer, &stream([1]), &killer).await.unwrap();
    assert!(report.is_complete() && report.tasks["order"].kills == 1, "{report:?}");
    assert_eq!((world.calls.of("charge").len(), world.calls.of("ship").len()), (1, 1));
    let rows = world.rows(&super::state::address()).await;
    assert_eq!(rows[0].state.tasks["order"].attempts, 2, "the kill and the unnoted one before it");
}

/// Steps of a batch that is done soon cost nothing; those of a long one a row, and no attempt.
pub async fn steps_of_a_batch_that_is_done_soon_cost_nothing(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let quick = consumer(&world, &killer, &[Does::Works(Duration::from_secs(1))]);
    let _ = world.meter.take();
    let (_, report) = world.deliver(&quick, &stream(1..=10)).await;
    assert!(report.is_complete() && report.saved == 0, "{report:?}");
    assert_eq!(world.writes(), (1, 0), "the marker");
    let slow = consumer(&world, &killer, &[Does::Works(Duration::from_secs(12))]);
    let (_, report) = world.deliver(&slow, &stream(11..=12)).await;
    assert!(report.is_complete() && report.saved == 4, "{report:?}");
    world.calls.take();
    // Its answer was lost: nothing is repeated.
    let (_, report) = world.deliver(&slow, &stream(11..=12)).await;
    assert!(report.is_complete() && world.calls.all().is_empty(), "{report:?}");
    let rows = world.rows(&super::state::address()).await;
    assert!(rows.iter().all(|row| row.state.tasks["order"].attempts == 0), "{rows:?}");
}
