//! Ends of tumbling windows that fail: how often they are tried, and what becomes of what was gathered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_consumer::sink::Kind;
use millpond_consumer::state::Status;
use millpond_consumer::{Builder, Consumer, Message, Outcome, Reason, Sink, Window};
use serde_json::{Value, json};

use super::events::{STREAM, TABLE, event, stream, windowed};
use super::fakes::{Mood, MoodySink};
use super::world::{Killer, World, items, name};
use crate::subject::Subject;

/// What the end does when it is called.
#[derive(Clone, Copy)]
enum Does {
    Ends,
    Retries,
    Waits(Duration),
    Rejects,
    Panics,
    Hangs,
    Dies,
}

/// A consumer that lists its messages, and whose end does these things one after another, and then the last of them.
fn listing(world: &World, killer: &Killer, does: &[Does]) -> (Builder, Arc<AtomicUsize>) {
    listing_to(world, world.records.clone(), killer, does)
}

/// The same with another sink for dead records.
fn listing_to(
    world: &World,
    sink: impl Sink,
    killer: &Killer,
    does: &[Does],
) -> (Builder, Arc<AtomicUsize>) {
    let (does, calls) = (does.to_vec(), Arc::new(AtomicUsize::new(0)));
    let (made, killer) = (Arc::clone(&calls), killer.clone());
    let end = move |_: Window, _: Value| {
        let does = does[made.fetch_add(1, Ordering::Relaxed).min(does.len() - 1)];
        let killer = killer.clone();
        async move {
            match does {
                Does::Ends => Outcome::Done,
                Does::Retries => Outcome::retry("no account"),
                Does::Waits(wait) => Outcome::retry_after(wait, "not yet"),
                Does::Rejects => Outcome::reject("no such account"),
                Does::Panics => std::panic::resume_unwind(Box::new("planned")),
                Does::Hangs => std::future::pending().await,
                Does::Dies => {
                    killer.strike().await;
                    Outcome::Done
                }
            }
        }
    };
    let fold = |state: &mut Value, message: &Message| {
        let mut list = state["n"].as_array().cloned().unwrap_or_default();
        list.push(name(message).into());
        state["n"] = list.into();
    };
    let builder = Consumer::builder("orders")
        .environment(&world.environment)
        .state(world.state())
        .dead_messages(world.messages.clone())
        .dead_records(sink)
        .one("index", world.calls.handler("index", |_| Outcome::Done));
    (builder.window(fold).window_end(end), calls)
}

/// Whatever its calls come to, an end that never works is tried as often as a task; then the window is a dead record with
/// its state, bounds and history, and the shard goes on.
pub async fn an_end_that_keeps_failing_is_put_aside(subject: &Subject) {
    put_aside(subject, &windowed(&stream(1..=2), "{}", true), &json!(["1", "2"])).await;
}

