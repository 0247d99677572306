//! Handlers, outcomes, attempts and replays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::events::{queue, stream};
use crate::support::{World, is};
use millpond_consumer::{Message, Outcome, Reason, Report};

#[tokio::test]
async fn no_records_is_success_and_nothing_is_read_or_written() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).build().unwrap();
    let (response, report) = world.deliver(&consumer, r#"{"Records":[]}"#).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    assert!(report.is_complete());
    assert_eq!(world.meter.take().total().requests, 0);
}

#[tokio::test]
async fn all_succeed_each_handler_is_called_once_per_message_and_only_the_marker_is_written() {
    let world = World::new();
    let consumer = world
        .planned(|_| Outcome::Done)
        .one("notify", world.calls.handler("notify", |_| Outcome::Done))
        .all("archive", world.calls.batches("archive", |all| vec![Outcome::Done; all.len()]))
        .build()
        .unwrap();
    let (response, report) = world.deliver(&consumer, &stream(1..=100)).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    assert_eq!((report.finished, report.unfinished, report.saved), (100, 0, 0));
    for task in ["index", "notify", "archive"] {
        let counts = world.calls.counts(task);
        assert_eq!((counts.len(), counts.values().sum::<usize>()), (100, 100), "{task}");
    }
    assert_eq!(report.tasks["archive"].calls, 1);
    assert_eq!(world.writes(), (1, 0), "one marker, and no state");

    // Of a queue, not even that.
    let (_, report) = world.deliver(&consumer, &queue((1..=10).map(|n| (n, 1)))).await;
    assert_eq!(report.finished, 10);
    assert_eq!(world.meter.take().total().requests, 0);
}

#[tokio::test]
async fn replay_runs_only_unfinished_pairs_of_message_and_task() {
    let world = World::new();
    let consumer = world
        .planned(|_| Outcome::Done)
        .one(
            "notify",
            world.calls.handler("notify", |message| {
                if is(message, 2) && message.attempt() == 1 {
                    Outcome::retry("busy")
                } else {
                    Outcome::Done
                }
            }),
        )
        .build()
        .unwrap();
    assert_eq!(world.failures(&consumer, &stream(1..=4)).await, ["2"]);
    world.calls.take();
    // Lambda delivers from the lowest unfinished on.
    let (response, report) = world.deliver(&consumer, &stream(2..=4)).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    assert_eq!(world.calls.all(), [("notify".to_owned(), "2".to_owned())]);
    assert_eq!(report.finished_before, 2);
}

#[tokio::test]
async fn replay_runs_only_unfinished_steps() {
    let world = World::new();
    let charged = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&charged);
    let handler = move |message: Message| {
        let counter = Arc::clone(&counter);
        async move {
            message
                .step("charge", async {
                    counter.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, String>(())
                })
                .await?;
            let ship =
                async { if message.attempt() < 3 { Err("no van".to_owned()) } else { Ok(()) } };
            message.step("ship", ship).await
        }
    };
    let consumer = world.builder().one("order", handler).build().unwrap();
    for expected in [vec!["1"], vec!["1"], vec![]] {
        assert_eq!(world.failures(&consumer, &stream([1])).await, expected);
    }
    assert_eq!(charged.load(Ordering::Relaxed), 1, "charged once, though it took three attempts");
}

#[tokio::test]
async fn max_attempts_n_means_exactly_n_calls_then_the_dead_messages_once() {
    for attempts in [1, 2, 5] {
        let world = World::new();
        let consumer = world.planned(|_| Outcome::retry("no")).attempts(attempts).build().unwrap();
        for _ in 1..attempts {
            assert_eq!(world.failures(&consumer, &stream([1])).await, ["1"]);
            assert!(world.dead().is_empty());
        }
        for _ in 0..3 {
            // The last attempt, and what a source may deliver once more after it.
            assert!(world.failures(&consumer, &stream([1])).await.is_empty());
            if attempts > 1 {
                assert_eq!(world.calls.of("index").len(), attempts as usize);
                assert_eq!(world.dead().len(), 1);
            } else {
                break;
            }
        }
        let letter = &world.dead()[0];
        assert_eq!(letter.reason, Reason::Exhausted);
        assert_eq!(letter.tasks["index"].attempts, attempts);
    }
}

#[tokio::test]
async fn a_panic_counts() {
    let world = World::new();
    let calls = world.calls.clone();
    let handler = move |message: Message| {
        calls.note("index", &message);
        async move { assert!(!is(&message, 1), "message one is bad") }
    };
    let consumer = world.builder().one("index", handler).attempts(2).build().unwrap();
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert_eq!((report.tasks["index"].panics, report.finished), (1, 2));
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(report.is_complete());
    let letter = &world.dead()[0];
    assert_eq!(letter.detail, "index: the handler panicked: message one is bad");
    assert_eq!(world.calls.counts("index"), counts([("1", 2), ("2", 1), ("3", 1)]));
}

