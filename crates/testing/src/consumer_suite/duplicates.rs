//! Messages that come more than once under different numbers.

use std::time::Duration;

use millpond_consumer::{Builder, Duplicates, Ids, Message, Order, Outcome};
use serde_json::{Value, json};

use super::events::{SHARD, STREAM, event, kinesis, kinesis_at};
use super::world::{World, name};
use crate::subject::Subject;

const WINDOW: Duration = Duration::from_secs(600);

fn skipping(world: &World) -> Builder {
    world
        .planned(|_| Outcome::Done)
        .ids(Ids::Properties(vec!["id".into()]))
        .duplicates(Duplicates::Skip { window: WINDOW })
}

fn batch(messages: &[(u64, Value)]) -> String {
    event(messages.iter().map(|(n, value)| kinesis(*n, "k", value)).collect())
}

/// Duplicates within a batch are skipped and differing ones reported.
pub async fn duplicates_within_a_batch_are_skipped_and_differing_ones_reported(subject: &Subject) {
    let world = World::of(subject);
    let consumer = skipping(&world).build().unwrap();
    let messages = batch(&[
        (1, json!({"n": 1, "id": "a"})),
        (2, json!({"n": 1, "id": "a"})),
        (3, json!({"n": 3, "id": "a"})),
        (4, json!({"n": 4, "id": "b"})),
    ]);
    let (_, report) = world.deliver(&consumer, &messages).await;
    assert_eq!(world.calls.of("index"), ["1", "4"]);
    assert_eq!((report.duplicates, report.finished), (2, 4));
    assert_eq!(report.warnings, ["message 3 has the id [\"a\"] of 1, and other bytes"]);
}

/// Duplicates across batches are skipped within the window.
pub async fn duplicates_across_batches_are_skipped_within_the_window(subject: &Subject) {
    let world = World::of(subject);
    let consumer = skipping(&world).build().unwrap();
    let one = |n: u64, value: u64| batch(&[(n, json!({"n": value, "id": "a"}))]);
    world.deliver(&consumer, &one(1, 1)).await;
    let (_, report) = world.deliver(&consumer, &one(2, 1)).await;
    assert_eq!((report.duplicates, report.warnings.len()), (1, 0));
    let (_, report) = world.deliver(&consumer, &one(3, 9)).await;
    assert_eq!(report.warnings, ["message 3 has the id [\"a\"] of 1, and other bytes"]);
    assert_eq!(world.calls.of("index"), ["1"]);
    // Ends are kept in whole seconds.
    world.clock.advance(WINDOW + Duration::from_secs(1));
    world.deliver(&consumer, &one(4, 4)).await;
    assert_eq!(world.calls.of("index"), ["1", "4"], "after the window it is a new message");
}

/// A message that comes again itself is no duplicate.
pub async fn a_message_that_comes_again_itself_is_no_duplicate(subject: &Subject) {
    let world = World::of(subject);
    let plan = |message: &Message| {
        if name(message) == "2" && message.attempt() == 1 {
            Outcome::retry("no")
        } else {
            Outcome::Done
        }
    };
    let consumer = world
        .planned(plan)
        .ids(Ids::Digest)
        .order(Order::None)
        .duplicates(Duplicates::Skip { window: WINDOW })
        .build()
        .unwrap();
    let messages = batch(&[(1, json!({"n": 1})), (2, json!({"n": 2})), (3, json!({"n": 2}))]);
    assert_eq!(world.failures(&consumer, &messages).await, ["2"]);
    assert!(world.failures(&consumer, &messages).await.is_empty());
    assert_eq!(world.calls.counts("index")["2"], 2, "tried twice, as the one message that it is");
}

/// Numbers of more digits than 64 bits hold are ids as they are written, and messages are ordered by them.
pub async fn ids_that_differ_in_the_last_of_many_digits_are_two(subject: &Subject) {
    let world = World::of(subject);
    let consumer = skipping(&world).sequence(["id"]).build().unwrap();
    let record = |n: u64, id: &str| {
        let data = format!(r#"{{"n": {n}, "id": {id}}}"#);
        kinesis_at(STREAM, SHARD, &n.to_string(), "k", data.as_bytes())
    };
    let later = record(1, "1234567890123456789012346");
    let (_, report) =
        world.deliver(&consumer, &event(vec![later, record(2, "1234567890123456789012345")])).await;
    assert_eq!((report.duplicates, report.finished), (0, 2), "{report:?}");
    assert_eq!(world.calls.of("index"), ["2", "1"]);
    let again = event(vec![record(3, "1234567890123456789012345.0")]);
    let (_, report) = world.deliver(&consumer, &again).await;
    assert_eq!(report.duplicates, 1, "one number, written in two ways");
}

/// Under the policy to run all are processed and differing ones reported.
pub async fn under_the_policy_to_run_all_are_processed_and_differing_ones_reported(
    subject: &Subject,
) {
    let world = World::of(subject);
    let consumer =
        world.planned(|_| Outcome::Done).ids(Ids::Properties(vec!["id".into()])).build().unwrap();
    let messages = batch(&[(1, json!({"n": 1, "id": "a"})), (2, json!({"n": 2, "id": "a"}))]);
    let (_, report) = world.deliver(&consumer, &messages).await;
    assert_eq!(world.calls.of("index"), ["1", "2"]);
    assert_eq!((report.duplicates, report.warnings.len()), (0, 1));
}