/// The same in a batch that has no records.
pub async fn an_end_without_records_that_keeps_failing_is_put_aside(subject: &Subject) {
    let last = windowed(&event(Vec::new()), r#"{"n":["0"]}"#, true);
    put_aside(subject, &last, &json!(["0"])).await;
}

async fn put_aside(subject: &Subject, last: &str, gathered: &Value) {
    let (world, killer) = (World::of(subject), Killer::default());
    let does = [Does::Retries, Does::Panics, Does::Dies, Does::Hangs];
    let (builder, calls) = listing(&world, &killer, &does);
    let consumer = builder.attempts(4).build().unwrap();
    for call in 1..=3 {
        let handled = world.deliver_to_mortal(&consumer, last, &killer).await;
        assert_eq!(handled.is_none(), call == 3, "the third kills its process");
        if let Some((response, report)) = handled {
            assert_eq!(items(&response), [""], "the whole batch comes again");
            assert!(report.window_open && !report.is_complete(), "{report:?}");
        }
        assert!(world.records.letters().is_empty());
    }
    let (response, report) = world.deliver_to_mortal(&consumer, last, &killer).await.unwrap();
    assert!(items(&response).is_empty() && report.is_complete(), "{report:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 4, "exactly as often as it may");
    let counts = &report.tasks["window/end"];
    assert_eq!((counts.kills, counts.hangs, counts.exhausted), (1, 1, 1), "{counts:?}");
    let letter = world.records.letters().remove(0);
    assert_eq!((letter.kind, letter.reason), (Kind::Record, Reason::Exhausted));
    assert_eq!(letter.detail, "window: it did not end in time");
    assert_eq!(letter.tasks["window/end"].attempts, 4);
    assert_eq!(letter.source.as_ref().unwrap().arn, STREAM);
    let window: Value = serde_json::from_slice(&letter.payload().unwrap()).unwrap();
    let bounds = json!({"start": "2024-01-01T00:00:00Z", "end": "2024-01-01T00:02:00Z"});
    assert_eq!((&window["state"]["n"], &window["window"]), (gathered, &bounds));
    // The answer was lost: the sink has the window already.
    let (response, _) = world.deliver_to_mortal(&consumer, last, &killer).await.unwrap();
    assert!(items(&response).is_empty());
    assert_eq!((calls.load(Ordering::Relaxed), world.records.letters().len()), (4, 1));
    assert!(world.dead().is_empty(), "no message is to blame");
}

/// An end that always kills its process is called as often as it may, and no message is charged for it. Messages run once
/// more at most: they were done, and not saved.
pub async fn an_end_that_kills_its_process_is_counted_and_put_aside(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let (builder, calls) = listing(&world, &killer, &[Does::Dies]);
    let consumer = builder.attempts(3).build().unwrap();
    let last = windowed(&stream(1..=3), "{}", true);
    for _ in 0..3 {
        assert!(world.deliver_to_mortal(&consumer, &last, &killer).await.is_none());
    }
    let (_, report) = world.deliver_to_mortal(&consumer, &last, &killer).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let letter = world.records.letters().remove(0);
    assert_eq!(
        (letter.reason, letter.detail.as_str()),
        (Reason::Exhausted, "window: the process was killed")
    );
    assert!(world.dead().is_empty());
    let counts = world.calls.counts("index");
    assert!(counts.values().all(|calls| *calls <= 2), "{counts:?}");
    let rows = world.rows(&super::state::address()).await;
    let charged = rows.iter().filter(|row| row.state.tasks.contains_key("index"));
    assert!(charged.into_iter().all(|row| row.state.tasks["index"].attempts == 0), "{rows:?}");
}

/// A window is put aside with the sink's receipt: until there is one, the batch comes again, and only the letter is tried.
pub async fn a_window_is_put_aside_only_with_the_sinks_receipt(subject: &Subject) {
    for (at, does) in [Does::Retries, Does::Rejects].into_iter().enumerate() {
        let (world, killer, sink) = (World::of(subject), Killer::default(), MoodySink::default());
        let (builder, calls) = listing_to(&world, sink.clone(), &killer, &[does]);
        let consumer = builder.attempts(1).build().unwrap();
        let month = format!("2024-0{}", at + 2);
        let last = windowed(&stream([1]), "{}", true).replace("2024-01", &month);
        sink.mood.set(Mood::Fails);
        for _ in 0..2 {
            let (response, report) = world.deliver(&consumer, &last).await;
            assert_eq!(items(&response), [""]);
            assert!(!report.is_complete() && report.problems[0].contains("out of order"));
        }
        sink.mood.set(Mood::Works);
        let (response, report) = world.deliver(&consumer, &last).await;
        assert!(items(&response).is_empty() && report.is_complete(), "{report:?}");
        assert_eq!((calls.load(Ordering::Relaxed), sink.inner.letters().len()), (1, 1));
    }
}

/// An end that works after all is forgotten: when its stream is read anew, it runs anew and has all its attempts.
pub async fn an_end_that_worked_is_not_remembered(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let does = [Does::Retries, Does::Dies, Does::Ends, Does::Retries, Does::Retries, Does::Ends];
    let (builder, calls) = listing(&world, &killer, &does);
    let consumer = builder.attempts(3).build().unwrap();
    let last = windowed(&event(Vec::new()), r#"{"n":[]}"#, true);
    let mut open = Vec::new();
    for _ in 0..does.len() {
        let handled = world.deliver_to_mortal(&consumer, &last, &killer).await;
        open.push(handled.is_none_or(|(_, report)| report.window_open));
    }
    assert_eq!(open, [true, true, false, true, true, false]);
    assert_eq!((calls.load(Ordering::Relaxed), world.records.letters().len()), (6, 0));
}

/// Windows are told apart by shard, start and, when they are cut short, by part: each has its own attempts.
pub async fn attempts_of_one_window_are_not_those_of_another(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let (builder, calls) = listing(&world, &killer, &[Does::Retries]);
    let consumer = builder.attempts(2).build().unwrap();
    let first = windowed(&event(Vec::new()), r#"{"n":["1"]}"#, true);
    let cut = first.replace(r#"Early":false"#, r#"Early":true"#).replace("true,", "false,");
    let others = [
        first.replace("T00:00", "T00:02"),
        first.replace("shardId-000000000001", "shardId-000000000002"),
        first.replace(STREAM, TABLE),
        cut.clone(),
        cut.replace(r#"["1"]"#, r#"["2"]"#),
    ];
    let all: Vec<&String> = others.iter().chain([&first]).collect();
    for event in &all {
        let (_, report) = world.deliver(&consumer, event).await;
        assert!(report.window_open, "the first attempt: {event}");
    }
    for event in &all {
        let (_, report) = world.deliver(&consumer, event).await;
        assert!(report.is_complete(), "the second and last: {event}");
    }
    let ids: std::collections::BTreeSet<String> =
        world.records.letters().into_iter().map(|letter| letter.dedupe_id).collect();
    assert_eq!((calls.load(Ordering::Relaxed), ids.len()), (all.len() * 2, all.len()));
}

/// An end that asks to wait is not called before, and waiting is no attempt. What is left is seen in its row.
pub async fn an_end_that_asks_to_wait_is_not_called_before(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let does = [Does::Waits(Duration::from_secs(300)), Does::Ends];
    let (builder, calls) = listing(&world, &killer, &does);
    let consumer = builder.attempts(2).build().unwrap();
    let last = windowed(&event(Vec::new()), "{}", true);
    for _ in 0..3 {
        assert!(world.deliver(&consumer, &last).await.1.window_open);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let rows = world.rows(&super::state::address()).await;
    let task = &rows[0].state.tasks["window/end"];
    assert_eq!((task.status, task.attempts), (Status::Pending, 1));
    assert!(rows[0].position.to_string().ends_with("/2024-01-01T00:00:00Z"), "{rows:?}");
    world.clock.advance(Duration::from_secs(301));
    assert!(world.deliver(&consumer, &last).await.1.is_complete());
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
