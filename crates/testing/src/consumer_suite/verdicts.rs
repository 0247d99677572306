//! Verdicts that no task gives: age, keys, unusable bytes. They hold for what is not finished.

use std::time::Duration;

use millpond_consumer::source::{Aggregate, AggregatedRecord};
use millpond_consumer::{Data, Extracted, JsonLines, Message, Order, Outcome, Reason};
use serde_json::{Value, json};

use super::events::{self, event, kinesis_at, stream, windowed};
use super::state::fails;
use super::world::{World, items, name};
use crate::subject::Subject;

fn refuses(_: &Data) -> Result<Vec<Extracted>, String> {
    Err("no longer".into())
}

fn record(number: &str, data: &[u8]) -> String {
    event(vec![kinesis_at(events::STREAM, events::SHARD, number, "k", data)])
}

/// Messages that were done, and one that was tried, grow too old while they come again: none of them expires, and what is done
/// is gathered in its window.
pub async fn what_is_done_or_was_tried_does_not_expire(subject: &Subject) {
    let world = World::of(subject);
    let first = |message: &Message| match (name(message).as_str(), message.attempt()) {
        ("1", 1 | 2) => Outcome::retry("no"),
        _ => Outcome::Done,
    };
    let gather = |state: &mut Value, message: &Message| {
        let sum = state["sum"].as_u64().unwrap_or(0);
        state["sum"] = (sum + name(message).parse::<u64>().expect("a number")).into();
    };
    let age_max = Duration::from_secs(60);
    let consumer = world.planned(first).age_max(age_max).window(gather).build().unwrap();
    // All of them come just now.
    let now = (world.environment.now().as_millis() / 1_000).to_string();
    let just_now = |event: String| windowed(&event.replace("1699999990.5", &now), "{}", false);
    let batch = just_now(stream(1..=10));
    assert_eq!(world.failures(&consumer, &batch).await, ["1"]);
    world.clock.advance(age_max * 2);
    world.calls.take();
    let (response, report) = world.deliver(&consumer, &batch).await;
    assert_eq!((items(&response), report.dead_total()), (vec!["1".to_owned()], 0), "{report:?}");
    assert_eq!((report.finished_before, world.calls.of("index")), (9, vec!["1".to_owned()]));
    let (response, report) = world.deliver(&consumer, &batch).await;
    assert!(report.is_complete() && world.dead().is_empty(), "{report:?}");
    let answer: Value = serde_json::from_slice(&response).unwrap();
    assert_eq!(answer["state"], json!({"sum": 55}));
    // What was never tried does.
    let (_, report) = world.deliver(&consumer, &just_now(stream([11]))).await;
    assert_eq!(report.dead[&Reason::Expired], 1);
}

/// A deploy demands a key that earlier messages lack: those that are done are done.
pub async fn what_is_done_stays_done_when_keys_are_set_later(subject: &Subject) {
    let world = World::of(subject);
    let before = world.planned(fails(&[1])).build().unwrap();
    assert_eq!(world.failures(&before, &stream(1..=5)).await, ["1"]);
    let after = world.planned(fails(&[1])).keys(["customer"]).build().unwrap();
    let (_, report) = world.deliver(&after, &stream(1..=5)).await;
    assert!(report.is_complete() && report.finished_before == 4, "{report:?}");
    let dead: Vec<_> = world.dead().into_iter().map(|letter| letter.record.unwrap()).collect();
    assert_eq!(dead, ["1"]);
}

/// A deploy refuses bytes that were read before, of records and of user records: those that are done are done.
pub async fn what_is_done_stays_done_when_its_bytes_are_refused_later(subject: &Subject) {
    let world = World::of(subject);
    let user = |n: u64| AggregatedRecord {
        partition_key_index: 0,
        explicit_hash_key_index: None,
        data: json!({"n": n}).to_string().into(),
    };
    let aggregate = Aggregate {
        partition_keys: vec!["k".into()],
        explicit_hash_keys: vec![],
        records: (1..=3).map(user).collect(),
    };
    for batch in [stream(1..=3), record("7", &aggregate.to_bytes())] {
        let before = world.planned(fails(&[1])).order(Order::None).build().unwrap();
        assert_eq!(world.failures(&before, &batch).await.len(), 1);
        let after = world.planned(fails(&[1])).extractor(refuses).build().unwrap();
        let dead = world.records.letters().len();
        let (_, report) = world.deliver(&after, &batch).await;
        assert!(report.is_complete() && report.finished_before == 2, "{report:?}");
        assert_eq!(world.records.letters().len(), dead + 1, "the one that was not done");
    }
}

/// Of a record of several messages, the end of the first is not that of the others: refused later, the record is dead.
pub async fn messages_are_not_lost_with_the_end_of_another_of_their_record(subject: &Subject) {
    for (number, ends) in [("7", Outcome::Done), ("8", Outcome::reject("bad"))] {
        let world = World::of(subject);
        let plan = {
            let ends = ends.clone();
            move |message: &Message| match name(message).as_str() {
                "1" => ends.clone(),
                _ => Outcome::retry("no"),
            }
        };
        let lines = record(number, b"{\"n\":1}\n{\"n\":2}");
        let builder = world.planned(plan).order(Order::None);
        assert_eq!(
            world.failures(&builder.extractor(JsonLines).build().unwrap(), &lines).await,
            [number]
        );
        let after = world.planned(|_| Outcome::Done).extractor(refuses).build().unwrap();
        let (_, report) = world.deliver(&after, &lines).await;
        assert!(report.is_complete(), "{report:?}");
        let letters = world.records.letters();
        assert_eq!((letters.len(), letters[0].reason), (1, Reason::Unusable), "{ends:?}");
    }
}
