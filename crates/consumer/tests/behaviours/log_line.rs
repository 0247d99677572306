//! What a batch leaves in the log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use millpond_consumer::{Message, Outcome};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::events::{event, kinesis, kinesis_at};
use crate::support::{World, is};

type Line = (Level, BTreeMap<String, String>);

/// Keeps every line of this thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push((*event.metadata().level(), fields.0));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_batch_leaves_one_line_with_its_totals_and_never_what_is_in_a_message() {
    let (world, lines) = (World::new(), Lines::default());
    let plan = |message: &Message| {
        if is(message, 1) {
            Outcome::retry("no")
        } else if is(message, 2) {
            Outcome::reject("bad")
        } else {
            Outcome::Done
        }
    };
    let consumer = world.planned(plan).build().unwrap();
    let secret = |n: u64| {
        kinesis(n, &format!("secret-key-{n}"), &serde_json::json!({"n": n, "card": "secret"}))
    };
    let mut records: Vec<_> = (1..=4).map(secret).collect();
    let (arn, shard) = (crate::support::events::STREAM, crate::support::events::SHARD);
    records.push(kinesis_at(arn, shard, "5", "secret-key-5", b"secret, and not JSON"));
    let logging = tracing::subscriber::set_default(lines.clone());
    world.deliver(&consumer, &event(records)).await;
    world.deliver(&consumer, &event(vec![secret(6)])).await;
    drop(logging);
    let lines = lines.0.lock().unwrap().clone();
    assert!(lines.iter().all(|(_, fields)| !format!("{fields:?}").contains("secret")), "{lines:?}");
    let batches: Vec<&Line> =
        lines.iter().filter(|(_, fields)| fields.contains_key("consumer")).collect();
    let [(first_level, first), (second_level, second)] = &batches[..] else {
        panic!("a line for each batch: {lines:?}");
    };
    assert_eq!((*first_level, *second_level), (Level::WARN, Level::INFO));
    let expected = [
        ("message", "a batch is not finished"),
        ("consumer", "\"orders\""),
        ("source", &format!("{arn:?}")),
        ("shard", &format!("{shard:?}")),
        ("records", "5"),
        ("messages", "4"),
        ("finished", "4"),
        ("unfinished", "1"),
        ("dead", "2"),
        ("duplicates", "0"),
        ("careful", "false"),
        ("cut_off", "false"),
        ("problems", "0"),
        ("millis", "0"),
    ];
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(*first, expected);
    assert_eq!(
        (second["message"].as_str(), second["finished"].as_str()),
        ("a batch is finished", "1")
    );
}
