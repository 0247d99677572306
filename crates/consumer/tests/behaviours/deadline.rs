//! The end of the time: what is kept, what is counted, and that there is an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_consumer::{
    Consumer, Data, Extractor as _, Json, Message, Order, Outcome, StoreState, Window,
};
use serde_json::Value;

use crate::support::events::{one_key, stream, windowed};
use crate::support::fakes::{Mood, MoodySink, MoodyStore};
use crate::support::{INVOCATION, Killer, World, is, items};

#[tokio::test]
async fn at_the_deadline_unstarted_stay_uncounted_and_finished_are_kept() {
    let world = World::new();
    let calls = world.calls.clone();
    let clock = Arc::clone(&world.environment.clock);
    let handler = move |message: Message| {
        let clock = Arc::clone(&clock);
        calls.note("index", &message);
        async move { clock.sleep(Duration::from_secs(20)).await }
    };
    let consumer =
        world.builder().one("index", handler).attempts(1).concurrency(1).build().unwrap();
    // 48 of 60 seconds are for work: two messages, and the beginning of a third.
    let (response, report) = world.deliver(&consumer, &one_key(1..=5)).await;
    assert!(report.cut_off);
    assert_eq!(world.calls.of("index"), ["1", "2", "3"]);
    assert_eq!((report.finished, report.unstarted, report.tasks["index"].hangs), (3, 2, 1));
    assert_eq!(items(&response), ["4"], "the third was its last attempt, and is with the dead");
    world.calls.take();
    let (_, report) = world.deliver(&consumer, &one_key(4..=5)).await;
    assert_eq!(world.calls.of("index"), ["4", "5"]);
    assert!(report.is_complete() && world.dead().len() == 1);
}

#[tokio::test]
async fn late_results_are_ignored() {
    let world = World::new();
    let clock = Arc::clone(&world.environment.clock);
    let late = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&late);
    let handler = move |message: Message| {
        let (clock, kept) = (Arc::clone(&clock), Arc::clone(&kept));
        async move {
            let settle = message.clone();
            kept.lock().unwrap().push(settle);
            clock.sleep(INVOCATION * 2).await;
        }
    };
    let consumer = world.builder().one("index", handler).attempts(2).build().unwrap();
    world.deliver(&consumer, &stream([1])).await;
    // The handler's own copy says done, but too late.
    late.lock().unwrap()[0].settle(Outcome::Done);
    world.clock.advance(INVOCATION * 3);
    let (_, report) = world.deliver(&consumer, &stream([1])).await;
    assert_eq!(report.tasks["index"].exhausted, 1);
}

#[tokio::test]
async fn what_was_settled_and_stepped_before_the_deadline_is_kept() {
    let world = World::new();
    let handler = |message: Message| async move {
        message.step("first", async { Ok::<_, String>(()) }).await.unwrap();
        if is(&message, 1) {
            message.settle(Outcome::Done);
        }
        if message.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        message.step("first", async { Err("it was done before") }).await
    };
    let consumer = world.builder().one("index", handler).build().unwrap();
    assert_eq!(world.failures(&consumer, &stream(1..=2)).await, ["2"]);
    assert!(world.failures(&consumer, &stream([2])).await.is_empty());
}

#[tokio::test]
async fn the_response_comes_before_the_deadline_when_the_store_hangs() {
    for writes_only in [false, true] {
        let world = World::new();
        let moody = MoodyStore::new(Arc::clone(&world.store));
        moody.writes_only.store(writes_only, Ordering::Release);
        let state = StoreState::new(Arc::clone(&moody) as _, &world.environment);
        let switch = moody.mood.clone();
        let consumer = Consumer::builder("orders")
            .environment(&world.environment)
            .state(state)
            .dead_letters(world.messages.clone())
            .order(Order::None)
            .one(
                "index",
                world.calls.handler("index", |message| match is(message, 1) {
                    true => Outcome::retry("no"),
                    false => Outcome::Done,
                }),
            )
            // Once it hangs from the beginning, once from the end of the work on.
            .before_finish(move |_| {
                switch.set(Mood::Hangs);
                std::future::ready(())
            })
            .build()
            .unwrap();
        if !writes_only {
            moody.mood.set(Mood::Hangs);
        }
        let started = world.environment.now();
        let (response, report) = world.deliver(&consumer, &stream(1..=3)).await;
        let took = world.environment.now().since(started);
        assert!(took < INVOCATION, "{took:?}");
        assert_eq!(items(&response), ["1"]);
        let expected = if writes_only {
            "the state was not saved in time"
        } else {
            "the state did not answer in time"
        };
        assert_eq!(report.problems, [expected]);
        assert_eq!(
            world.calls.of("index").len(),
            if writes_only { 3 } else { 0 },
            "nothing runs without its state"
        );
    }
}

