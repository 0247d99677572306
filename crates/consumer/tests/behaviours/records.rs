//! Records that cannot be used, messages that lack something, and events as AWS delivers them.

use std::time::Duration;

use millpond_consumer::sink::Kind;
use millpond_consumer::{Data, Extracted, Ids, JsonLines, Order, Outcome, Reason, SourceKind};
use serde_json::{Value, json};

use crate::support::events::{self, dynamodb, event, kinesis, kinesis_at, sqs, stream};
use crate::support::{World, items};

/// A record that lacks something.
fn without(mut record: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    record.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    record
}

fn with(mut record: Value, pointer: &str, value: Value) -> Value {
    *record.pointer_mut(pointer).unwrap() = value;
    record
}

#[tokio::test]
async fn unparsable_wrong_source_and_missing_fields_each_have_their_reason_and_the_rest_is_processed()
 {
    let good = || kinesis(5, "k", &json!({"n": 5}));
    let table = || dynamodb("7", "INSERT", json!({"id": {"N": "1"}}), json!({"id": {"N": "1"}}));
    let message = || sqs("id", 1, "{}");
    let cases = [
        (json!("hello"), "the record is not an object: "),
        (json!({}), "the record has no eventSource"),
        (
            with(good(), "/eventSource", json!("aws:s3")),
            "the source \"aws:s3\" is none that can be consumed",
        ),
        (without(good(), "/kinesis"), "the record has no kinesis part"),
        (without(good(), "/kinesis/sequenceNumber"), "the record has no sequenceNumber"),
        (
            with(good(), "/kinesis/sequenceNumber", json!("12x")),
            "the sequenceNumber is not a number",
        ),
        (without(good(), "/eventID"), "the record has no eventID"),
        (with(good(), "/eventID", json!("5")), "the eventID does not name a shard"),
        (without(good(), "/eventSourceARN"), "the record has no eventSourceARN"),
        (with(good(), "/eventSourceARN", json!("orders")), "the eventSourceARN is not an ARN"),
        (without(good(), "/kinesis/data"), "the record has no data"),
        (with(good(), "/kinesis/data", json!("%%")), "the data is not base64: "),
        (kinesis_at(events::STREAM, "s", "5", "k", b"{not json"), "the data is not JSON: "),
        (without(table(), "/dynamodb"), "the record has no dynamodb part"),
        (without(table(), "/dynamodb/SequenceNumber"), "the record has no SequenceNumber"),
        (without(table(), "/dynamodb/Keys"), "the record has no Keys"),
        (
            without(table(), "/dynamodb/NewImage"),
            "the record of INSERT has no NewImage, which its view promises",
        ),
        (
            with(table(), "/eventName", json!("DROP")),
            "the eventName is none of INSERT, MODIFY and REMOVE",
        ),
        (with(table(), "/dynamodb/StreamViewType", json!("ALL")), "the StreamViewType is unknown"),
        (
            with(table(), "/dynamodb/NewImage/id", json!({"Q": "1"})),
            "NewImage has an attribute that is not one of DynamoDB",
        ),
        (without(message(), "/messageId"), "the message has no messageId"),
        (without(message(), "/body"), "the message has no body"),
        (
            with(message(), "/eventSourceARN", json!(events::FIFO)),
            "the message has no SequenceNumber",
        ),
    ];
    for (bad, reason) in cases {
        let world = World::new();
        let consumer = world.planned(|_| Outcome::Done).build().unwrap();
        let both = event(vec![bad.clone(), kinesis(9, "k", &json!({"n": 9}))]);
        let (response, report) = world.deliver(&consumer, &both).await;
        assert!(items(&response).is_empty(), "the batch ends: {reason}");
        assert_eq!((report.finished, report.dead_total()), (2, 1), "{reason}");
        assert_eq!(world.calls.of("index"), ["9"]);
        let letters = world.records.letters();
        let letter = &letters[0];
        assert_eq!((letter.kind, letter.reason), (Kind::Record, Reason::Unusable));
        assert!(letter.detail.starts_with(reason), "{} is not {reason}", letter.detail);
        assert_eq!(letter.payload().unwrap(), bad.to_string(), "the record as it came");
        // The same record gives the same letter, however often it comes.
        world.deliver(&consumer, &event(vec![bad])).await;
        assert_eq!(world.records.letters()[1].dedupe_id, letter.dedupe_id);
    }
}

#[tokio::test]
async fn a_batch_in_which_nothing_is_usable_ends_too() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).build().unwrap();
    let nothing = event(vec![json!(1), json!({}), kinesis_at(events::STREAM, "s", "5", "k", b"{")]);
    let (response, report) = world.deliver(&consumer, &nothing).await;
    assert!(items(&response).is_empty());
    assert_eq!((report.messages, report.dead_total()), (0, 3));
    for whole in ["not json", "{}", "[]", r#"{"Records":7}"#] {
        let before = world.records.letters().len();
        let (response, report) = world.deliver(&consumer, whole).await;
        assert!(items(&response).is_empty() && report.is_complete(), "{whole}");
        let letter = world.records.letters()[before].clone();
        assert!(
            letter.detail.starts_with("the event is not a list of records: "),
            "{}",
            letter.detail
        );
        assert_eq!(letter.payload().unwrap(), whole);
    }
}

