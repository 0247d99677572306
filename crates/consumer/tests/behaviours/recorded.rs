//! Sample events that others publish, read by AWS's own types for Lambda and by ours: both must find the same.
//!
//! The samples come in the package of `aws_lambda_events`, wherever Cargo keeps it; more are in `tests/events`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use aws_lambda_events::event::{dynamodb, kinesis, sqs};
use aws_lambda_events::time_window::TimeWindowProperties;
use millpond_consumer::source::{Event, Record, Unusable};
use millpond_consumer::{Outcome, SourceKind, Window};
use millpond_store::Timestamp;
use serde_json::{Map, Value, json};

use crate::support::{World, items};

/// The samples of `aws_lambda_events` for our sources that there are at least.
const AT_LEAST: [&str; 7] = [
    "example-dynamodb-event-null-items.json",
    "example-dynamodb-event-record-with-optional-fields.json",
    "example-dynamodb-event.json",
    "example-kinesis-event-encrypted.json",
    "example-kinesis-event.json",
    "example-sqs-event-obj.json",
    "example-sqs-event.json",
];

fn cargo(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Where Cargo keeps the samples.
fn package() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(find)
}

fn find() -> PathBuf {
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&cargo(&args)).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let found = packages.iter().find(|package| package["name"] == "aws_lambda_events").unwrap();
    Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().join("src/fixtures")
}

/// All samples of a directory whose name begins so.
fn samples(directory: &Path, begins: &str) -> Vec<(String, String)> {
    let mut samples = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(begins) && name.ends_with(".json") {
            samples.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    samples.sort();
    samples
}

/// Theirs and ours, of one kind of source.
fn all(kind: &str) -> Vec<(String, String)> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/events");
    let theirs = samples(package(), &format!("example-{kind}-event"));
    let names: Vec<&str> = theirs.iter().map(|(name, _)| name.as_str()).collect();
    let known: Vec<&str> = AT_LEAST.into_iter().filter(|name| name.contains(kind)).collect();
    assert!(known.iter().all(|name| names.contains(name)), "{names:?}");
    let ours = samples(&ours, kind);
    assert!(!ours.is_empty());
    theirs.into_iter().chain(ours).collect()
}

fn usable(read: &Result<Record, Box<Unusable>>) -> &Record {
    read.as_ref().unwrap_or_else(|unusable| panic!("{}", unusable.reason))
}

fn millis(record: &Record) -> i64 {
    record.arrived.map_or(0, |arrived| Timestamp::as_millis(arrived).cast_signed())
}

/// The window of an event, as both read it.
fn same_window(file: &str, ours: Option<&Window>, theirs: Option<TimeWindowProperties>) {
    let Some(theirs) = theirs else {
        assert!(ours.is_none(), "{file}");
        return;
    };
    let ours = ours.unwrap_or_else(|| panic!("{file} has a window"));
    let bounds = json!({"start": ours.start, "end": ours.end});
    assert_eq!(bounds, serde_json::to_value(&theirs.window).unwrap(), "{file}");
    assert_eq!(ours.state(), serde_json::to_value(&theirs.state).unwrap(), "{file}");
    assert_eq!(ours.shard, theirs.shard_id.unwrap_or_default(), "{file}");
    assert_eq!(ours.arn, theirs.event_source_arn.unwrap_or_default(), "{file}");
    let flags = (theirs.is_final_invoke_for_window, theirs.is_window_terminated_early);
    assert_eq!((ours.is_final, ours.is_cut_short), flags, "{file}");
}

#[test]
fn recorded_events_of_kinesis_are_read_as_awss_own_types_read_them() {
    for (file, text) in all("kinesis") {
        let ours = Event::parse(text.as_bytes()).unwrap();
        let theirs: kinesis::KinesisEvent = serde_json::from_str(&text).unwrap();
        assert_eq!(ours.records.len(), theirs.records.len(), "{file}");
        for (read, theirs) in ours.records.iter().zip(&theirs.records) {
            let (ours, inner) = (usable(read), &theirs.kinesis);
            assert_eq!(ours.scope.kind, SourceKind::Kinesis);
            assert_eq!(Some(&ours.scope.arn), theirs.event_source_arn.as_ref(), "{file}");
            assert_eq!(Some(&ours.id), theirs.event_id.as_ref(), "{file}");
            let (shard, number) = theirs.event_id.as_ref().unwrap().split_once(':').unwrap();
            assert_eq!((&*ours.scope.shard, &*ours.item), (shard, number), "{file}");
            assert_eq!(ours.item, inner.sequence_number, "{file}");
            assert_eq!(ours.partition_key.as_ref(), Some(&inner.partition_key), "{file}");
            assert_eq!(ours.data.bytes, inner.data.0, "{file}");
            // Theirs cuts what a fraction cannot express, ours rounds it.
            let theirs = inner.approximate_arrival_timestamp.timestamp_millis();
            assert!((millis(ours) - theirs).abs() <= 1, "{file}: {} and {theirs}", millis(ours));
        }
        let theirs = serde_json::from_str::<kinesis::KinesisTimeWindowEvent>(&text).ok();
        same_window(&file, ours.window.as_ref(), theirs.map(|event| event.time_window_properties));
    }
}

