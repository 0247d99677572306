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
use millpond_store::{
    Environment, Expect, Partition, Query, SortKey, SortRange, Store as _, Write,
};
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

const SHARD: &str = "shardId-000000000000";

/// Damages the row of the third message.
async fn damage(place: &Place) {
    let environment = Environment::system();
    let directory = place.directory().join("millpond-data");
    let store = EmbeddedStore::open_at(&directory, &environment).await.unwrap();
    let partition = Partition::new(format!("consumer/billing/{SHARD}/{ARN}")).unwrap();
    let range = SortRange::prefix(SortKey::new(&b"s"[..]).unwrap());
    let found = store.query(Query::new(partition).range(range)).await.unwrap();
    let row = found.items.last().unwrap();
    let broken = row.attributes.clone().with("tasks", "{");
    let write = Write::put(row.key.clone(), broken, Expect::Any, environment.version());
    store.write(write).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_shown_and_forgotten() {
    let (here, there) = (consumed().await, consumed().await);
    damage(&here).await;
    damage(&there).await;
    let Place::Store(directory) = there else { unreachable!("it is a store") };
    let server = Server::start(directory.path(), &[]);
    for place in [here, Place::Server(directory, server)] {
        let rows = place.json(&["consumer", "state", "billing", "--unfinished"]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["message"], "3");
        assert!(rows[0]["problem"].as_str().unwrap().contains("not JSON"), "{rows:?}");
        let table = place.good(&["consumer", "state", "billing"]);
        assert!(table.contains("cannot be read: its tasks are not JSON"), "{table}");
        let forget = ["consumer", "forget", "billing", "3", "--arn", ARN, "--shard", SHARD];
        assert_eq!(place.good(&forget), "billing has forgotten 3\n");
        assert!(place.json(&["consumer", "state", "billing", "--unfinished"]).is_empty());
        let (code, said) = place.bad(&forget);
        assert!(code == 3 && said.contains("remembers no message \"3\""), "{code}: {said}");
    }
}

/// What the older libraries kept of two batches, as `aws dynamodb scan` prints it, and of a batch of somebody else.
fn scanned() -> String {
    let item = |stream: &str, number: u32, state: &str| {
        json!({
            "streamConsumerId": {"S": format!("K|{stream}|billing:prod")},
            "shardOrEventID": {"S": format!("S|{SHARD}")},
            "messageStates": {"L": [{"M": {
                "eventID": {"S": format!("{SHARD}:{number}")},
                "eventSeqNo": {"S": number.to_string()},
                "ones": {"M": {"judge": {"M": {
                    "name": {"S": "judge"}, "attempts": {"N": "2"},
                    "state": {"M": {"type": {"S": state}}},
                }}}},
            }}]},
        })
    };
    let list = json!({"Items": [item("orders", 7, "Completed"), item("others", 1, "Completed")]});
    format!("{list:#}\n{}\n", item("orders", 8, "Failed"))
}

#[test]
fn state_of_the_older_libraries_is_imported() {
    let server = Place::server();
    for place in [Place::store(), server] {
        let import = |former: &str| {
            let arguments =
                ["consumer", "import", "billing", "--arn", ARN, "--former", former, "-"];
            place.json_with(&arguments, &scanned()).remove(0)
        };
        let nothing = import("billing:dev");
        assert_eq!((&nothing["items"], &nothing["passed_over"]), (&json!(0), &json!(3)));
        assert_eq!(nothing["others"], json!(["orders|billing:prod", "others|billing:prod"]));
        let done = import("billing:prod");
        let counts = ["items", "messages", "unnamed", "passed_over"].map(|name| done[name].clone());
        assert_eq!(counts, [2, 2, 0, 1].map(Value::from), "{done}");
        let rows = place.json(&["consumer", "state", "billing"]);
        let seen: Vec<_> =
            rows.iter().map(|row| (&row["message"], &row["tasks"]["judge"]["status"])).collect();
        assert_eq!(seen, [(&json!("7"), &json!("done")), (&json!("8"), &json!("pending"))]);
        let wrong = ["consumer", "import", "billing", "--arn", "arn:x", "--former", "x", "-"];
        let output = place.run_with(&wrong, &scanned());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains("names no stream"), "{said}");
    }
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
    refused(&["consumer", "letters", "--from", "queue:dead"], 2, "sqs:URL or kinesis:STREAM");
    let both = ["consumer", "redrive", "--from", "kinesis:x", "--to-queue", "dead"];
    let both: Vec<&str> = both.into_iter().chain(["--server", "http://127.0.0.1:1"]).collect();
    refused(&both, 2, "name it with --store");
    refused(&["consumer", "enable", "--function", "arn:x"], 2, "--source");
    let nobody = ["consumer", "sources", "billing", "--server", "http://127.0.0.1:1"];
    refused(&nobody, 5, "cannot be reached");
}
