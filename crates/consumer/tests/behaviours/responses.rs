//! What the source is told.

use millpond_consumer::{Message, Order, Outcome, Responses};
use serde_json::json;

use crate::support::events::{event, fifo, kinesis, queue, stream};
use crate::support::{World, is, items};

fn fails(bad: &'static [u64]) -> impl Fn(&Message) -> Outcome + Send + Sync + 'static {
    move |message| {
        if bad.iter().any(|n| is(message, *n)) { Outcome::retry("no") } else { Outcome::Done }
    }
}

#[tokio::test]
async fn of_a_stream_the_lowest_unfinished_sequence_number_is_named_and_nothing_else() {
    let world = World::new();
    let consumer = world.planned(fails(&[7, 9, 10])).build().unwrap();
    // By number, not by text or place: 10 comes before 9 in both.
    let (response, _) = world.deliver(&consumer, &stream([10, 9, 8, 7, 6])).await;
    assert_eq!(response, r#"{"batchItemFailures":[{"itemIdentifier":"7"}]}"#);
    let (response, report) = world.deliver(&consumer, &stream(7..=200)).await;
    assert_eq!(report.unfinished, 3);
    assert!(response.len() < 100, "small, however much is unfinished");
}

#[tokio::test]
async fn of_a_queue_all_unfinished_ids_are_named() {
    let world = World::new();
    let consumer = world.planned(fails(&[2, 4])).build().unwrap();
    let failures = world.failures(&consumer, &queue((1..=5).map(|n| (n, 1)))).await;
    assert_eq!(failures, ["id-2", "id-4"]);
}

#[tokio::test]
async fn of_a_fifo_queue_the_rest_of_the_group_is_named_too() {
    for order in [Order::PerKey, Order::None] {
        let world = World::new();
        let consumer = world.planned(fails(&[2])).order(order).build().unwrap();
        let batch = |receives| {
            let groups = [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b")];
            event(groups.into_iter().map(|(n, group)| fifo(n, group, receives)).collect())
        };
        assert_eq!(world.failures(&consumer, &batch(1)).await, ["id-2", "id-4"]);
        let mut tried = world.calls.of("index");
        tried.sort();
        let expected: &[&str] = match order {
            Order::None => &["1", "2", "3", "4", "5"],
            _ => &["1", "2", "3", "5"],
        };
        assert_eq!(tried, expected);
        // What was done out of turn is not done again.
        world.calls.take();
        let again = event([(2, "a"), (4, "a")].map(|(n, group)| fifo(n, group, 2)).to_vec());
        assert_eq!(world.failures(&consumer, &again).await, ["id-2", "id-4"]);
        assert_eq!(world.calls.of("index"), ["2"]);
    }
}

#[tokio::test]
async fn in_error_mode_the_batch_fails_as_a_whole_and_finished_work_is_kept() {
    let world = World::new();
    let consumer = world.planned(fails(&[3])).responses(Responses::Error).build().unwrap();
    let deadline = world.environment.now().plus(crate::support::INVOCATION);
    let event = stream(1..=4);
    let deliver = || consumer.handle(event.as_bytes(), deadline);
    let failed = millpond_testing::in_virtual_time(&world.clock, &world.watched, deliver()).await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.to_string(), "1 of 4 are not finished");
    world.calls.take();
    // All of it comes again, what comes before the failed one too.
    let again = millpond_testing::in_virtual_time(&world.clock, &world.watched, deliver()).await;
    assert!(again.is_err());
    assert_eq!(world.calls.of("index"), ["3"]);
}

#[tokio::test]
async fn a_nameless_record_that_cannot_be_buried_fails_the_whole_batch() {
    let world = World::new();
    let sink = crate::support::fakes::MoodySink::default();
    sink.mood.set(crate::support::fakes::Mood::Fails);
    let consumer = millpond_consumer::Consumer::builder("orders")
        .environment(&world.environment)
        .state(world.state())
        .dead_messages(world.messages.clone())
        .dead_records(sink)
        .one("index", world.calls.handler("index", |_| Outcome::Done))
        .build()
        .unwrap();
    let batch = event(vec![json!({"odd": true}), kinesis(5, "k", &json!({"n": 5}))]);
    let (response, report) = world.deliver(&consumer, &batch).await;
    assert_eq!(items(&response), [""], "Lambda takes an empty name for all of it");
    assert_eq!(report.unfinished, 1);
    world.deliver(&consumer, &batch).await;
    assert_eq!(world.calls.of("index"), ["5"], "finished work is kept");
}

#[tokio::test]
async fn a_message_that_comes_twice_in_a_batch_is_processed_once() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).build().unwrap();
    let twice = event(vec![
        kinesis(5, "k", &json!({"n": 5})),
        kinesis(5, "k", &json!({"n": 5})),
        kinesis(5, "k", &json!({"n": "other"})),
    ]);
    let (_, report) = world.deliver(&consumer, &twice).await;
    assert_eq!(world.calls.of("index"), ["5"]);
    assert_eq!((report.duplicates, report.warnings.len()), (2, 1));
    assert!(report.warnings[0].contains("with different data"));
}

#[tokio::test]
async fn a_nameless_record_among_messages_of_a_queue_does_not_bring_them_all_back() {
    let world = World::new();
    let consumer = world.planned(fails(&[2])).build().unwrap();
    let message =
        |n: u64| crate::support::events::sqs(&format!("id-{n}"), 1, &json!({"n": n}).to_string());
    let batch = event(vec![message(1), json!({"odd": true}), message(2)]);
    assert_eq!(world.failures(&consumer, &batch).await, ["id-2"]);
}