#[test]
fn recorded_events_of_dynamodb_are_read_as_awss_own_types_read_them() {
    for (file, text) in all("dynamodb") {
        let Ok(theirs) = serde_json::from_str::<dynamodb::Event>(&text) else {
            alone(&file, &text);
            continue;
        };
        let ours = Event::parse(text.as_bytes()).unwrap();
        assert_eq!(ours.records.len(), theirs.records.len(), "{file}");
        for (read, theirs) in ours.records.iter().zip(&theirs.records) {
            let (ours, inner) = (usable(read), &theirs.change);
            assert_eq!(ours.scope.kind, SourceKind::DynamoDb);
            assert_eq!(Some(&ours.scope.arn), theirs.event_source_arn.as_ref(), "{file}");
            assert_eq!(ours.id, theirs.event_id, "{file}");
            assert_eq!(Some(&ours.item), inner.sequence_number.as_ref(), "{file}");
            // Theirs leaves fractions of a second out.
            let theirs_at = inner.approximate_creation_date_time.timestamp();
            assert_eq!(millis(ours) / 1_000, theirs_at, "{file}");
            let keys = plain_map(&serde_json::to_value(&inner.keys).unwrap());
            let named = (!keys.as_object().unwrap().is_empty()).then(|| keys.to_string());
            assert_eq!(ours.partition_key, named, "{file}");
            let mut expected = json!({"event": theirs.event_name, "keys": keys});
            for (name, image) in [("new", &inner.new_image), ("old", &inner.old_image)] {
                let image = plain_map(&serde_json::to_value(image).unwrap());
                if !image.as_object().unwrap().is_empty() {
                    expected[name] = image;
                }
            }
            if let Some(user) = &theirs.user_identity {
                expected["user"] = serde_json::to_value(user).unwrap();
            }
            assert_eq!(ours.data.value, Some(expected), "{file}");
        }
        let theirs = serde_json::from_str::<dynamodb::TimeWindowEvent>(&text).ok();
        same_window(&file, ours.window.as_ref(), theirs.map(|event| event.time_window_properties));
    }
}

/// A sample that is no event: a change as DynamoDB puts it into a Kinesis stream. As a record of an event it lacks what
/// orders it, and is put aside with that reason.
fn alone(file: &str, text: &str) {
    let theirs: dynamodb::EventRecord = serde_json::from_str(text).unwrap();
    let event = format!(r#"{{"Records":[{text}]}}"#);
    let ours = Event::parse(event.as_bytes()).unwrap();
    let unusable = ours.records[0].as_ref().unwrap_err();
    assert_eq!(theirs.change.sequence_number, None, "{file}");
    assert_eq!(unusable.reason, "the record has no SequenceNumber", "{file}");
}

#[test]
fn recorded_events_of_sqs_are_read_as_awss_own_types_read_them() {
    for (file, text) in all("sqs") {
        let ours = Event::parse(text.as_bytes()).unwrap();
        let theirs: sqs::SqsEvent = serde_json::from_str(&text).unwrap();
        assert_eq!(ours.records.len(), theirs.records.len(), "{file}");
        for (read, theirs) in ours.records.iter().zip(&theirs.records) {
            let ours = usable(read);
            let arn = theirs.event_source_arn.as_deref().unwrap();
            let fifo = arn.ends_with(".fifo");
            let kind = if fifo { SourceKind::SqsFifo } else { SourceKind::Sqs };
            assert_eq!((ours.scope.kind, &*ours.scope.arn), (kind, arn), "{file}");
            assert_eq!(Some(&ours.id), theirs.message_id.as_ref(), "{file}");
            assert_eq!(ours.data.bytes, theirs.body.clone().unwrap(), "{file}");
            let attribute = |name: &str| theirs.attributes.get(name).cloned();
            let number = |name: &str| attribute(name).map(|text| text.parse::<i64>().unwrap());
            assert_eq!(ours.partition_key, attribute("MessageGroupId"), "{file}");
            assert_eq!(
                ours.sequence.as_ref().map(|sequence| sequence.as_str().to_owned()),
                attribute("SequenceNumber"),
                "{file}"
            );
            assert_eq!(millis(ours), number("SentTimestamp").unwrap_or(0), "{file}");
            let receives = number("ApproximateReceiveCount").unwrap_or(1);
            assert_eq!(ours.receives.map(i64::from), Some(receives), "{file}");
        }
        same_window(&file, ours.window.as_ref(), None);
    }
}

#[tokio::test]
async fn recorded_events_are_consumed_to_the_end() {
    for (file, text) in ["kinesis", "dynamodb", "sqs"].into_iter().flat_map(all) {
        let text =
            if text.contains("\"Records\"") { text } else { format!("{{\"Records\":[{text}]}}") };
        let records = serde_json::from_str::<Value>(&text).unwrap()["Records"].clone();
        let world = World::new();
        let consumer =
            world.planned(|_| Outcome::Done).extractor(millpond_consumer::Raw).build().unwrap();
        let (response, report) = world.deliver(&consumer, &text).await;
        assert!(items(&response).is_empty() && report.is_complete(), "{file}: {report:?}");
        let all = records.as_array().unwrap().len();
        assert_eq!(world.calls.of("index").len() + report.dead_total(), all, "{file}");
    }
}

/// A map of attributes as plain values: a second opinion on what the consumer makes of them, from what AWS's types write.
fn plain_map(item: &Value) -> Value {
    let plain = |(name, value): (&String, &Value)| (name.clone(), plain(value));
    item.as_object().unwrap().iter().map(plain).collect::<Map<_, _>>().into()
}

fn plain(attribute: &Value) -> Value {
    let (kind, value) = attribute.as_object().unwrap().iter().next().unwrap();
    let number = |text: &Value| -> Value { serde_json::from_str(text.as_str().unwrap()).unwrap() };
    let list = |each: &dyn Fn(&Value) -> Value| {
        Value::Array(value.as_array().unwrap().iter().map(each).collect())
    };
    match kind.as_str() {
        "N" => number(value),
        "NS" => list(&number),
        "L" => list(&plain),
        "M" => plain_map(value),
        "NULL" => Value::Null,
        _ => value.clone(),
    }
}
