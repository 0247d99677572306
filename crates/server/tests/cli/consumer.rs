//! What consumers leave in a store, by the commands that look at it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millpond_consumer::sink::QueueSink;
use millpond_consumer::{Consumer, Message, Outcome, StoreState};
use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_queue::{QueueConfig, Queues};
use millpond_store::Environment;
use serde_json::{Value, json};

use super::world::{Place, Server};

const ARN: &str = "arn:aws:kinesis:eu-central-1:111122223333:stream/orders";

async fn judge(message: Message) -> Outcome {
    match message.value().and_then(Value::as_str) {
        Some("good") => Outcome::Done,
        Some("bad") => Outcome::reject("it is bad"),
        _ => Outcome::retry("not now"),
    }
}

fn record(sequence: u64, data: &str) -> Value {
    json!({
        "eventSource": "aws:kinesis",
        "eventID": format!("shardId-000000000000:{sequence}"),
        "eventSourceARN": ARN,
        "kinesis": {
            "partitionKey": data, "sequenceNumber": sequence.to_string(),
            "data": STANDARD.encode(format!("{data:?}")),
        },
    })
}

/// A store in which a consumer has finished one message, rejected one, and given up neither the third.
async fn consumed() -> Place {
    let place = Place::store();
    let environment = Environment::system();
    let directory = place.directory().join("millpond-data");
    let store = EmbeddedStore::open_at(&directory, &environment).await.unwrap();
    let ground = Ground::new(Arc::new(store.clone()), &environment);
    let dead = Queues::new(&ground).create("dead", QueueConfig::default()).await.unwrap();
    let consumer = Consumer::builder("billing")
        .state(StoreState::new(Arc::new(store.clone()), &environment))
        .dead_letters(QueueSink::new(dead.main().unwrap()))
        .one("judge", judge)
        .attempts(5)
        .build()
        .unwrap();
    let event = json!({ "Records": [record(1, "good"), record(2, "bad"), record(3, "late")] });
    let deadline = environment.now().plus(Duration::from_secs(30));
    consumer.handle(event.to_string().as_bytes(), deadline).await.unwrap();
    drop((consumer, dead, ground));
    store.close().await;
    place
}

/// Such a store, and a server on another one.
async fn both() -> [Place; 2] {
    let Place::Store(directory) = consumed().await else { unreachable!("it is a store") };
    let server = Server::start(directory.path(), &[]);
    [consumed().await, Place::Server(directory, server)]
}

#[tokio::test]
async fn both_doors_say_the_same() {
    let [here, there] = both().await;
    let commands: [&[&str]; 7] = [
        &["consumer", "sources", "billing"],
        &["consumer", "state", "billing"],
        &["consumer", "state", "billing", "--max", "1"],
        &["consumer", "letters", "--queue", "dead", "--consumer", "billing"],
        &["consumer", "redrive", "--queue", "dead", "--to-queue", "dead", "--reason", "expired"],
        &["consumer", "redrive", "--queue", "dead", "--to-topic", "nowhere"],
        &["consumer", "letters", "--topic", "nowhere"],
    ];
    let when = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if value.get("died_ms").is_some() {
            value["died_ms"] = Value::Null;
        }
        value
    };
    for command in commands {
        let command: Vec<&str> = command.iter().copied().chain(["--json"]).collect();
        let said = [&here, &there].map(|place| {
            let output = place.run(&command);
            let printed: Vec<Value> =
                String::from_utf8(output.stdout).unwrap().lines().map(when).collect();
            (output.status.code(), printed, String::from_utf8(output.stderr).unwrap())
        });
        assert_eq!(said[0], said[1], "{command:?}");
    }
}

#[tokio::test]
async fn state_is_shown_by_source_and_message() {
    for place in both().await {
        state_is_shown_at(&place);
    }
}

fn state_is_shown_at(place: &Place) {
    let sources = place.json(&["consumer", "sources", "billing"]);
    assert_eq!(sources, [json!({ "arn": ARN, "shard": "shardId-000000000000" })]);
    let rows = place.json(&["consumer", "state", "billing", "--unfinished"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["message"], "3");
    assert_eq!(rows[0]["tasks"]["judge"]["attempts"], 1);
    assert_eq!(rows[0]["tasks"]["judge"]["error"], "not now");
    let table = place.good(&["consumer", "state", "billing"]);
    assert!(table.contains("judge: pending, 1 in vain, not now"), "{table}");
    assert!(place.json(&["consumer", "state", "billing", "--arn", "another"]).is_empty());
    assert!(place.json(&["consumer", "sources", "nobody"]).is_empty());
}

#[tokio::test]
async fn dead_letters_are_listed_and_brought_back_once() {
    for place in both().await {
        letters_are_brought_back_at(&place);
    }
}

fn letters_are_brought_back_at(place: &Place) {
    let letters = place.json(&["consumer", "letters", "--queue", "dead"]);
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!((&letters[0]["reason"], &letters[0]["record"]), (&json!("rejected"), &json!("2")));
    let other = ["consumer", "letters", "--queue", "dead", "--reason", "exhausted"];
    assert!(place.json(&other).is_empty());
    place.good(&["queue", "create", "again"]);
    let redrive = ["consumer", "redrive", "--queue", "dead", "--to-queue", "again"];
    let redriven = place.json(&redrive);
    assert_eq!((&redriven[0]["sent"], &redriven[0]["failed"]), (&json!(1), &json!(0)));
    assert!(place.json(&["consumer", "letters", "--queue", "dead"]).is_empty());
    let back = place.json(&["queue", "peek", "again"]);
    assert_eq!(back.len(), 1, "{back:?}");
    assert_eq!(back[0]["body"], "\"bad\"");
    assert_eq!(place.json(&redrive)[0]["sent"], 0, "a second time there is nothing");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let place = consumed().await;
    let refused = |arguments: &[&str], code: i32, word: &str| {
        let (exit, said) = place.bad(arguments);
        assert!(exit == code && said.contains(word), "{arguments:?}: {exit}, {said}");
    };
    refused(&["consumer", "letters"], 2, "--queue");
    refused(&["consumer", "letters", "--queue", "nowhere"], 3, "nowhere");
    refused(&["consumer", "letters", "--topic", "nowhere"], 3, "nowhere");
    refused(&["consumer", "letters", "--queue", "dead", "--reason", "bored"], 2, "exhausted");
    refused(&["consumer", "redrive", "--queue", "dead"], 2, "--to-queue");
    let nobody = ["consumer", "sources", "billing", "--server", "http://127.0.0.1:1"];
    refused(&nobody, 5, "cannot be reached");
}
