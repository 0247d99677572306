//! Working in a group through the API.

use std::time::Duration;

use ::http::Method;
use millpond_log::{ConsumerOptions, Puller};
use serde_json::{Value, json};

use super::super::limits::MEMBERS_MAX;
use super::{World, failure, world};

const GROUP: &str = "/v1/topics/t/groups/g";

async fn topic(world: &World, partitions: u32, payloads: &[&str]) {
    world.put("/v1/topics/t", json!({ "settings": { "partitions": partitions } })).await;
    for payload in payloads {
        let record = json!({ "payload": payload });
        let body = json!({ "records": [record], "partition": 0 });
        world.post("/v1/topics/t/records", body).await;
    }
}

async fn join(world: &World, name: &str) -> (String, Value) {
    let joined = world.post(&format!("{GROUP}/join"), json!({ "worker": name })).await;
    (joined["worker"].as_str().unwrap().to_owned(), joined)
}

async fn poll(world: &World, body: Value) -> Value {
    world.post(&format!("{GROUP}/poll"), body).await
}

fn payloads(answer: &Value) -> Vec<&str> {
    let batches = answer["batches"].as_array().unwrap().iter();
    let records = batches.flat_map(|batch| batch["records"].as_array().unwrap());
    records.map(|record| record["payload"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_worker_joins_polls_checkpoints_and_leaves() {
    let world = world();
    topic(&world, 2, &["a", "b", "c"]).await;
    let (id, joined) = join(&world, "shop-1").await;
    assert!(id.starts_with("shop-1."), "{id}");
    assert_eq!(
        (joined["held"].as_array().unwrap().len(), &joined["lease_ms"]),
        (2, &json!(30_000))
    );
    let first = poll(&world, json!({ "worker": id, "max": 2 })).await;
    assert_eq!(payloads(&first), ["a", "b"]);
    let more = poll(&world, json!({ "worker": id, "after": first["poll"] })).await;
    assert_eq!(payloads(&more), ["c"]);
    // Without the number of the last answer, everything that is not done comes again.
    assert_eq!(payloads(&poll(&world, json!({ "worker": id })).await), ["a", "b", "c"]);
    let batch = &first["batches"][0];
    let done =
        json!({ "worker": id, "partition": 0, "token": batch["token"], "next": batch["next"] });
    world.post(&format!("{GROUP}/checkpoint"), done).await;
    assert_eq!(payloads(&poll(&world, json!({ "worker": id })).await), ["c"]);
    let lag = world.get(GROUP).await;
    assert_eq!((&lag["lag"], &lag["workers"][0]["id"]), (&json!(1), &json!(id)));
    for _ in 0..2 {
        world.post(&format!("{GROUP}/leave"), json!({ "worker": id })).await;
    }
    assert_eq!(world.get(GROUP).await["workers"], json!([]));
    let (next, joined) = join(&world, "shop-2").await;
    assert_eq!(joined["held"].as_array().unwrap().len(), 2, "nobody is waited for");
    assert_eq!(payloads(&poll(&world, json!({ "worker": next })).await), ["c"]);
}

#[tokio::test]
async fn a_poll_waits_for_what_is_appended() {
    let world = world();
    topic(&world, 1, &[]).await;
    let (id, _) = join(&world, "w").await;
    let append = async {
        let body = json!({ "records": [{ "payload": "awaited" }] });
        world.post("/v1/topics/t/records", body).await
    };
    let (got, _) = tokio::join!(poll(&world, json!({ "worker": id, "wait_ms": 60_000 })), append);
    assert_eq!(payloads(&got), ["awaited"]);
    let none = poll(&world, json!({ "worker": id, "after": got["poll"], "wait_ms": 500 })).await;
    assert!(none["batches"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn what_a_worker_may_not_do_is_refused_by_name() {
    let world = world();
    topic(&world, 1, &["a"]).await;
    let bad = |what: &'static str, body: Value| {
        let path = format!("{GROUP}/{what}");
        let world = &world;
        async move { world.bad(Method::POST, &path, Some(body)).await }
    };
    let unknown = json!({ "worker": "nobody" });
    assert_eq!(bad("poll", unknown).await, failure(409, "not_joined", "worker"));
    let body = json!({ "worker": "a b" });
    assert_eq!(bad("join", body).await, failure(400, "invalid", "worker"));
    let body = json!({ "worker": "w".repeat(101) });
    assert_eq!(bad("join", body).await, failure(413, "too_large", "worker"));
    assert_eq!(bad("join", json!({ "lease_ms": 5 })).await, failure(400, "invalid", "lease"));
    let elsewhere = world.bad(Method::POST, "/v1/topics/u/groups/g/join", Some(json!({}))).await;
    assert_eq!(elsewhere, failure(404, "not_found", "topic"));
    let (id, _) = join(&world, "w").await;
    let body = json!({ "worker": id, "max": 10_001 });
    assert_eq!(bad("poll", body).await, failure(400, "invalid", "max"));
    let body = json!({ "worker": id, "wait_ms": 60_001 });
    assert_eq!(bad("poll", body).await, failure(400, "invalid", "wait_ms"));
    let got = poll(&world, json!({ "worker": id })).await;
    let token = got["batches"][0]["token"].as_u64().unwrap();
    let at = |token: u64, next: u64| json!({ "worker": id, "partition": 0, "token": token, "next": next });
    assert_eq!(bad("checkpoint", at(token - 1, 1)).await, failure(409, "lease_lost", "token"));
    assert_eq!(bad("checkpoint", at(token, 9)).await, failure(400, "invalid", "checkpoint"));
    world.good(Method::DELETE, GROUP, None).await;
    assert_eq!(bad("poll", json!({ "worker": id })).await, failure(409, "not_joined", "worker"));
}

#[tokio::test]
async fn workers_that_do_not_poll_are_dropped_after_their_lease() {
    let world = world();
    topic(&world, 2, &["a"]).await;
    let (silent, _) = join(&world, "silent").await;
    let (lively, _) = join(&world, "lively").await;
    for _ in 0..3 {
        assert_eq!(world.api.members().len(), 2);
        world.clock.advance(Duration::from_secs(10));
        poll(&world, json!({ "worker": lively, "max": 0 })).await;
    }
    world.api.maintain().await;
    assert_eq!(world.api.members().len(), 1);
    let lag = world.get(GROUP).await;
    let workers = lag["workers"].as_array().unwrap();
    assert!(workers.len() == 1 && workers[0]["id"] == json!(lively), "{lag}");
    let path = format!("{GROUP}/poll");
    let gone = world.bad(Method::POST, &path, Some(json!({ "worker": silent }))).await;
    assert_eq!(gone, failure(409, "not_joined", "worker"));
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(payloads(&poll(&world, json!({ "worker": lively })).await), ["a"]);
    // The end of the server is the end of its workers.
    world.api.retire().await;
    assert_eq!(world.api.members().len(), 0);
    assert_eq!(world.get(GROUP).await["workers"], json!([]));
}

#[tokio::test]
async fn a_server_keeps_so_many_workers_and_no_more() {
    let world = world();
    topic(&world, 1, &[]).await;
    let topic = world.api.handles().topic("t").await.unwrap();
    let consumer = topic.consumer("g", ConsumerOptions::default()).await.unwrap();
    for n in 0..MEMBERS_MAX {
        let kept = world.api.members().keep("t", &n.to_string(), Puller::new(consumer.clone()));
        kept.unwrap();
    }
    let path = format!("{GROUP}/join");
    let full = world.bad(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(full, failure(503, "unavailable", ""));
    // Those who are silent make room.
    world.clock.advance(Duration::from_secs(30));
    join(&world, "w").await;
    assert_eq!(world.api.members().len(), 1);
}
