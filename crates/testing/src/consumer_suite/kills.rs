//! Messages that take the process down with them.

use millpond_consumer::{Builder, Message, Order, Outcome, Reason};

use super::events::{queue, stream};
use super::world::{Killer, World, is};
use crate::subject::Subject;

/// A consumer whose process dies of message 3.
fn mortal(world: &World, killer: &Killer) -> Builder {
    let (killer, calls) = (killer.clone(), world.calls.clone());
    world.builder().one("index", move |message: Message| {
        let killer = killer.clone();
        calls.note("index", &message);
        async move {
            if is(&message, 3) {
                killer.strike().await;
            }
            Outcome::Done
        }
    })
}

/// A killed process counts and the killer is isolated and dead lettered.
pub async fn a_killed_process_counts_and_the_killer_is_isolated_and_dead_lettered(
    subject: &Subject,
) {
    let (world, killer) = (World::of(subject), Killer::default());
    let consumer = mortal(&world, &killer).attempts(3).build().unwrap();
    let event = stream(1..=5);
    for _ in 0..3 {
        assert!(world.deliver_to_mortal(&consumer, &event, &killer).await.is_none(), "killed");
    }
    assert!(world.dead().is_empty());
    let (_, report) = world.deliver_to_mortal(&consumer, &event, &killer).await.unwrap();
    assert!(report.is_complete() && report.careful, "{report:?}");
    assert!(report.metrics().contains(&("consumer_careful", 1)), "what an alarm is raised by");
    assert_eq!(report.tasks["index"].kills, 1);
    let letter = &world.dead()[0];
    assert_eq!(
        (letter.reason, letter.detail.as_str()),
        (Reason::Exhausted, "index: the process was killed")
    );
    assert_eq!(letter.tasks["index"].attempts, 3);
    let counts = world.calls.counts("index");
    assert_eq!(counts["3"], 3, "exactly as often as it may");
    // The innocent ran in the first delivery, unsaved, and once more: never counted, never dead.
    assert!(["1", "2", "4", "5"].iter().all(|n| counts[*n] <= 2), "{counts:?}");
    assert_eq!(world.dead().len(), 1);
    // What comes next is not careful any more.
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(6..=9), &killer).await.unwrap();
    assert!(!report.careful && report.is_complete());
}

/// A killer is isolated under bisecting too.
pub async fn a_killer_is_isolated_under_bisecting_too(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let consumer = mortal(&world, &killer).attempts(3).order(Order::PerShard).build().unwrap();
    assert!(world.deliver_to_mortal(&consumer, &stream(1..=8), &killer).await.is_none());
    // Lambda halves the batch. Both halves are careful, since each has an end of it.
    assert!(world.deliver_to_mortal(&consumer, &stream(1..=4), &killer).await.is_none());
    assert!(world.deliver_to_mortal(&consumer, &stream(1..=4), &killer).await.is_none());
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(1..=4), &killer).await.unwrap();
    assert!(report.is_complete());
    assert_eq!(world.calls.counts("index")["3"], 3);
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(5..=8), &killer).await.unwrap();
    assert!(report.careful && report.is_complete());
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(5..=8), &killer).await.unwrap();
    assert!(!report.careful, "its end was answered for");
}

/// A killer is isolated among the messages of a queue.
pub async fn a_killer_is_isolated_among_the_messages_of_a_queue(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let consumer = mortal(&world, &killer).attempts(3).concurrency(1).build().unwrap();
    for receives in 1..=3 {
        let event = queue((1..=5).map(|n| (n, receives)));
        assert!(world.deliver_to_mortal(&consumer, &event, &killer).await.is_none());
    }
    let event = queue((1..=5).map(|n| (n, 4)));
    let (_, report) = world.deliver_to_mortal(&consumer, &event, &killer).await.unwrap();
    assert!(report.is_complete() && report.careful);
    assert_eq!(world.calls.counts("index")["3"], 3);
    assert_eq!((world.dead().len(), world.dead()[0].reason), (1, Reason::Exhausted));
}

/// A delivery of a queue that ended as it should is not taken for killed.
pub async fn a_delivery_of_a_queue_that_ended_as_it_should_is_not_taken_for_killed(
    subject: &Subject,
) {
    let world = World::of(subject);
    let plan = |message: &Message| {
        if message.attempt() < 3 { Outcome::retry("no") } else { Outcome::Done }
    };
    let consumer = world.planned(plan).build().unwrap();
    for receives in 1..=3 {
        let (_, report) = world.deliver(&consumer, &queue([(1, receives)])).await;
        assert!(!report.careful, "delivery {receives}");
    }
    // One that was lost on the way to the function looks like a kill, and costs no attempt.
    let (_, report) = world.deliver(&consumer, &queue([(2, 3)])).await;
    assert!(report.careful);
    assert_eq!(report.tasks["index"].kills, 0);
}

/// Process all gets messages one by one after a kill.
pub async fn process_all_gets_messages_one_by_one_after_a_kill(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let (strike, calls) = (killer.clone(), world.calls.clone());
    let handler = move |all: Vec<Message>| {
        let strike = strike.clone();
        for message in &all {
            calls.note("bulk", message);
        }
        async move {
            if all.iter().any(|message| is(message, 2)) {
                strike.strike().await;
            }
            vec![Outcome::Done; all.len()]
        }
    };
    let consumer = world.builder().all("bulk", handler).attempts(2).build().unwrap();
    for _ in 0..2 {
        assert!(world.deliver_to_mortal(&consumer, &stream(1..=3), &killer).await.is_none());
    }
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(1..=3), &killer).await.unwrap();
    assert!(report.is_complete());
    assert_eq!(world.dead().len(), 1);
    assert_eq!(world.calls.of("bulk"), ["1", "2", "3", "1", "2", "3"]);
}

/// A careful run that ends at the deadline stays careful for the rest.
pub async fn a_careful_run_that_ends_at_the_deadline_stays_careful_for_the_rest(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let (strike, calls) = (killer.clone(), world.calls.clone());
    let clock = std::sync::Arc::clone(&world.environment.clock);
    let handler = move |message: Message| {
        let (strike, clock) = (strike.clone(), std::sync::Arc::clone(&clock));
        calls.note("index", &message);
        async move {
            if is(&message, 4) {
                strike.strike().await;
            }
            clock.sleep(std::time::Duration::from_secs(20)).await;
        }
    };
    let consumer = world.builder().one("index", handler).attempts(2).build().unwrap();
    assert!(world.deliver_to_mortal(&consumer, &stream(1..=4), &killer).await.is_none());
    // Three of twenty seconds do not fit into 48: the deadline comes before the killer's turn.
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(1..=4), &killer).await.unwrap();
    assert!(report.careful && report.cut_off);
    assert!(world.deliver_to_mortal(&consumer, &stream(3..=4), &killer).await.is_none());
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(3..=4), &killer).await.unwrap();
    assert!(report.is_complete());
    assert_eq!(world.calls.counts("index")["4"], 2, "each kill counted");
}
