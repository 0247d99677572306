//! What a consumer is fed by fuzzers and by the tests that replay what fuzzers found: a function for each kind of input.
//! Whatever the bytes are, all of them come to an end: done, or dead with a reason. None panics.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_consumer::source::{Aggregate, Event};
use millpond_consumer::state::legacy::LegacyBatch;
use millpond_consumer::{
    Consumer, Data, DeadLetter, Extractor, Ids, Json, JsonLines, MemorySink, Message, Report,
    StoreState,
};
use millpond_store::{Environment, MemoryStore};

/// Feeds one input.
pub type Feed = fn(&[u8]);

/// All kinds, by the names of their corpora.
pub const KINDS: &[(&str, Feed)] = &[
    ("event", event),
    ("kinesis", kinesis),
    ("aggregate", aggregate),
    ("table", table),
    ("image", image),
    ("message", message),
    ("extract", extract),
    ("letter", letter),
    ("legacy", legacy),
];

/// Handles an event, all of which must come to an end: done, or dead with a reason.
pub fn handle(event: &[u8]) -> Report {
    let environment = Environment::system();
    let store = Arc::new(MemoryStore::new(&environment));
    let sink = MemorySink::new();
    let consumer = Consumer::builder("hostile")
        .state(StoreState::new(store, &environment))
        .dead_letters(sink.clone())
        .ids(Ids::Properties(vec!["id".into()]))
        .keys(["customer.id"])
        .sequence(["version"])
        .one("accept", |_: Message| async {})
        .build()
        .unwrap();
    let deadline = environment.now().plus(Duration::from_secs(600));
    let (response, report) = block_on(consumer.handle(event, deadline)).unwrap();
    assert!(response.starts_with(br#"{"batchItemFailures":[]"#), "{response:?} {report:?}");
    assert_eq!((report.unfinished, sink.letters().len()), (0, report.dead_total()));
    for letter in sink.letters() {
        assert_eq!(DeadLetter::decode(&letter.encode()).unwrap(), letter);
    }
    report
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A whole event.
pub fn event(bytes: &[u8]) {
    let report = handle(bytes);
    if Event::parse(bytes).is_err() {
        assert_eq!(report.dead_total(), 1);
    }
}

fn record(bytes: &[u8]) {
    handle(&[br#"{"Records":["#, bytes, b"]}"].concat());
}

/// A record of Kinesis.
pub fn kinesis(bytes: &[u8]) {
    record(bytes);
}

/// A record of DynamoDB Streams.
pub fn table(bytes: &[u8]) {
    record(bytes);
}

/// A message of SQS.
pub fn message(bytes: &[u8]) {
    record(bytes);
}

/// A KPL aggregate as it is, or, after an odd byte, what is in one: a checksum is not to be guessed.
pub fn aggregate(bytes: &[u8]) {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let data = if first % 2 == 1 { Aggregate::framed(rest) } else { Bytes::copy_from_slice(rest) };
    let found = Aggregate::user_records(&data);
    let text = base64(&data);
    let mut event = String::from(r#"{"Records":[{"eventSource":"aws:kinesis","eventID":"s-1:7","#);
    write!(
        event,
        r#""eventSourceARN":"arn:aws:kinesis:e:1:stream/s","kinesis":{{"partitionKey":"k","sequenceNumber":"7","data":"{text}"}}}}]}}"#
    )
    .unwrap();
    let report = handle(event.as_bytes());
    if let Ok(Some(records)) = found {
        assert_eq!(report.finished, records.len());
    }
}

/// The new image of an item.
pub fn image(bytes: &[u8]) {
    let before = concat!(
        r#"{"Records":[{"eventSource":"aws:dynamodb","eventID":"e","eventName":"INSERT","#,
        r#""eventSourceARN":"arn:aws:dynamodb:e:1:table/t/stream/s","dynamodb":{"SequenceNumber":"7","#,
        r#""StreamViewType":"NEW_IMAGE","Keys":{"id":{"S":"a"}},"NewImage":"#
    );
    handle(&[before.as_bytes(), bytes, b"}}]}"].concat());
}

/// What extractors read.
pub fn extract(bytes: &[u8]) {
    let data = Data { bytes: Bytes::copy_from_slice(bytes), value: None };
    for extractor in [&Json as &dyn Extractor, &JsonLines] {
        match extractor.extract(&data) {
            Ok(found) => {
                for one in found {
                    assert!(one.value.is_some() && one.payload.len() <= bytes.len());
                }
            }
            Err(reason) => assert!(reason.contains("not JSON"), "{reason}"),
        }
    }
}

/// A dead letter. One that is read comes back as it was.
pub fn letter(bytes: &[u8]) {
    if let Ok(letter) = DeadLetter::decode(bytes) {
        let _ = (letter.payload(), letter.position());
        assert_eq!(DeadLetter::decode(&letter.encode()).unwrap(), letter);
    }
}

/// An item of state as the older libraries kept it. One that is read can be imported.
pub fn legacy(bytes: &[u8]) {
    let Ok(batch) = LegacyBatch::parse(bytes) else { return };
    let environment = Environment::system();
    let state = StoreState::new(Arc::new(MemoryStore::new(&environment)), &environment);
    let arn = "arn:aws:kinesis:e:1:stream/s";
    let written = block_on(batch.import(&state, "imported", arn)).unwrap();
    assert_eq!(written, batch.messages.len());
}

/// Base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}
