//! Records of a Kinesis stream through a consumer, and its dead letters in Kinesis and SQS.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_kinesis::primitives::Blob;
use bytes::Bytes;
use millpond_consumer::redrive::Which;
use millpond_consumer::sink::{Letter, MemorySink, Sink as _, SinkError};
use millpond_consumer::{Consumer, DeadLetter, Message, Outcome, Reason, Spill, StoreState};
use millpond_dynamodb::Objects;
use millpond_lambda::redrive::{KinesisLetters, SqsLetters, ToKinesis, ToSqs};
use millpond_lambda::{KinesisSink, SqsSink};
use millpond_store::MemoryStore;
use serde_json::Value;

use crate::cloud::Cloud;

async fn put(cloud: &Cloud, stream: &str, key: &str, data: impl Into<Vec<u8>>) {
    let put = cloud.kinesis().put_record().stream_name(stream).partition_key(key);
    put.data(Blob::new(data)).send().await.unwrap();
}

/// Odd numbers are rejected.
async fn only_even(message: Message) -> Outcome {
    match message.value().and_then(|value| value["n"].as_u64()) {
        Some(n) if n % 2 == 0 => Outcome::Done,
        n => Outcome::reject(format!("{n:?} is not even")),
    }
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn records_of_a_stream_become_messages_and_dead_letters_in_kinesis_and_sqs() {
    let cloud = Cloud::connect().await;
    let (source, arn) = cloud.stream("source").await;
    let (dead, dead_arn) = cloud.stream("dead").await;
    let queue = cloud.queue("unusable").await;
    for n in 0..30 {
        put(&cloud, &source, &format!("key {n}"), format!("{{\"n\":{n}}}")).await;
    }
    for n in 0..12 {
        put(&cloud, &source, "bad", format!("not JSON {n} \u{ffff}")).await;
    }
    let event = cloud.event_of(&source, &arn).await;
    assert_eq!(event["Records"].as_array().unwrap().len(), 42);

    let store = Arc::new(MemoryStore::new(&cloud.environment));
    let aws = cloud.aws();
    let consumer = Consumer::builder("moto")
        .one("even", only_even)
        .state(StoreState::new(store, &cloud.environment))
        .dead_messages(KinesisSink::new(&aws, &dead_arn))
        .dead_records(SqsSink::new(&aws, &queue))
        .build()
        .unwrap();
    let deadline = cloud.environment.now().plus(Duration::from_secs(60));
    let (answer, report) = consumer.handle(event.to_string().as_bytes(), deadline).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[]}"#, "{report:?}");
    assert_eq!((report.dead[&Reason::Rejected], report.dead[&Reason::Unusable]), (15, 12));

    let letters = cloud.records_of(&dead).await;
    let numbers: BTreeSet<u64> = letters
        .iter()
        .map(|record| {
            let letter = DeadLetter::decode(record.data().as_ref()).unwrap();
            assert_eq!(letter.reason, Reason::Rejected);
            assert_eq!(letter.partition_key.as_deref(), record.partition_key());
            let payload: Value = serde_json::from_slice(&letter.payload().unwrap()).unwrap();
            payload["n"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(numbers, (0..30).filter(|n| n % 2 == 1).collect());
    let records = cloud.messages_of(&queue).await;
    assert_eq!(records.len(), 12, "in two batches");
    for (body, _) in records {
        let letter = DeadLetter::decode(body.as_bytes()).unwrap();
        assert_eq!(letter.reason, Reason::Unusable);
        assert_eq!(letter.source.unwrap().arn, arn);
    }
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn letters_in_a_fifo_queue_are_there_once_and_keep_their_group() {
    let cloud = Cloud::connect().await;
    let url = cloud.queue("letters-fifo").await;
    let sink = SqsSink::new(&cloud.aws(), &url);
    let letter = |id: &str, group: &str| Letter {
        dedupe_id: id.into(),
        group: Some(group.into()),
        body: Bytes::from(format!("{{\"id\":\"{id}\"}}")),
    };
    let letters = vec![letter("a", "customer-7"), letter("b", "customer 8")];
    for _ in 0..2 {
        for receipt in sink.put(letters.clone()).await {
            assert!(!receipt.unwrap().0.is_empty());
        }
    }
    let found = cloud.messages_of(&url).await;
    assert_eq!(found.len(), 2, "sent twice, there once: {found:?}");
    assert_eq!(found[0].1.as_deref(), Some("customer-7"));
    assert_eq!(found[1].1.as_deref(), Some("b"), "a key with a space cannot be a group");
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn a_letter_over_the_sinks_limit_is_spilled_and_comes_back_whole() {
    let cloud = Cloud::connect().await;
    let (source, arn) = cloud.stream("large").await;
    let queue = cloud.queue("spilled").await;
    let large = format!("{{\"n\":1,\"fill\":\"{}\"}}", "x".repeat(900_000));
    put(&cloud, &source, "key", large.as_str()).await;
    let objects = Objects::open("memory:", &millpond_dynamodb::ObjectOptions::default()).unwrap();
    let spill = Spill::new(objects.store, objects.prefix);
    let store = Arc::new(MemoryStore::new(&cloud.environment));
    let consumer = Consumer::builder("moto")
        .one("even", only_even)
        .state(StoreState::new(store, &cloud.environment))
        .dead_letters(SqsSink::new(&cloud.aws(), &queue))
        .spill(spill.clone())
        .build()
        .unwrap();
    let event = cloud.event_of(&source, &arn).await;
    let deadline = cloud.environment.now().plus(Duration::from_secs(60));
    let (answer, report) = consumer.handle(event.to_string().as_bytes(), deadline).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[]}"#, "{report:?}");
    let found = cloud.messages_of(&queue).await;
    assert_eq!(found.len(), 1);
    let letter = DeadLetter::decode(found[0].0.as_bytes()).unwrap();
    assert!(letter.payload().is_err() && letter.spilled.is_some());
    let whole = spill.fetch(letter).await.unwrap();
    assert_eq!(whole.payload().unwrap(), large);
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn a_sink_that_is_not_there_is_a_wrong_set_up() {
    let cloud = Cloud::connect().await;
    let letter = Letter { dedupe_id: "id".into(), group: None, body: Bytes::from("{}") };
    let kinesis = KinesisSink::new(&cloud.aws(), cloud.name("nowhere"));
    let gone = format!("{}/{}/{}", cloud.endpoint, crate::cloud::ACCOUNT, cloud.name("nowhere"));
    let sqs = SqsSink::new(&cloud.aws(), gone);
    for outcome in [kinesis.put(vec![letter.clone()]).await, sqs.put(vec![letter]).await] {
        let error = outcome[0].clone().unwrap_err();
        assert!(error.is_fatal(), "{error}");
        assert!(
            matches!(&error, SinkError::Misconfigured { remedy, .. } if remedy.contains("create it"))
        );
    }
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn letters_in_sqs_are_listed_and_brought_back_byte_for_byte() {
    let cloud = Cloud::connect().await;
    let (source, arn) = cloud.stream("again").await;
    let dead = cloud.queue("dead").await;
    let back = cloud.queue("back-fifo").await;
    for n in [1, 2, 3] {
        put(&cloud, &source, &format!("key-{n}"), format!("{{ \"n\" : {n} }}")).await;
    }
    put(&cloud, &source, "key-4", "not JSON").await;
    let store = Arc::new(MemoryStore::new(&cloud.environment));
    let aws = cloud.aws();
    let consumer = Consumer::builder("moto")
        .one("even", only_even)
        .state(StoreState::new(store, &cloud.environment))
        .dead_letters(SqsSink::new(&aws, &dead))
        .build()
        .unwrap();
    let event = cloud.event_of(&source, &arn).await;
    let deadline = cloud.environment.now().plus(Duration::from_secs(60));
    let (_, report) = consumer.handle(event.to_string().as_bytes(), deadline).await.unwrap();
    assert_eq!(report.dead_total(), 3, "{report:?}");

    let letters = SqsLetters::new(&aws, &dead);
    let unusable = Which { reasons: vec![Reason::Unusable], ..Which::default() };
    let redriven =
        letters.redrive(&ToKinesis::new(&aws, &source), &unusable, None, 100).await.unwrap();
    assert_eq!((redriven.sent, redriven.skipped, redriven.failed), (1, 2, vec![]));
    let records = cloud.records_of(&source).await;
    let last = records.last().unwrap();
    assert_eq!((last.data().as_ref(), last.partition_key()), (&b"not JSON"[..], Some("key-4")));

    // The others are still there, and looking at them hides them from nobody afterwards.
    for _ in 0..2 {
        assert_eq!(letters.list(&Which::default(), 100).await.unwrap().len(), 2);
    }
    let attributes = cloud.sqs().get_queue_attributes().queue_url(&dead);
    let hidden = aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
    let found = attributes.attribute_names(hidden.clone()).send().await.unwrap();
    assert_eq!(found.attributes().unwrap()[&hidden], "0");

    let letter = Letter {
        dedupe_id: "id".into(),
        group: None,
        body: DeadLetter::decode(&one_letter(&consumer, &cloud).await).unwrap().encode(),
    };
    SqsSink::new(&aws, &dead).put(vec![letter]).await.remove(0).unwrap();
    let all = Which::default();
    let redriven = letters.redrive(&ToSqs::new(&aws, &back), &all, None, 100).await.unwrap();
    assert_eq!(redriven.sent, 3, "{redriven:?}");
    let back = cloud.messages_of(&back).await;
    assert!(back.contains(&(r#"{ "n" : 7 }"#.to_owned(), Some("key-7".to_owned()))), "{back:?}");
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn letters_in_kinesis_are_listed_and_brought_back_from_where_one_left_off() {
    let cloud = Cloud::connect().await;
    let (source, arn) = cloud.stream("from").await;
    let (dead, dead_arn) = cloud.stream("dead-letters").await;
    let back = cloud.queue("back").await;
    for n in 1..=4 {
        put(&cloud, &source, &format!("key-{n}"), format!("{{\"n\":{n}}}")).await;
    }
    put(&cloud, &source, "key-5", "not JSON").await;
    let store = Arc::new(MemoryStore::new(&cloud.environment));
    let aws = cloud.aws();
    let consumer = Consumer::builder("moto")
        .one("even", only_even)
        .state(StoreState::new(store, &cloud.environment))
        .dead_letters(KinesisSink::new(&aws, &dead))
        .build()
        .unwrap();
    let event = cloud.event_of(&source, &arn).await;
    let deadline = cloud.environment.now().plus(Duration::from_secs(60));
    consumer.handle(event.to_string().as_bytes(), deadline).await.unwrap();
    put(&cloud, &dead, "x", "no letter").await;

    // By its name and by its ARN.
    for stream in [&dead, &dead_arn] {
        let letters = KinesisLetters::new(&aws, stream);
        let shards = letters.shards().await.unwrap();
        let listed = letters.list(&shards[0], None, &Which::default(), 100).await.unwrap();
        let count = (shards.len(), listed.looked_at, listed.found.len());
        assert_eq!(count, (1, 4, 4), "{listed:?}");
        assert!(listed.found[3].1.is_err(), "what is no letter is named");
    }
    let letters = KinesisLetters::new(&aws, &dead);
    let shard = letters.shards().await.unwrap().remove(0);
    let (to, rejected) =
        (ToSqs::new(&aws, &back), Which { reasons: vec![Reason::Rejected], ..Which::default() });
    let first = letters.redrive((&shard, None), &to, &rejected, None, 2).await.unwrap();
    assert_eq!((first.looked_at, first.found.failed.len()), (2, 0), "{first:?}");
    let after = first.after.as_deref();
    let rest = letters.redrive((&shard, after), &to, &rejected, None, 100).await.unwrap();
    assert_eq!((rest.looked_at, rest.found.failed.len()), (2, 1), "{rest:?}");
    assert_eq!(first.found.sent + rest.found.sent, 2);
    assert_eq!(first.found.skipped + rest.found.skipped, 1, "the one that is unusable");
    let end = letters.redrive((&shard, rest.after.as_deref()), &to, &rejected, None, 9).await;
    assert_eq!(end.unwrap().after, rest.after, "nothing is behind it");
    let mut bodies: Vec<_> = cloud.messages_of(&back).await.into_iter().map(|(b, _)| b).collect();
    bodies.sort();
    assert_eq!(bodies, [r#"{"n":1}"#, r#"{"n":3}"#]);
}

/// A letter that a consumer wrote.
async fn one_letter(consumer: &Consumer, cloud: &Cloud) -> Vec<u8> {
    let record = crate::support::events::kinesis_record(
        crate::support::events::STREAM,
        "7",
        "key-7",
        br#"{ "n" : 7 }"#,
    );
    let sink = MemorySink::new();
    let store = Arc::new(MemoryStore::new(&cloud.environment));
    let other = Consumer::builder(consumer.name())
        .one("even", only_even)
        .state(StoreState::new(store, &cloud.environment))
        .dead_letters(sink.clone())
        .build()
        .unwrap();
    let event = serde_json::json!({ "Records": [record] }).to_string();
    let deadline = cloud.environment.now().plus(Duration::from_secs(60));
    other.handle(event.as_bytes(), deadline).await.unwrap();
    sink.letters().remove(0).encode().to_vec()
}
