//! The log through the API.

use std::time::Duration;

use ::http::Method;
use serde_json::{Value, json};

use super::{World, failure, world};

async fn append(world: &World, records: Value) -> Vec<Value> {
    let answer = world.post("/v1/topics/t/records", json!({ "records": records })).await;
    answer["outcomes"].as_array().unwrap().clone()
}

#[tokio::test]
async fn records_come_back_in_order_with_key_and_headers() {
    let world = world();
    world.put("/v1/topics/t", json!({ "settings": { "partitions": 2 } })).await;
    let record = json!({
        "key": "k",
        "payload_base64": "/wA=",
        "headers": [{ "name": "via", "value": "web" }, { "name": "raw", "value_base64": "/w==" }],
    });
    let outcomes = append(&world, json!([record, { "key": "k", "payload": "second" }])).await;
    let partition = outcomes[0]["partition"].as_u64().unwrap();
    assert_eq!((&outcomes[0]["offset"], &outcomes[1]["offset"]), (&json!(0), &json!(1)));
    let read = world.get(&format!("/v1/topics/t/records?partition={partition}&max=1")).await;
    assert_eq!((&read["next"], &read["more"]), (&json!(1), &json!(true)));
    let got = &read["records"][0];
    assert_eq!((&got["key"], &got["payload_base64"]), (&json!("k"), &json!("/wA=")));
    assert_eq!(got["headers"][1], json!({ "name": "raw", "value_base64": "/w==" }));
    let rest = world.get(&format!("/v1/topics/t/records?partition={partition}&from=1")).await;
    assert_eq!(rest["records"][0]["payload"], "second");
}

#[tokio::test]
async fn a_read_waits_for_records_and_tells_of_gaps() {
    let world = world();
    let settings =
        json!({ "partitions": 1, "retention_age_ms": 1_000, "segment_bytes_max": 1_024 });
    world.put("/v1/topics/t", json!({ "settings": settings })).await;
    append(&world, json!([{ "payload": "old" }])).await;
    world.clock.advance(Duration::from_secs(10));
    append(&world, json!([{ "payload": "new" }])).await;
    assert_eq!(world.post("/v1/topics/t/trim", json!({})).await["records"], 1);
    let read = world.get("/v1/topics/t/records?partition=0&from=0").await;
    assert_eq!(
        (&read["gap"], &read["records"][0]["payload"]),
        (&json!({ "from": 0, "to": 1 }), &json!("new"))
    );
    let waited = world.get("/v1/topics/t/records?partition=0&from=2&wait_ms=2000").await;
    assert!(waited["records"].as_array().unwrap().is_empty());
    let (read, _) = tokio::join!(
        world.get("/v1/topics/t/records?partition=0&from=latest&wait_ms=60000"),
        append(&world, json!([{ "payload": "awaited" }])),
    );
    assert_eq!(read["records"][0]["payload"], "awaited");
    let behind = world.bad(Method::GET, "/v1/topics/t/records?partition=0&from=9", None).await;
    assert_eq!(behind, failure(416, "out_of_range", ""));
}

#[tokio::test]
async fn batches_to_one_partition_are_fenced_and_sent_once() {
    let world = world();
    world.put("/v1/topics/t", json!({ "settings": { "partitions": 1 } })).await;
    let batch = |fence: u64, first: u64| {
        json!({
            "records": [{ "payload": "x" }], "partition": 0, "fence": fence,
            "producer": "p", "first_sequence": first,
        })
    };
    let path = "/v1/topics/t/records";
    assert_eq!(world.post(path, batch(2, 0)).await["outcomes"][0]["offset"], 0);
    let again = world.post(path, batch(2, 0)).await;
    assert_eq!(
        (&again["outcomes"][0]["offset"], &again["outcomes"][0]["duplicate"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(world.bad(Method::POST, path, Some(batch(1, 1))).await, failure(409, "fenced", ""));
    let gap = world.bad(Method::POST, path, Some(batch(2, 5))).await;
    assert_eq!(gap, failure(409, "out_of_sequence", ""));
    let lone = json!({ "records": [{ "payload": "x" }], "fence": 1 });
    assert_eq!(
        world.bad(Method::POST, path, Some(lone)).await,
        failure(400, "invalid", "partition")
    );
}

#[tokio::test]
async fn groups_are_made_moved_and_forgotten() {
    let world = world();
    world.put("/v1/topics/t", json!({ "settings": { "partitions": 1 } })).await;
    append(&world, json!([{ "payload": "a" }, { "payload": "b" }])).await;
    let group = "/v1/topics/t/groups/g";
    let made = world.put(group, json!({ "attempts_max": 3, "dead_letter_topic": "dead" })).await;
    assert_eq!((&made["lag"], &made["attempts_max"]), (&json!(2), &json!(3)));
    let moved = world.post(&format!("{group}/reset"), json!({ "to": "1", "partition": 0 })).await;
    assert_eq!((&moved["lag"], &moved["partitions"][0]["checkpoint"]), (&json!(1), &json!(1)));
    assert_eq!(world.post(&format!("{group}/skip-to-end"), json!({})).await["lag"], 0);
    let listed = world.get("/v1/topics/t/groups").await;
    assert_eq!(listed["groups"][0], json!({ "name": "g", "lag": 0, "workers": 0 }));
    let blocking = world.good(Method::PATCH, group, Some(json!({}))).await;
    assert_eq!(blocking.get("attempts_max"), None);
    world.good(Method::DELETE, group, None).await;
    assert_eq!(world.bad(Method::GET, group, None).await, failure(404, "not_found", "group"));
}

#[tokio::test]
async fn topics_are_configured_grown_and_deleted() {
    let world = world();
    world.put("/v1/topics/t", json!({ "settings": { "partitions": 1 } })).await;
    let other = json!({ "settings": { "partitions": 2 } });
    assert_eq!(world.bad(Method::PUT, "/v1/topics/t", Some(other)).await.1, "exists");
    let patch = json!({ "settings": { "retention_bytes": 1_000_000, "linger_ms": 7 } });
    let changed = world.good(Method::PATCH, "/v1/topics/t", Some(patch)).await;
    assert_eq!(changed["settings"]["retention_bytes"], 1_000_000);
    let unset = json!({ "settings": { "retention_bytes": null } });
    let changed = world.good(Method::PATCH, "/v1/topics/t", Some(unset)).await;
    assert!(changed["settings"]["retention_bytes"].is_null());
    assert_eq!(changed["settings"]["linger_ms"], 7);
    let grown = world.post("/v1/topics/t/grow", json!({ "partitions": 3 })).await;
    assert_eq!(grown["partitions"].as_array().unwrap().len(), 3);
    assert_eq!(world.get("/v1/topics/t/offset?partition=2&at=latest").await["offset"], 0);
    assert_eq!(world.get("/v1/topics").await["topics"], json!(["t"]));
    world.good(Method::DELETE, "/v1/topics/t", None).await;
    assert_eq!(
        world.bad(Method::GET, "/v1/topics/t", None).await,
        failure(404, "not_found", "topic")
    );
    let sweep = world.bad(Method::POST, "/v1/topics/t/sweep", Some(json!({}))).await;
    assert_eq!(sweep.1, "not_found");
}