#[tokio::test]
async fn records_of_a_source_that_is_not_taken_are_unusable() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).sources([SourceKind::Sqs]).build().unwrap();
    let (_, report) = world.deliver(&consumer, &stream([1])).await;
    assert_eq!(report.dead_total(), 1);
    let detail = &world.records.letters()[0].detail;
    assert_eq!(detail, "this consumer does not take records of kinesis");
}

#[tokio::test]
async fn a_missing_key_or_sequence_property_rejects_that_message_with_its_name() {
    let world = World::new();
    let consumer = world
        .planned(|_| Outcome::Done)
        .order(Order::PerKey)
        .keys(["customer"])
        .sequence(["version"])
        .build()
        .unwrap();
    let messages = [
        json!({"n": 1, "customer": "a", "version": 1}),
        json!({"n": 2, "version": 1}),
        json!({"n": 3, "customer": "a"}),
    ];
    let records = messages.iter().zip(1..).map(|(value, n)| kinesis(n, "k", value)).collect();
    let (response, report) = world.deliver(&consumer, &event(records)).await;
    assert!(items(&response).is_empty());
    assert_eq!(world.calls.of("index"), ["1"]);
    assert_eq!(report.dead[&Reason::Rejected], 2);
    let details: Vec<_> = world.dead().into_iter().map(|letter| letter.detail).collect();
    let expected = ["key property \"customer\"", "sequence property \"version\""];
    assert_eq!(details, expected.map(|what| format!("the message lacks its {what}")));
}

#[tokio::test]
async fn a_missing_id_is_a_warning() {
    let world = World::new();
    let ids = Ids::Properties(vec!["id".into()]);
    let consumer = world.planned(|_| Outcome::Done).ids(ids).build().unwrap();
    let (_, report) = world.deliver(&consumer, &stream([1])).await;
    assert!(report.is_complete() && report.dead.is_empty());
    assert_eq!(report.warnings, ["message 1 lacks its id property id"]);
    assert_eq!(world.calls.of("index"), ["1"]);
}

#[tokio::test]
async fn a_message_that_is_too_old_expires_untried() {
    let world = World::new();
    let consumer =
        world.planned(|_| Outcome::Done).age_max(Duration::from_secs(60)).build().unwrap();
    // Records arrived about ten seconds before the clock's time.
    let (_, report) = world.deliver(&consumer, &stream([1])).await;
    assert_eq!(report.dead_total(), 0);
    world.clock.advance(Duration::from_secs(60));
    let (_, report) = world.deliver(&consumer, &stream([2])).await;
    assert_eq!(report.dead[&Reason::Expired], 1);
    assert_eq!(world.calls.of("index"), ["1"]);
}

#[tokio::test]
async fn the_extractor_can_be_replaced_and_finds_several_messages_in_a_record() {
    let world = World::new();
    let fails = |message: &millpond_consumer::Message| {
        if crate::support::is(message, 2) { Outcome::retry("no") } else { Outcome::Done }
    };
    let lines = b"{\"n\":1}\n{\"n\":2}\n{\"n\":3}";
    let record = event(vec![kinesis_at(events::STREAM, events::SHARD, "7", "k", lines)]);
    let consumer = world.planned(fails).order(Order::None).extractor(JsonLines).build().unwrap();
    assert_eq!(world.failures(&consumer, &record).await, ["7"]);
    world.calls.take();
    assert_eq!(world.failures(&consumer, &record).await, ["7"]);
    assert_eq!(world.calls.of("index"), ["2"], "the other lines are done");
    let custom = |data: &Data| match &data.bytes[..] {
        b"" => Ok(vec![]),
        bytes => Ok(vec![Extracted {
            payload: bytes.to_vec().into(),
            value: Some(json!({"n": bytes.len()})),
        }]),
    };
    let custom = world.planned(|_| Outcome::Done).extractor(custom).build().unwrap();
    let records = [&b"abc"[..], b""].into_iter().zip(20..);
    let records =
        records.map(|(data, n)| kinesis_at(events::STREAM, "s", &n.to_string(), "k", data));
    world.calls.take();
    let (_, report) = world.deliver(&custom, &event(records.collect())).await;
    assert_eq!((report.records, report.messages, report.unfinished), (2, 1, 0));
    assert_eq!(world.calls.of("index"), ["3"]);
}

