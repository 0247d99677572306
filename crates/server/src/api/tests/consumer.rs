//! Consumers through the API.

use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millpond_consumer::sink::{LogSink, QueueSink};
use millpond_consumer::{Consumer, Message, Outcome, StoreState};
use millpond_store::Environment;
use serde_json::{Value, json};

use super::{World, failure, world};

const ARN: &str = "arn:aws:kinesis:eu-central-1:111122223333:stream/orders";

async fn judge(message: Message) -> Outcome {
    match message.value().and_then(Value::as_str) {
        Some("good") => Outcome::Done,
        Some("bad") => Outcome::reject("it is bad"),
        _ => Outcome::retry("not now"),
    }
}

fn event(values: &[&str]) -> Vec<u8> {
    let record = |(sequence, value): (usize, &&str)| {
        json!({
            "eventSource": "aws:kinesis",
            "eventID": format!("shardId-000000000000:{}", sequence + 1),
            "eventSourceARN": ARN,
            "kinesis": {
                "partitionKey": sequence.to_string(), "sequenceNumber": (sequence + 1).to_string(),
                "data": STANDARD.encode(format!("{value:?}")),
            },
        })
    };
    let records: Vec<Value> = values.iter().enumerate().map(record).collect();
    json!({ "Records": records }).to_string().into_bytes()
}

/// A consumer has finished one message, rejected two, and tries the others again; what it rejected is in `dead`.
async fn consumed(into_queue: bool) -> World {
    let world = world();
    let ground = world.api.ground().clone();
    let state = StoreState::new(Arc::clone(&ground.store), &ground.environment);
    // A consumer sleeps beside its handlers, and the world's clock lets every sleep end at once.
    let environment = Environment::system();
    let builder = Consumer::builder("billing").environment(&environment).state(state);
    let builder = builder.one("judge", judge).attempts(5);
    let builder = if into_queue {
        world.put("/v1/queues/dead", json!({})).await;
        builder.dead_letters(QueueSink::new(world.api.handles().client("dead", "").await.unwrap()))
    } else {
        world.put("/v1/topics/dead", json!({ "settings": { "partitions": 1 } })).await;
        builder.dead_letters(LogSink::new(world.api.handles().topic("dead").await.unwrap()))
    };
    let consumer = builder.build().unwrap();
    let deadline = environment.now().plus(Duration::from_secs(30));
    consumer.handle(&event(&["good", "bad", "bad", "late", "late"]), deadline).await.unwrap();
    world
}

#[tokio::test]
async fn state_is_shown_by_source_and_message() {
    let world = consumed(true).await;
    let sources = world.get("/v1/consumers/billing/sources").await;
    assert_eq!(sources["sources"], json!([{ "arn": ARN, "shard": "shardId-000000000000" }]));
    let state = world.get("/v1/consumers/billing/state?unfinished=true").await;
    let messages = state["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["message"]), (2, &json!("4")));
    let task = json!({ "status": "pending", "attempts": 1, "error": "not now" });
    assert_eq!(messages[0]["tasks"]["judge"], task);
    let one = world.get("/v1/consumers/billing/state?max=1").await;
    assert_eq!((one["messages"].as_array().unwrap().len(), &one["more"]), (1, &json!(true)));
    let other = world.get("/v1/consumers/billing/state?arn=another").await;
    assert_eq!(other, json!({ "messages": [], "more": false }));
    assert_eq!(world.get("/v1/consumers/nobody/sources").await["sources"], json!([]));
}

#[tokio::test]
async fn letters_in_a_queue_are_listed_and_brought_back_once() {
    let world = consumed(true).await;
    let letters = world.get("/v1/letters?queue=dead&reasons=rejected,expired").await;
    let letters = letters["letters"].as_array().unwrap();
    assert_eq!((letters.len(), &letters[0]["record"]), (2, &json!("2")));
    assert_eq!(
        (&letters[0]["detail"], &letters[0]["message"]["text"]),
        (&json!("judge: it is bad"), &json!("\"bad\""))
    );
    let none = world.get("/v1/letters?queue=dead&reasons=exhausted").await;
    assert_eq!(none["letters"], json!([]));
    world.put("/v1/queues/again", json!({})).await;
    let redrive = |consumer: &str| json!({ "from_queue": "dead", "to_queue": "again", "reasons": ["rejected"], "consumer": consumer });
    let others = world.post("/v1/letters/redrive", redrive("another")).await;
    assert_eq!((&others["sent"], &others["skipped"]), (&json!(0), &json!(2)));
    let done = world.post("/v1/letters/redrive", redrive("billing")).await;
    assert_eq!(done, json!({ "sent": 2, "skipped": 0, "failed": 0, "failures": [] }));
    assert_eq!(world.get("/v1/letters?queue=dead").await["letters"], json!([]));
    let back = world.get("/v1/queues/again/messages").await;
    assert_eq!(back["messages"][0]["body"], "\"bad\"");
}

#[tokio::test]
async fn letters_in_a_topic_stay_and_are_gone_on_from() {
    let world = consumed(false).await;
    let letters = world.get("/v1/letters?topic=dead&offset=1").await;
    let letters = letters["letters"].as_array().unwrap();
    assert_eq!((letters.len(), &letters[0]["offset"]), (1, &json!(1)));
    let strange = json!({ "records": [{ "payload": "no letter" }] });
    world.post("/v1/topics/dead/records", strange).await;
    let letters = world.get("/v1/letters?topic=dead&offset=2").await;
    assert_eq!(letters["letters"][0]["kind"], "unreadable");
    world.put("/v1/topics/again", json!({ "settings": { "partitions": 1 } })).await;
    let body = json!({ "from_topic": "dead", "to_topic": "again" });
    let done = world.post("/v1/letters/redrive", body).await;
    assert_eq!((&done["sent"], &done["failed"], &done["next"]), (&json!(2), &json!(1), &json!(3)));
    assert!(done["failures"][0].as_str().unwrap().starts_with("offset 2: "), "{done}");
    let back = world.get("/v1/topics/again/records?partition=0").await;
    assert_eq!(back["records"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name() {
    let world = consumed(true).await;
    let get = |path: &'static str| world.bad(Method::GET, path, None);
    assert_eq!(get("/v1/letters").await, failure(400, "invalid", "queue"));
    assert_eq!(get("/v1/letters?queue=dead&topic=t").await, failure(400, "invalid", "topic"));
    assert_eq!(
        get("/v1/letters?queue=dead&reasons=bored").await,
        failure(400, "invalid", "reasons")
    );
    assert_eq!(get("/v1/letters?queue=dead&kind=other").await, failure(400, "invalid", "kind"));
    assert_eq!(get("/v1/letters?queue=dead&max=0").await, failure(400, "invalid", "max"));
    assert_eq!(get("/v1/letters?queue=nowhere").await.1, "not_found");
    assert_eq!(get("/v1/letters?topic=nowhere").await, failure(404, "not_found", "topic"));
    let redrive = |body: Value| world.bad(Method::POST, "/v1/letters/redrive", Some(body));
    let lone = redrive(json!({ "from_queue": "dead" })).await;
    assert_eq!(lone, failure(400, "invalid", "to_queue"));
    let nowhere = redrive(json!({ "from_queue": "dead", "to_queue": "nowhere" })).await;
    assert_eq!(nowhere.1, "not_found");
}
