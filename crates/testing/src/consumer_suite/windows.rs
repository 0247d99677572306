//! Tumbling windows: the state that a source carries on, and what is gathered in it.

use millpond_consumer::{Builder, Message, Outcome, Reason, Responses, Window};
use serde_json::{Value, json};

use super::events::{event, stream, windowed};
use super::world::{World, is, items, name};
use crate::subject::Subject;

/// A consumer that adds up the numbers of messages.
fn adding(world: &World, bad: &'static [u64]) -> Builder {
    let plan = move |message: &Message| {
        let fails = bad.iter().any(|n| is(message, *n)) && message.attempt() == 1;
        if fails { Outcome::retry("no") } else { Outcome::Done }
    };
    world.planned(plan).window(|state: &mut Value, message: &Message| {
        let sum = state["sum"].as_u64().unwrap_or(0);
        state["sum"] = (sum + name(message).parse::<u64>().expect("a number")).into();
    })
}

fn state(response: &bytes::Bytes) -> Value {
    serde_json::from_slice::<Value>(response).unwrap()["state"].clone()
}

/// What does not come again is in the state of an answer, what comes again is not, and no message is in it twice.
pub async fn a_window_gathers_each_message_once(subject: &Subject) {
    let world = World::of(subject);
    let consumer = adding(&world, &[2]).build().unwrap();
    let (response, _) = world.deliver(&consumer, &windowed(&stream(1..=3), "{}", false)).await;
    assert_eq!((items(&response), state(&response)), (vec!["2".to_owned()], json!({"sum": 1})));
    let again = windowed(&stream(2..=3), r#"{"sum":1}"#, false);
    let (response, _) = world.deliver(&consumer, &again).await;
    assert_eq!((items(&response).len(), state(&response)), (0, json!({"sum": 6})));
    assert_eq!(world.calls.of("index"), ["1", "2", "3", "2"], "three was done before");
}

/// The end runs with what was gathered, when all is finished; also without any record. It costs a read and two writes.
pub async fn the_end_of_a_window_gets_what_was_gathered(subject: &Subject) {
    let world = World::of(subject);
    let notes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&notes);
    let end = move |window: Window, state: Value| {
        told.lock().unwrap().push((window.idempotency_key(), state));
        async {}
    };
    let consumer = adding(&world, &[2]).window_end(end).build().unwrap();
    let (response, _) = world.deliver(&consumer, &windowed(&stream(1..=2), "{}", true)).await;
    assert_eq!(items(&response), ["2"]);
    assert!(notes.lock().unwrap().is_empty(), "not all is finished");
    let again = windowed(&stream(2..=2), r#"{"sum":1}"#, true);
    let (response, _) = world.deliver(&consumer, &again).await;
    assert_eq!((items(&response).len(), state(&response)), (0, json!({"sum": 3})));
    let _ = world.meter.take();
    let empty = windowed(&event(Vec::new()), r#"{"sum":3}"#, true);
    let (response, report) = world.deliver(&consumer, &empty).await;
    assert_eq!(response, r#"{"batchItemFailures":[],"state":{"sum":3}}"#);
    assert!(report.is_complete());
    assert_eq!(world.meter.take().total().requests, 3);
    let notes = notes.lock().unwrap();
    assert_eq!(notes.iter().map(|(_, state)| state["sum"].clone()).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(notes[0].0, notes[1].0);
}

/// An end that fails is tried again with the whole batch; nothing of that runs twice, and nothing is gathered twice.
pub async fn a_failed_end_of_a_window_is_tried_again(subject: &Subject) {
    for responses in [Responses::Partial, Responses::Error] {
        let world = World::of(subject);
        let tries = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let made = std::sync::Arc::clone(&tries);
        let end = move |_: Window, state: Value| {
            let first = made.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            assert!(!first, "planned");
            assert_eq!(state, json!({"sum": 13}));
            async {}
        };
        let name = format!("{responses:?}");
        let builder = millpond_consumer::Consumer::builder(&name).environment(&world.environment);
        let builder = builder.state(world.state()).dead_letters(world.messages.clone());
        let consumer = builder
            .one("index", world.calls.handler("index", |_| Outcome::Done))
            .window(|state: &mut Value, message: &Message| {
                let n: u64 = super::world::name(message).parse().expect("a number");
                state["sum"] = (state["sum"].as_u64().unwrap_or(0) + n).into();
            })
            .window_end(end)
            .responses(responses)
            .build()
            .unwrap();
        let last = windowed(&stream(1..=2), r#"{"sum":10}"#, true);
        let deadline = world.environment.now().plus(super::world::INVOCATION);
        let handled = consumer.handle(last.as_bytes(), deadline);
        let handled = crate::in_virtual_time(&world.clock, &world.watched, handled).await;
        let report = match (responses, handled) {
            (Responses::Partial, Ok((response, report))) => {
                assert_eq!(
                    (items(&response), state(&response)),
                    (vec![String::new()], json!({"sum": 10}))
                );
                report
            }
            (Responses::Error, Err(failed)) => failed.report,
            (_, other) => panic!("{other:?}"),
        };
        assert!(report.window_open && !report.is_complete());
        assert!(report.problems[0].contains("planned"), "{report:?}");
        let (response, report) = world.deliver(&consumer, &last).await;
        assert_eq!((items(&response).len(), state(&response)), (0, json!({"sum": 13})));
        assert!(report.is_complete());
        assert_eq!(world.calls.of("index"), ["1", "2"], "nothing runs twice");
    }
}

/// A window that is given up goes to the dead records, with its state.
pub async fn a_rejected_window_is_a_dead_record(subject: &Subject) {
    let world = World::of(subject);
    let end = |_: Window, _: Value| async { Outcome::reject("no such account") };
    let consumer = adding(&world, &[]).window_end(end).build().unwrap();
    let (response, _) = world.deliver(&consumer, &windowed(&stream([7]), "{}", true)).await;
    assert_eq!((items(&response).len(), state(&response)), (0, json!({"sum": 7})));
    let letter = world.records.letters().remove(0);
    assert_eq!(
        (letter.reason, letter.detail.as_str()),
        (Reason::Rejected, "window: no such account")
    );
    let window: Value = serde_json::from_slice(&letter.payload().unwrap()).unwrap();
    assert_eq!(
        (&window["state"], &window["window"]["start"]),
        (&json!({"sum": 7}), &json!("2024-01-01T00:00:00Z"))
    );
}

/// What is dead is not gathered, and a message for which the fold panics is dead.
pub async fn dead_messages_are_in_no_window(subject: &Subject) {
    let world = World::of(subject);
    let plan = |message: &Message| {
        if is(message, 2) { Outcome::reject("bad") } else { Outcome::Done }
    };
    let fold = |state: &mut Value, message: &Message| {
        state["last"] = name(message).into();
        assert!(!is(message, 3), "three");
    };
    let consumer = world.planned(plan).window(fold).build().unwrap();
    let (response, _) = world.deliver(&consumer, &windowed(&stream(1..=3), "{}", false)).await;
    assert_eq!((items(&response).len(), state(&response)), (0, json!({"last": "1"})));
    let mut letters: Vec<_> =
        world.dead().into_iter().map(|letter| (letter.reason, letter.detail)).collect();
    letters.sort();
    let rejected = |detail: &str| (Reason::Rejected, detail.to_owned());
    assert_eq!(letters, [rejected("index: bad"), rejected("window: the fold panicked: three")]);
}

/// A consumer without a fold answers with the state as it came, and with an empty one where none came.
pub async fn without_a_fold_the_state_is_handed_on(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(|_| Outcome::Done).build().unwrap();
    for (came, goes) in [(r#"{"a": 1.50}"#, r#"{"a": 1.50}"#), ("null", "{}"), ("{}", "{}")] {
        let (response, _) = world.deliver(&consumer, &windowed(&stream([1]), came, true)).await;
        assert_eq!(response, format!(r#"{{"batchItemFailures":[],"state":{goes}}}"#));
    }
    let without = windowed(&stream([1]), "{}", false).replace(r#""state":{},"#, "");
    let (response, _) = world.deliver(&consumer, &without).await;
    assert_eq!(response, r#"{"batchItemFailures":[],"state":{}}"#);
    // Also when the rest of the event cannot be read: without a state, it would come for ever.
    let broken = windowed(r#"{"Records":7}"#, r#"{"a":1}"#, false);
    let (response, report) = world.deliver(&consumer, &broken).await;
    assert_eq!(response, r#"{"batchItemFailures":[],"state":{"a":1}}"#);
    assert_eq!(report.dead_total(), 1);
}
