//! The sequencer through the API.

use std::time::Duration;

use ::http::Method;
use serde_json::{Value, json};

use super::{World, failure, world};

const QUEUE: &str = "/v1/sequencers/main/queues/orders%2F7";

async fn put(world: &World, seqs: &[u64]) -> Value {
    let message =
        |seq: &u64| json!({ "queue": "orders/7", "seq": seq, "payload": format!("m{seq}") });
    let messages: Vec<Value> = seqs.iter().map(message).collect();
    world.post("/v1/sequencers/main/messages", json!({ "messages": messages })).await
}

#[tokio::test]
async fn messages_are_put_in_any_order_and_read_in_order() {
    let world = world();
    assert_eq!(world.bad(Method::GET, QUEUE, None).await, failure(404, "not_found", "queue"));
    let first = put(&world, &[2, 1]).await;
    assert_eq!(
        (&first["advanced"], &first["outcomes"][0]["arrival"]),
        (&json!([]), &json!("stored"))
    );
    let missing = world.get(&format!("{QUEUE}/missing")).await;
    assert_eq!(missing["missing"], json!([{ "first": 0, "next": 1 }]));
    let pending = world.get(&format!("{QUEUE}/pending")).await;
    assert_eq!((&pending["count"], &pending["runs"][0]["first"]), (&json!(2), &json!(1)));
    let passed = put(&world, &[0]).await;
    assert_eq!(passed["advanced"], json!([{ "queue": "orders/7", "first": 0, "next": 3 }]));
    let read = world.get(&format!("{QUEUE}/messages?max=2")).await;
    let payloads: Vec<&Value> =
        read["messages"].as_array().unwrap().iter().map(|m| &m["payload"]).collect();
    assert_eq!((payloads, &read["next"]), (vec![&json!("m0"), &json!("m1")], &json!(2)));
    assert_eq!(world.get("/v1/sequencers/main/queues").await["queues"], json!(["orders/7"]));
    let other = json!({ "messages": [{ "queue": "orders/7", "seq": 1, "payload": "other" }] });
    let conflict = world.post("/v1/sequencers/main/messages", other).await;
    assert_eq!(conflict["outcomes"][0]["error"]["code"], "conflict");
    let beyond = world.bad(Method::GET, &format!("{QUEUE}/messages?first=2&next=9"), None).await;
    assert_eq!(beyond, failure(416, "out_of_range", ""));
}

#[tokio::test]
async fn ranges_are_told_once_each_and_awaited() {
    let world = world();
    put(&world, &[0, 1]).await;
    let first = world.get(&format!("{QUEUE}/ranges?from=start")).await;
    assert_eq!(
        (&first["passed"], &first["next"]),
        (&json!({ "first": 0, "next": 2 }), &json!("2"))
    );
    let none = world.get(&format!("{QUEUE}/ranges?from=2&wait_ms=1500")).await;
    assert_eq!((none.get("passed"), &none["next"]), (None, &json!("2")));
    let now = world.get(&format!("{QUEUE}/ranges")).await;
    let said = (now.get("passed"), &now["next"]);
    assert_eq!(said, (None, &json!("2")), "from now on is from where the cursor is");
    let path = format!("{QUEUE}/ranges?from=2&wait_ms=60000");
    let (told, _) = tokio::join!(world.get(&path), put(&world, &[2]));
    assert_eq!(told["passed"], json!({ "first": 2, "next": 3 }));
}

#[tokio::test]
async fn settings_are_stored_and_hold_for_gaps_and_late_arrivals() {
    let world = world();
    let settings = json!({ "gaps": "skip_after", "gaps_after_ms": 1_000, "late": "side_queue" });
    world.put("/v1/sequencers/main", json!({ "settings": settings })).await;
    assert_eq!(world.get("/v1/sequencers").await["sequencers"], json!(["main"]));
    assert_eq!(world.get("/v1/sequencers/main").await["settings"], settings);
    put(&world, &[0, 2]).await;
    world.clock.advance(Duration::from_secs(5));
    let swept = world.post("/v1/sequencers/main/sweep", json!({ "all": true })).await;
    assert_eq!(swept["skipped"], json!([{ "queue": "orders/7", "first": 1, "next": 2 }]));
    let read = world.get(&format!("{QUEUE}/messages")).await;
    assert_eq!(
        (&read["messages"][1]["gap_next"], &read["messages"][1]["gap_reason"]),
        (&json!(2), &json!("timeout"))
    );
    assert_eq!(put(&world, &[1]).await["outcomes"][0]["arrival"], "kept_aside");
    assert_eq!(world.get(&format!("{QUEUE}/late")).await["messages"][0]["payload"], "m1");
    let half = json!({ "settings": { "gaps": "park_after" } });
    let half = world.bad(Method::PUT, "/v1/sequencers/main", Some(half)).await;
    assert_eq!(half, failure(400, "invalid", "gaps_after_ms"));
    let reserved = world.bad(Method::GET, "/v1/sequencers/log/queues", None).await;
    assert_eq!(reserved, failure(400, "invalid", "sequencer"));
}

#[tokio::test]
async fn queues_are_moved_by_hand_and_readers_keep_their_place() {
    let world = world();
    put(&world, &[0, 1, 5]).await;
    let denied = json!({ "first": 2, "next": 5 });
    let denied = world.bad(Method::POST, &format!("{QUEUE}/declare-gap"), Some(denied)).await;
    assert_eq!(denied, failure(409, "not_allowed", ""));
    let skipped = world.post(&format!("{QUEUE}/skip"), json!({ "to": 5 })).await;
    assert_eq!(skipped["passed"], json!({ "first": 2, "next": 6 }));
    let reader = format!("{QUEUE}/readers/r");
    assert_eq!(world.get(&format!("{reader}/messages?max=1")).await["messages"][0]["seq"], 0);
    assert_eq!(world.post(&format!("{reader}/commit"), json!({ "next": 2 })).await["next"], 2);
    assert_eq!(world.post(&format!("{reader}/commit"), json!({ "next": 1 })).await["next"], 2);
    assert_eq!(world.post(&format!("{reader}/seek"), json!({ "next": 1 })).await["next"], 1);
    let readers = world.get(&format!("{QUEUE}/readers")).await;
    assert_eq!(readers["readers"], json!([{ "reader": "r", "next": 1 }]));
    world.post(&format!("{QUEUE}/rewind"), json!({ "to": 0 })).await;
    assert_eq!(world.get(QUEUE).await["epoch"], 1);
    let trimmed = world.post(&format!("{QUEUE}/trim"), json!({ "to": 2 })).await;
    assert_eq!((&trimmed["floor"], &trimmed["removed"]), (&json!(2), &json!(2)));
    world.post(&format!("{QUEUE}/reset"), json!({ "to": 100 })).await;
    let cursor = world.get(QUEUE).await;
    assert_eq!((&cursor["next"], &cursor["life"]), (&json!(100), &json!(1)));
}