#[tokio::test]
async fn the_response_comes_before_the_deadline_when_a_sink_hangs_and_state_is_saved() {
    let world = World::new();
    let sink = MoodySink::default();
    sink.mood.set(Mood::Hangs);
    let consumer = Consumer::builder("orders")
        .environment(&world.environment)
        .state(world.state())
        .dead_letters(sink.clone())
        .one(
            "index",
            world.calls.handler("index", |message| match is(message, 2) {
                true => Outcome::reject("bad"),
                false => Outcome::Done,
            }),
        )
        .build()
        .unwrap();
    let started = world.environment.now();
    let (response, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(world.environment.now().since(started) < INVOCATION);
    assert_eq!(items(&response), ["2"]);
    assert_eq!(
        (report.problems.as_slice(), report.saved),
        (&["a sink did not answer in time".to_owned()][..], 2)
    );
    sink.mood.set(Mood::Works);
    world.calls.take();
    assert!(world.failures(&consumer, &stream(2..=3)).await.is_empty());
    assert!(world.calls.all().is_empty(), "the verdict was saved; only the letter was missing");
}

#[tokio::test]
async fn the_response_comes_before_the_deadline_when_hooks_hang() {
    let world = World::new();
    let consumer = world
        .planned(|_| Outcome::Done)
        .before_finish(|_| std::future::pending())
        .after(|_| std::future::pending())
        .build()
        .unwrap();
    let started = world.environment.now();
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(world.environment.now().since(started) < INVOCATION);
    assert!(report.is_complete());
}

/// A hook that hangs keeps neither letters nor state from being sent and saved, nor the hook after it from being called; and a
/// sink that hangs neither.
#[tokio::test]
async fn what_hangs_at_the_end_takes_nobody_elses_time() {
    for sink_hangs in [false, true] {
        let world = World::new();
        let sink = MoodySink::default();
        let after = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&after);
        if sink_hangs {
            sink.mood.set(Mood::Hangs);
        }
        let plan = |message: &Message| match is(message, 2) {
            true => Outcome::reject("bad"),
            // It hangs too, so that no time of the work is left.
            false => Outcome::retry("no"),
        };
        let handler = world.calls.handler("index", plan);
        let consumer = Consumer::builder("orders")
            .environment(&world.environment)
            .state(world.state())
            .dead_letters(sink.clone())
            .one("index", handler)
            .one("wait", |_: Message| std::future::pending::<()>())
            .before_finish(|_| std::future::pending())
            .after(move |_| {
                told.fetch_add(1, Ordering::Relaxed);
                std::future::pending()
            })
            .build()
            .unwrap();
        let started = world.environment.now();
        let (_, report) = world.deliver(&consumer, &stream(1..=2)).await;
        assert!(world.environment.now().since(started) < INVOCATION);
        assert_eq!(report.dead_total(), usize::from(!sink_hangs), "{report:?}");
        assert_eq!((report.saved, after.load(Ordering::Relaxed)), (2, 1), "{report:?}");
    }
}

#[tokio::test]
async fn a_deadline_that_has_passed_runs_nothing_and_counts_nothing() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).attempts(1).build().unwrap();
    let past = world.environment.now().minus(Duration::from_secs(1));
    let event = stream(1..=3);
    let handled = consumer.handle(event.as_bytes(), past);
    let (response, report) =
        millpond_testing::in_virtual_time(&world.clock, &world.watched, handled).await.unwrap();
    assert_eq!((items(&response), report.unfinished), (vec!["1".to_owned()], 3));
    assert!(world.dead().is_empty());
}

/// A handler that blocks its thread does not keep the answer back, on a runtime with threads.
#[test]
fn a_handler_that_blocks_its_thread_is_cut_off_too() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let environment = millpond_store::Environment::system();
    let store = Arc::new(millpond_store::MemoryStore::new(&environment));
    let (go, stop) = std::sync::mpsc::channel::<()>();
    let stop = Arc::new(std::sync::Mutex::new(stop));
    let consumer = Consumer::builder("orders")
        .state(StoreState::new(store, &environment))
        .dead_letters(millpond_consumer::MemorySink::new())
        .one("index", move |_: Message| {
            let stop = Arc::clone(&stop);
            async move {
                // Blocks until the test has its answer.
                let _ = stop.lock().unwrap().recv();
            }
        })
        .build()
        .unwrap();
    let event = stream([1]);
    let deadline = environment.now().plus(Duration::from_millis(500));
    let (_, report) = runtime.block_on(consumer.handle(event.as_bytes(), deadline)).unwrap();
    assert!(report.cut_off && report.tasks["index"].hangs == 1);
    drop(go);
}

