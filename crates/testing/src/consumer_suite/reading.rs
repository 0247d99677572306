//! Extractors that take the process down with them, or too much time.

use std::time::Duration;

use millpond_consumer::source::{Aggregate, AggregatedRecord};
use millpond_consumer::{Builder, Data, Extracted, Extractor as _, Json, Message, Outcome, Reason};
use serde_json::json;

use super::events::{self, event, kinesis_at, queue, stream};
use super::world::{Calls, Killer, World, is, items};
use crate::subject::Subject;

const READ: &str = "record/read";

/// A consumer whose process dies of reading message 3.
fn mortal(world: &World, killer: &Killer, read: &Calls) -> Builder {
    let (killer, read) = (killer.clone(), read.clone());
    let extractor = move |data: &Data| {
        let text = String::from_utf8_lossy(&data.bytes).into_owned();
        if text == r#"{"n":3}"# {
            killer.strike_now();
        }
        read.note_text("read", text);
        Json.extract(data)
    };
    world.planned(|_| Outcome::Done).extractor(extractor).attempts(3)
}

/// The record that is being read when the process dies is found out, as a message in its handler is: of a stream and of a queue.
pub async fn a_record_that_kills_its_process_while_it_is_read_is_isolated(subject: &Subject) {
    let of_queue = |receives| queue((1..=5).map(|n| (n, receives)));
    let events = [[0; 4].map(|_| stream(1..=5)), [1, 2, 3, 4].map(of_queue)];
    for deliveries in events {
        let (world, killer, read) = (World::of(subject), Killer::default(), Calls::default());
        let consumer = mortal(&world, &killer, &read).build().unwrap();
        let [first @ .., last] = &deliveries;
        for event in first {
            let killed = world.deliver_to_mortal(&consumer, event, &killer).await;
            assert!(killed.is_none(), "{killed:?}");
        }
        assert!(world.records.letters().is_empty());
        let (_, report) = world.deliver_to_mortal(&consumer, last, &killer).await.unwrap();
        assert!(report.is_complete() && report.careful, "{report:?}");
        assert_eq!(report.tasks[READ].kills, 1);
        let letter = &world.records.letters()[0];
        let detail = "record/read: the process was killed";
        assert_eq!((letter.reason, letter.detail.as_str()), (Reason::Exhausted, detail));
        assert_eq!(letter.tasks[READ].attempts, 3);
        assert_eq!(read.counts("read")[r#"{"n":3}"#], 3, "exactly as often as it may");
        assert_eq!(world.calls.of("index"), ["1", "2", "4", "5"]);
        assert!(world.dead().is_empty() && world.records.letters().len() == 1);
    }
}

/// Of an aggregate, only the user record that kills is put aside.
pub async fn a_user_record_that_kills_its_process_while_it_is_read_is_isolated(subject: &Subject) {
    let (world, killer, read) = (World::of(subject), Killer::default(), Calls::default());
    let consumer = mortal(&world, &killer, &read).build().unwrap();
    let user = |n: u64| AggregatedRecord {
        partition_key_index: 0,
        explicit_hash_key_index: None,
        data: json!({"n": n}).to_string().into(),
    };
    let aggregate = Aggregate {
        partition_keys: vec!["k".into()],
        explicit_hash_keys: vec![],
        records: (1..=5).map(user).collect(),
    };
    let data = aggregate.to_bytes();
    let event = event(vec![kinesis_at(events::STREAM, events::SHARD, "100", "k", &data)]);
    for _ in 0..3 {
        assert!(world.deliver_to_mortal(&consumer, &event, &killer).await.is_none());
    }
    let (_, report) = world.deliver_to_mortal(&consumer, &event, &killer).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(world.calls.of("index"), ["1", "2", "4", "5"]);
    let letter = &world.dead()[0];
    assert_eq!((letter.reason, letter.sub), (Reason::Exhausted, 2));
    assert_eq!(letter.payload().unwrap(), r#"{"n":3}"#);
}

/// A handler kills: records are read one by one, and none of them is charged for it.
pub async fn what_is_read_one_by_one_after_a_kill_is_not_charged(subject: &Subject) {
    let (world, killer) = (World::of(subject), Killer::default());
    let strike = killer.clone();
    let handler = move |message: Message| {
        let strike = strike.clone();
        async move {
            if is(&message, 3) {
                strike.strike().await;
            }
        }
    };
    let extractor = |data: &Data| Json.extract(data);
    let builder = world.builder().one("index", handler).extractor(extractor);
    let consumer = builder.attempts(3).build().unwrap();
    for _ in 0..3 {
        assert!(world.deliver_to_mortal(&consumer, &stream(1..=5), &killer).await.is_none());
    }
    let (_, report) = world.deliver_to_mortal(&consumer, &stream(1..=5), &killer).await.unwrap();
    assert!(report.is_complete() && !report.tasks.contains_key(READ), "{report:?}");
    let letter = &world.dead()[0];
    assert_eq!((letter.tasks["index"].attempts, letter.tasks.len()), (3, 1));
    let rows = world.rows(&super::state::address()).await;
    assert!(rows.iter().all(|row| row.state.running.is_none()), "{rows:?}");
}

/// Reading that takes long leaves time for what was read; the rest comes again, uncounted.
pub async fn what_was_not_read_in_time_comes_again(subject: &Subject) {
    let world = World::of(subject);
    let clock = world.clock.clone();
    let slow = move |data: &Data| -> Result<Vec<Extracted>, String> {
        clock.advance(Duration::from_secs(10));
        Json.extract(data)
    };
    let consumer = world.planned(|_| Outcome::Done).extractor(slow).attempts(1).build().unwrap();
    // 24 of 60 seconds are for reading.
    let (response, report) = world.deliver(&consumer, &stream(1..=5)).await;
    assert_eq!((items(&response), report.cut_off), (vec!["4".to_owned()], true), "{report:?}");
    assert_eq!((report.finished, report.unstarted, report.careful), (3, 2, false), "{report:?}");
    let (_, report) = world.deliver(&consumer, &stream(4..=5)).await;
    assert!(report.is_complete() && !report.careful, "{report:?}");
    assert_eq!(world.calls.of("index"), ["1", "2", "3", "4", "5"]);
}

/// As long as nobody is killed, such an extractor costs nothing.
pub async fn a_batch_that_is_read_by_an_extractor_of_ones_own_writes_its_marker_alone(
    subject: &Subject,
) {
    let world = World::of(subject);
    let extractor = |data: &Data| Json.extract(data);
    let consumer = world.planned(|_| Outcome::Done).extractor(extractor).build().unwrap();
    let _ = world.meter.take();
    let (_, report) = world.deliver(&consumer, &stream(1..=100)).await;
    assert!(report.is_complete());
    let used = world.meter.take();
    let requests = |operation| used.of(operation).requests;
    assert_eq!(requests(millpond_store::Operation::Write), 1, "the marker");
    assert_eq!(used.total().requests, 3, "and two reads");
}