#[tokio::test]
async fn a_hang_counts_and_the_others_are_finished() {
    let world = World::new();
    let calls = world.calls.clone();
    let handler = move |message: Message| {
        calls.note("index", &message);
        async move {
            if is(&message, 1) {
                std::future::pending::<()>().await;
            }
        }
    };
    let consumer = world.builder().one("index", handler).attempts(2).build().unwrap();
    let started = world.environment.now();
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(report.cut_off);
    assert_eq!((report.tasks["index"].hangs, report.finished, report.unstarted), (1, 2, 0));
    let took = world.environment.now().since(started);
    assert_eq!(took, crate::support::INVOCATION.mul_f64(0.8), "cut off at the share of the time");
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(report.is_complete());
    assert_eq!(world.dead()[0].detail, "index: the handler did not end in time");
    assert_eq!(world.calls.counts("index"), counts([("1", 2), ("2", 1), ("3", 1)]));
}

#[tokio::test]
async fn reject_goes_to_the_sink_in_the_same_run() {
    let world = World::new();
    let consumer = world
        .planned(
            |message| if is(message, 2) { Outcome::reject("no customer") } else { Outcome::Done },
        )
        .one("notify", world.calls.handler("notify", |_| Outcome::Done))
        .build()
        .unwrap();
    let (response, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    assert_eq!(report.dead, BTreeMap::from([(Reason::Rejected, 1)]));
    let letter = &world.dead()[0];
    assert_eq!((letter.reason, letter.detail.as_str()), (Reason::Rejected, "index: no customer"));
    assert_eq!(letter.payload().unwrap(), r#"{"n":2}"#);
    assert_eq!(world.calls.of("notify"), ["1", "3"], "no further task sees it");
}

#[tokio::test]
async fn reject_exhaustion_and_abandonment_are_told_apart() {
    let world = World::new();
    let plan = |message: &Message| {
        if is(message, 1) { Outcome::reject("bad") } else { Outcome::retry("busy") }
    };
    let consumer = world.planned(plan).attempts(3).build().unwrap();
    assert_eq!(world.failures(&consumer, &stream([1, 2])).await, ["2"]);
    // Deployed again without the task: what it had not done is abandoned, and what is left is done.
    let without = world.builder().one("other", world.calls.handler("other", |_| Outcome::Done));
    let without = without.attempts(3).build().unwrap();
    assert!(world.failures(&without, &stream([2])).await.is_empty());
    for _ in 0..3 {
        world.deliver(&consumer, &stream([3])).await;
    }
    let reasons: Vec<_> = world.dead().iter().map(|letter| letter.reason).collect();
    assert_eq!(reasons, [Reason::Rejected, Reason::Abandoned, Reason::Exhausted]);
    assert_eq!(world.calls.of("other"), ["2"]);
}

#[tokio::test]
async fn a_task_may_be_added_renamed_or_removed_between_deliveries() {
    let world = World::new();
    let first =
        world.planned(|message| if is(message, 2) { Outcome::retry("no") } else { Outcome::Done });
    assert_eq!(world.failures(&first.build().unwrap(), &stream(1..=3)).await, ["2"]);
    world.calls.take();
    let renamed = world
        .builder()
        .one("search", world.calls.handler("search", |_| Outcome::Done))
        .alias("index", "search")
        .one("added", world.calls.handler("added", |_| Outcome::Done))
        .build()
        .unwrap();
    let (_, report) = world.deliver(&renamed, &stream(2..=3)).await;
    assert!(report.is_complete());
    assert_eq!(world.calls.of("search"), ["2"], "three was done under the former name");
    assert_eq!(world.calls.counts("added"), counts([("2", 1), ("3", 1)]));
    assert!(world.dead().is_empty(), "nothing was abandoned");
}

#[tokio::test]
async fn process_all_sees_only_unfinished_messages_and_its_outcomes_are_honoured() {
    let world = World::new();
    let plan = |all: &[Message]| {
        let outcome = |message: &Message| match message.value().unwrap()["n"].as_u64().unwrap() {
            1 => Outcome::Done,
            2 => Outcome::retry("busy"),
            _ => Outcome::reject("bad"),
        };
        all.iter().map(outcome).collect()
    };
    let consumer = world.builder().all("bulk", world.calls.batches("bulk", plan)).build().unwrap();
    assert_eq!(world.failures(&consumer, &stream(1..=3)).await, ["2"]);
    assert_eq!(world.dead().len(), 1);
    world.calls.take();
    assert_eq!(world.failures(&consumer, &stream(2..=3)).await, ["2"]);
    assert_eq!(world.calls.of("bulk"), ["2"]);
}

#[tokio::test]
async fn what_process_all_settled_holds_whatever_it_returns() {
    let world = World::new();
    let handler = |all: Vec<Message>| async move {
        all[0].settle(Outcome::Done);
        all[1].settle(Outcome::reject("bad"));
        if is(&all[0], 10) {
            panic!("after the work");
        }
        Err::<Vec<Outcome>, _>("all of it failed")
    };
    let consumer = world.builder().all("bulk", handler).build().unwrap();
    assert_eq!(world.failures(&consumer, &stream(1..=3)).await, ["3"]);
    assert_eq!(world.failures(&consumer, &stream(10..=12)).await, ["12"]);
    assert_eq!(world.dead().len(), 2);
    // One that says nothing of a message has it again.
    let short = world.builder().all("short", |_: Vec<Message>| async { vec![Outcome::Done] });
    let report = world.deliver(&short.build().unwrap(), &stream(20..=21)).await.1;
    assert_eq!((report.finished, report.unfinished), (1, 1));
}

#[tokio::test]
async fn retry_after_is_kept() {
    let world = World::new();
    let wait = Duration::from_secs(300);
    let consumer = world.planned(move |message| match message.attempt() {
        1 => Outcome::retry_after(wait, "rate limit"),
        _ => Outcome::Done,
    });
    let consumer = consumer.build().unwrap();
    assert_eq!(world.failures(&consumer, &stream([1])).await, ["1"]);
    assert_eq!(world.failures(&consumer, &stream([1])).await, ["1"]);
    assert_eq!(world.calls.of("index").len(), 1, "it is not due yet, and no attempt is counted");
    world.clock.advance(wait);
    assert!(world.failures(&consumer, &stream([1])).await.is_empty());
    assert_eq!(world.calls.of("index").len(), 2);
}

#[tokio::test]
async fn hooks_run_around_a_batch_and_a_failing_first_one_counts_nothing() {
    let world = World::new();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let seen = Arc::clone(&seen);
        move |report: Report| {
            seen.lock().unwrap().push((what, report.messages));
            std::future::ready(())
        }
    };
    let first = Arc::clone(&seen);
    let consumer = world
        .planned(|_| Outcome::Done)
        .attempts(1)
        .before(move |messages: Vec<Message>| {
            first.lock().unwrap().push(("before", messages.len()));
            std::future::ready(if messages.len() == 1 { Err("not today") } else { Ok(()) })
        })
        .before_finish(note("before finish"))
        .after(note("after"))
        .build()
        .unwrap();
    world.deliver(&consumer, &stream(1..=2)).await;
    let order = [("before", 2), ("before finish", 2), ("after", 2)];
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), order);
    let (response, report) = world.deliver(&consumer, &stream([5])).await;
    assert_eq!(crate::support::items(&response), ["5"]);
    assert_eq!(report.problems, ["the hook before the batch failed: not today"]);
    assert!(world.dead().is_empty() && world.calls.of("index").len() == 2);
    let again = world.planned(|_| Outcome::Done).build().unwrap();
    assert!(!world.deliver(&again, &stream([5])).await.1.careful);
}

#[tokio::test]
async fn a_batch_is_summed_up_for_logs_and_metrics() {
    let world = World::new();
    let plan = |message: &Message| match message.value().unwrap()["n"].as_u64().unwrap() {
        1 => Outcome::retry("no"),
        2 => Outcome::reject("bad"),
        _ => Outcome::Done,
    };
    let consumer = world.planned(plan).build().unwrap();
    let (_, report) = world.deliver(&consumer, &stream(1..=5)).await;
    let metrics: BTreeMap<_, _> = report.metrics().into_iter().collect();
    let of = |name: &str| metrics[name];
    assert_eq!(
        (of("consumer_messages"), of("consumer_finished"), of("consumer_unfinished")),
        (5, 4, 1)
    );
    assert_eq!(
        (of("consumer_calls"), of("consumer_retries"), of("consumer_dead_letters")),
        (5, 1, 1)
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (json["consumer"].as_str(), json["dead"]["rejected"].as_u64()),
        (Some("orders"), Some(1))
    );
    assert_eq!(json["tasks"]["index"]["done"], 3);
}

fn counts<const N: usize>(of: [(&str, usize); N]) -> BTreeMap<String, usize> {
    of.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