/// An extractor that hangs is cut off and counted, until its record is put aside and the others run.
#[test]
fn an_extractor_that_hangs_is_counted_and_its_record_put_aside() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let environment = millpond_store::Environment::system();
    let store = Arc::new(millpond_store::MemoryStore::new(&environment));
    let (go, stop) = std::sync::mpsc::channel::<()>();
    let stop = std::sync::Mutex::new(stop);
    let (dead, calls) = (millpond_consumer::MemorySink::new(), World::new().calls);
    let consumer = Consumer::builder("orders")
        .state(StoreState::new(store, &environment))
        .dead_letters(dead.clone())
        .one("index", calls.handler("index", |_| Outcome::Done))
        .extractor(move |data: &Data| {
            if &data.bytes[..] == br#"{"n":2}"# {
                // Blocks until the test has its answers.
                let _ = stop.lock().unwrap().recv();
            }
            Json.extract(data)
        })
        .attempts(2)
        .build()
        .unwrap();
    let deliver = || {
        let event = stream(1..=3);
        let deadline = environment.now().plus(Duration::from_millis(500));
        runtime.block_on(consumer.handle(event.as_bytes(), deadline)).unwrap()
    };
    for _ in 0..2 {
        let (response, report) = deliver();
        assert!(report.cut_off && report.tasks["record/read"].hangs == 1, "{report:?}");
        assert_eq!(report.problems, ["the extractor did not end in time for record 2"]);
        assert_eq!(items(&response), ["1"], "nothing runs before all is read");
    }
    let (response, report) = deliver();
    assert!(report.is_complete() && items(&response).is_empty(), "{report:?}");
    assert_eq!(calls.of("index").len(), 2);
    let letter = &dead.letters()[0];
    assert_eq!(letter.detail, "record/read: the extractor did not end in time");
    drop(go);
}

/// In a careful run, a call that was noted too late does not run, and counts neither as an attempt nor as a kill.
#[tokio::test]
async fn a_call_that_could_not_be_noted_in_time_is_not_counted() {
    // Whether the note was written, and only its answer lost, or not.
    for mood in [Mood::Hangs, Mood::LosesAnswers] {
        note_in_vain(mood).await;
    }
}

async fn note_in_vain(bad: Mood) {
    let (world, killer) = (World::new(), Killer::default());
    let moody = MoodyStore::new(Arc::clone(&world.store));
    moody.writes_only.store(true, Ordering::Release);
    let calls = Arc::new(AtomicUsize::new(0));
    let build = |mood: Mood| {
        let (killer, calls) = (killer.clone(), Arc::clone(&calls));
        let (begins, ends) = (moody.mood.clone(), moody.mood.clone());
        Consumer::builder("orders")
            .environment(&world.environment)
            .state(StoreState::new(Arc::clone(&moody) as _, &world.environment))
            .dead_letters(world.messages.clone())
            .before(move |_| {
                begins.set(mood);
                async { Ok::<_, String>(()) }
            })
            .before_finish(move |_| {
                ends.set(Mood::Works);
                async {}
            })
            .one("index", move |_: Message| {
                let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
                let killer = killer.clone();
                async move {
                    if first {
                        killer.strike().await;
                    }
                }
            })
            .attempts(2)
            .build()
            .unwrap()
    };
    let event = stream([1]);
    assert!(world.deliver_to_mortal(&build(Mood::Works), &event, &killer).await.is_none());
    let (_, report) = world.deliver(&build(bad), &event).await;
    assert!(report.careful && report.cut_off && !report.is_complete(), "{report:?}");
    let (_, report) = world.deliver(&build(Mood::Works), &event).await;
    assert_eq!(report.tasks["index"].kills, 0, "{report:?}");
    assert!(report.is_complete() && world.dead().is_empty(), "{report:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

/// The end of a window for which there is no time, or which cannot be noted, is not counted.
#[tokio::test]
async fn an_end_of_a_window_that_could_not_begin_is_not_counted() {
    for mood in [Mood::Works, Mood::Fails] {
        let world = World::new();
        let moody = MoodyStore::new(Arc::clone(&world.store));
        let ends = Arc::new(AtomicUsize::new(0));
        let (switch, made) = (moody.mood.clone(), Arc::clone(&ends));
        let consumer = Consumer::builder("orders")
            .environment(&world.environment)
            .state(StoreState::new(Arc::clone(&moody) as _, &world.environment))
            .dead_letters(world.messages.clone())
            .one("index", move |message: Message| {
                message.settle(Outcome::Done);
                switch.set(mood);
                async move {
                    if mood == Mood::Works {
                        // It is done, and takes all the time.
                        std::future::pending::<()>().await;
                    }
                }
            })
            .window(|_: &mut Value, _: &Message| {})
            .window_end(move |_: Window, _: Value| {
                made.fetch_add(1, Ordering::Relaxed);
                async {}
            })
            .attempts(1)
            .build()
            .unwrap();
        let last = windowed(&stream([1]), "{}", true);
        let (_, report) = world.deliver(&consumer, &last).await;
        assert!(report.window_open && !report.is_complete(), "{report:?}");
        assert_eq!(ends.load(Ordering::Relaxed), 0);
        moody.mood.set(Mood::Works);
        let none = windowed(r#"{"Records":[]}"#, "{}", true);
        let (_, report) = world.deliver(&consumer, &none).await;
        assert!(report.is_complete() && world.messages.letters().is_empty(), "{report:?}");
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    }
}