/// Events as AWS documents and delivers them, kept as files.
#[tokio::test]
async fn recorded_events_are_read() {
    for (file, source, messages) in [
        ("kinesis.json", "arn:aws:kinesis:us-east-2:123456789012:stream/lambda-stream", 2),
        (
            "dynamodb.json",
            "arn:aws:dynamodb:us-east-1:123456789012:table/ExampleTableWithStream/stream/2015-06-27T00:48:05.899",
            3,
        ),
        ("sqs.json", "arn:aws:sqs:us-east-2:123456789012:my-queue", 2),
        ("sqs-fifo.json", "arn:aws:sqs:us-east-2:123456789012:fifo.fifo", 1),
        ("kinesis-window.json", "arn:aws:kinesis:us-east-1:123456789012:stream/lambda-stream", 1),
    ] {
        let path = format!("{}/tests/events/{file}", env!("CARGO_MANIFEST_DIR"));
        let recorded = std::fs::read_to_string(path).unwrap();
        let world = World::new();
        let consumer =
            world.planned(|_| Outcome::Done).extractor(millpond_consumer::Raw).build().unwrap();
        let (response, report) = world.deliver(&consumer, &recorded).await;
        assert_eq!((report.source.as_str(), report.messages), (source, messages), "{file}");
        assert!(report.is_complete() && report.dead.is_empty(), "{file}: {report:?}");
        if file.contains("window") {
            let response: Value = serde_json::from_slice(&response).unwrap();
            assert_eq!(response["state"], json!({"1": "282"}), "a window's state is handed on");
        }
    }
}

#[tokio::test]
async fn images_of_a_table_are_plain_values() {
    let world = World::new();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&seen);
    let handler = move |message: millpond_consumer::Message| {
        kept.lock()
            .unwrap()
            .push((message.value().cloned(), message.partition_key().map(str::to_owned)));
        async {}
    };
    let consumer = world.builder().one("index", handler).build().unwrap();
    let image =
        json!({"id": {"N": "101"}, "tags": {"SS": ["a"]}, "big": {"N": "12345678901234567890123"}});
    let record = dynamodb("111", "INSERT", json!({"id": {"N": "101"}}), image);
    world.deliver(&consumer, &event(vec![record])).await;
    let expected = json!({
        "event": "INSERT", "keys": {"id": 101},
        "new": {"id": 101, "tags": ["a"], "big": "12345678901234567890123"},
    });
    assert_eq!(*seen.lock().unwrap(), [(Some(expected), Some("{\"id\":101}".to_owned()))]);
}

/// What is not needed may be missing, `null` or of another form, and the record is used all the same.
#[tokio::test]
async fn what_a_record_can_do_without_may_be_missing_null_or_strange() {
    let stream = || kinesis(5, "k", &json!({"n": 5}));
    let table = || dynamodb("7", "INSERT", json!({"id": {"N": "1"}}), json!({"n": {"N": "5"}}));
    let message = || sqs("id", 1, r#"{"n": 5}"#);
    let time = "/kinesis/approximateArrivalTimestamp";
    let created = "/dynamodb/ApproximateCreationDateTime";
    let cases = [
        (without(stream(), time), None),
        (with(stream(), time, Value::Null), None),
        (with(stream(), time, json!("1699999990.5")), Some(1_699_999_990_500)),
        (with(stream(), time, json!(1_699_999_990)), Some(1_699_999_990_000)),
        (with(stream(), time, json!("2024-01-01T00:00:00Z")), None),
        (with(stream(), time, json!(-1)), None),
        (without(stream(), "/kinesis/partitionKey"), Some(1_699_999_990_500)),
        (without(table(), created), None),
        (with(table(), created, json!(1.699_999_990_5e9)), Some(1_699_999_990_500)),
        (with(table(), "/dynamodb/Keys", Value::Null), Some(1_699_999_990_000)),
        (with(table(), "/dynamodb/NewImage", Value::Null), Some(1_699_999_990_000)),
        (without(table(), "/dynamodb/StreamViewType"), Some(1_699_999_990_000)),
        (without(message(), "/attributes"), None),
        (with(message(), "/attributes", Value::Null), None),
        (with(message(), "/attributes", json!({"SentTimestamp": "soon"})), None),
        (with(message(), "/messageAttributes", Value::Null), Some(1_699_999_990_000)),
    ];
    for (record, arrived) in cases {
        let text = event(vec![record.clone()]);
        let read = millpond_consumer::source::Event::parse(text.as_bytes()).unwrap();
        let read =
            read.records[0].as_ref().unwrap_or_else(|bad| panic!("{}: {record}", bad.reason));
        assert_eq!(read.arrived.map(millpond_store::Timestamp::as_millis), arrived, "{record}");
        let world = World::new();
        let consumer = world.planned(|_| Outcome::Done).build().unwrap();
        let (response, report) = world.deliver(&consumer, &text).await;
        assert!(items(&response).is_empty() && report.dead.is_empty(), "{report:?}: {record}");
        assert_eq!(world.calls.of("index").len(), 1, "{record}");
    }
}
