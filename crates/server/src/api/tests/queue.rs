//! Queues through the API.

use std::time::Duration;

use ::http::Method;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{World, failure, world};

async fn receive(world: &World, queue: &str, body: Value) -> Vec<Value> {
    let answer = world.post(&format!("/v1/queues/{queue}/receive"), body).await;
    answer["messages"].as_array().unwrap().clone()
}

async fn send(world: &World, queue: &str, bodies: &[&str]) -> Vec<Value> {
    let messages: Vec<Value> = bodies.iter().map(|body| json!({ "body": body })).collect();
    let path = format!("/v1/queues/{queue}/messages");
    let answer = world.post(&path, json!({ "messages": messages })).await;
    answer["outcomes"].as_array().unwrap().clone()
}

#[tokio::test]
async fn messages_come_back_with_everything_that_was_said() {
    let world = world();
    world.put("/v1/queues/q", json!({ "config": { "priorities": 3 } })).await;
    let message = json!({
        "body_base64": "/wA=",
        "attributes": {
            "plain": "text",
            "size": { "type": "number", "value": "3", "label": "int" },
            "raw": { "type": "binary", "value": "AAE=" },
        },
        "group": "g",
        "priority": 2,
        "trace": "t",
    });
    let sent =
        world.post("/v1/queues/q/messages?client=a%2Fb", json!({ "messages": [message] })).await;
    let id = sent["outcomes"][0]["id"].as_str().unwrap().to_owned();
    let got = &receive(&world, "q", json!({})).await;
    assert!(got.is_empty(), "the main client sees nothing of another: {got:?}");
    let answer = world.post("/v1/queues/q/receive?client=a%2Fb", json!({ "max": 10 })).await;
    let got = &answer["messages"][0];
    assert_eq!((&got["id"], &got["body_base64"]), (&json!(id), &json!("/wA=")));
    assert_eq!(got["attributes"]["plain"], json!({ "type": "string", "value": "text" }));
    assert_eq!(got["attributes"]["size"]["label"], "int");
    assert_eq!(got["attributes"]["raw"]["value"], "AAE=");
    assert_eq!(
        (&got["group"], &got["priority"], &got["trace"]),
        (&json!("g"), &json!(2), &json!("t"))
    );
    let peeked = world.get(&format!("/v1/queues/q/messages/{id}?client=a%2Fb")).await;
    assert_eq!((&peeked["state"], peeked.get("receipt")), (&json!("leased"), None));
    let described = world.get("/v1/queues/q").await;
    assert_eq!(described["clients"][0]["client"], "a/b");
    assert_eq!(described["clients"][0]["count"]["leased"], 1);
}

#[tokio::test]
async fn each_entry_of_a_batch_has_its_own_outcome() {
    let world = world();
    world.put("/v1/queues/q", json!({ "config": { "message_bytes_max": 4 } })).await;
    let messages = json!([{ "body": "good" }, { "body": "too long" }, {}, { "body": "fine" }]);
    let answer = world.post("/v1/queues/q/messages", json!({ "messages": messages })).await;
    let outcomes = answer["outcomes"].as_array().unwrap();
    let codes: Vec<Option<&str>> = outcomes.iter().map(|o| o["error"]["code"].as_str()).collect();
    assert_eq!(codes, [None, Some("too_large"), Some("invalid"), None]);
    let got = receive(&world, "q", json!({ "max": 10 })).await;
    assert_eq!(got.len(), 2);
    let receipts = json!({ "receipts": [got[0]["receipt"], "forged", got[1]["receipt"]] });
    let acked = world.post("/v1/queues/q/ack", receipts.clone()).await;
    assert_eq!(acked["outcomes"][0]["settled"], "now");
    assert_eq!(acked["outcomes"][1]["error"]["code"], "receipt_invalid");
    assert_eq!(world.post("/v1/queues/q/ack", receipts).await["outcomes"][2]["settled"], "already");
}

#[tokio::test]
async fn leases_are_extended_given_back_and_lost() {
    let world = world();
    world.put("/v1/queues/q", json!({ "config": { "visibility": 1_000 } })).await;
    send(&world, "q", &["a"]).await;
    let first = receive(&world, "q", json!({})).await.remove(0);
    let receipt = json!({ "receipts": [first["receipt"]] });
    let extend = json!({ "receipts": [first["receipt"]], "visibility_ms": 5_000 });
    assert_eq!(world.post("/v1/queues/q/extend", extend).await["outcomes"][0]["settled"], "now");
    world.clock.advance(Duration::from_secs(2));
    assert!(receive(&world, "q", json!({})).await.is_empty());
    world.post("/v1/queues/q/release", receipt.clone()).await;
    let second = receive(&world, "q", json!({ "visibility_ms": 60_000 })).await.remove(0);
    assert_eq!(second["receives"], 2);
    let late = world.post("/v1/queues/q/ack", receipt).await;
    assert_eq!(late["outcomes"][0]["error"]["code"], "lease_lost");
    let nack = json!({ "receipts": [second["receipt"]], "error": "no stock", "delay_ms": 3_000 });
    world.post("/v1/queues/q/nack", nack).await;
    let count = world.get("/v1/queues/q/count").await;
    assert_eq!((&count["delayed"], &count["totals"]["nacked"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn a_receive_waits_for_a_message_and_ends_when_told_to() {
    let world = world();
    world.put("/v1/queues/q", json!({})).await;
    send(&world, "q", &["later"]).await;
    let delayed = json!({ "messages": [{ "body": "delayed", "delay_ms": 5_000 }] });
    receive(&world, "q", json!({ "visibility_ms": 3_600_000 })).await;
    world.post("/v1/queues/q/messages", delayed).await;
    let got = receive(&world, "q", json!({ "wait_ms": 20_000 })).await;
    assert_eq!(got[0]["body"], "delayed", "virtual time ran on to its delay");
    world.api.close();
    assert!(receive(&world, "q", json!({ "wait_ms": 60_000 })).await.is_empty());
}

#[tokio::test]
async fn what_is_claimed_for_a_caller_that_is_gone_is_given_back() {
    let world = world();
    world.put("/v1/queues/q", json!({ "config": { "visibility": 3_600_000 } })).await;
    send(&world, "q", &["a"]).await;
    let request =
        ::http::Request::post("/v1/queues/q/receive").header("content-type", "application/json");
    let request = request.body(Bytes::from("{}")).unwrap();
    let call = world.api.handle(request);
    // The call has begun, and nobody waits for it.
    let waited = futures::poll!(Box::pin(call));
    assert!(waited.is_pending());
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let got = receive(&world, "q", json!({})).await;
    assert_eq!(got.len(), 1, "the message waits again although its lease would be an hour long");
    assert_eq!(got[0]["receives"], 1, "what nobody got does not count");
}

#[tokio::test]
async fn dead_letters_are_listed_and_brought_back() {
    let world = world();
    world.put("/v1/queues/dead", json!({})).await;
    let dead = json!({ "dead_letters": { "queue": "dead", "receives_max": 1 } });
    world.put("/v1/queues/q", json!({ "config": dead })).await;
    send(&world, "q", &["poison"]).await;
    let got = receive(&world, "q", json!({})).await.remove(0);
    let nack = json!({ "receipts": [got["receipt"]], "error": "boom" });
    world.post("/v1/queues/q/nack", nack).await;
    let letters = world.get("/v1/queues/q/dead-letters").await;
    assert_eq!(letters["messages"][0]["origin"]["error"], "boom");
    assert_eq!(letters["messages"][0]["origin"]["reason"], "receive_limit");
    let moved = world.post("/v1/queues/dead/redrive", json!({})).await;
    assert_eq!(moved, json!({ "moved": 1, "homeless": 0 }));
    assert_eq!(receive(&world, "q", json!({})).await[0]["body"], "poison");
    let none = world.bad(Method::GET, "/v1/queues/dead/dead-letters", None).await;
    assert_eq!(none, failure(400, "invalid", "queue"));
}

#[tokio::test]
async fn tasks_keep_their_status() {
    let world = world();
    world.put("/v1/queues/q", json!({ "config": { "status": { "keep": 60_000 } } })).await;
    let sent = send(&world, "q", &["one", "two"]).await;
    let got = receive(&world, "q", json!({ "worker": "w1" })).await.remove(0);
    let finish = json!({ "receipt": got["receipt"], "success": true, "result": "42" });
    world.post("/v1/queues/q/finish", finish).await;
    let id = sent[0]["id"].as_str().unwrap();
    let task = world.get(&format!("/v1/queues/q/tasks/{id}")).await;
    assert_eq!((&task["state"], &task["result"]), (&json!("success"), &json!("42")));
    let pending = world.get("/v1/queues/q/tasks?state=pending").await;
    assert_eq!(pending["tasks"].as_array().unwrap().len(), 1);
    let unknown = format!("/v1/queues/q/tasks/{}", id.replace(&id[..4], "0000"));
    assert_eq!(world.bad(Method::GET, &unknown, None).await, failure(404, "not_found", "id"));
}

#[tokio::test]
async fn configurations_are_patched_and_conflicts_said() {
    let world = world();
    world.put("/v1/queues/q", json!({ "config": { "order": "lifo", "visibility": 5_000 } })).await;
    let other = world.bad(Method::PUT, "/v1/queues/q", Some(json!({}))).await;
    assert_eq!(other, failure(409, "exists", "order"));
    let patch = json!({ "config": { "order": "fifo", "status": { "keep": 1_000 } } });
    let changed = world.good(Method::PATCH, "/v1/queues/q", Some(patch)).await;
    assert_eq!(
        (&changed["config"]["order"], &changed["config"]["visibility"]),
        (&json!("fifo"), &json!(5_000))
    );
    let unset = json!({ "config": { "status": null } });
    let changed = world.good(Method::PATCH, "/v1/queues/q", Some(unset)).await;
    assert!(changed["config"]["status"].is_null());
    let fixed =
        world.bad(Method::PATCH, "/v1/queues/q", Some(json!({ "config": { "lanes": 2 } }))).await;
    assert_eq!(fixed, failure(400, "invalid", "lanes"));
    world.good(Method::DELETE, "/v1/queues/q", None).await;
    assert_eq!(world.bad(Method::GET, "/v1/queues/q", None).await.1, "not_found");
    // A queue of the same name is another one, also for handles that are kept.
    world.put("/v1/queues/q", json!({})).await;
    send(&world, "q", &["new"]).await;
    assert_eq!(receive(&world, "q", json!({})).await.len(), 1);
}

#[tokio::test]
async fn topics_send_to_each_of_their_queues() {
    let world = world();
    for queue in ["a", "b"] {
        world.put(&format!("/v1/queues/{queue}"), json!({})).await;
    }
    world.put("/v1/queue-topics/t", json!({ "queues": ["a", "b"] })).await;
    assert_eq!(world.get("/v1/queue-topics").await["topics"], json!(["t"]));
    assert_eq!(world.get("/v1/queue-topics/t").await["queues"], json!(["a", "b"]));
    let sent =
        world.post("/v1/queue-topics/t/messages", json!({ "message": { "body": "hello" } })).await;
    assert_eq!(sent["outcomes"].as_array().unwrap().len(), 2);
    for queue in ["a", "b"] {
        assert_eq!(receive(&world, queue, json!({})).await[0]["body"], "hello");
    }
    world.good(Method::DELETE, "/v1/queue-topics/t", None).await;
    assert_eq!(world.bad(Method::GET, "/v1/queue-topics/t", None).await.0, 404);
}

#[tokio::test]
async fn blocked_groups_go_on_and_old_messages_are_shed() {
    let world = world();
    world.put("/v1/queues/dead", json!({ "config": { "strict": {} } })).await;
    let config = json!({
        "strict": { "poison": "block" },
        "dead_letters": { "queue": "dead", "receives_max": 1 },
    });
    world.put("/v1/queues/s", json!({ "config": config })).await;
    let messages = json!([{ "body": "1", "group": "g" }, { "body": "2", "group": "g" }]);
    world.post("/v1/queues/s/messages", json!({ "messages": messages })).await;
    let got = receive(&world, "s", json!({})).await.remove(0);
    world.post("/v1/queues/s/nack", json!({ "receipts": [got["receipt"]] })).await;
    assert!(receive(&world, "s", json!({})).await.is_empty());
    assert_eq!(world.post("/v1/queues/s/unblock", json!({ "group": "g" })).await["held"], 1);
    assert_eq!(receive(&world, "s", json!({})).await[0]["body"], "1");

    world.put("/v1/queues/q", json!({ "config": { "shedding": { "age_max": 1_000 } } })).await;
    send(&world, "q", &["old"]).await;
    world.clock.advance(Duration::from_secs(5));
    send(&world, "q", &["new"]).await;
    world.post("/v1/queues/q/maintain", json!({})).await;
    assert_eq!(receive(&world, "q", json!({ "max": 10 })).await[0]["body"], "new");
    assert_eq!(world.get("/v1/queues/q/count").await["totals"]["shed_age"], 1);
    assert_eq!(world.post("/v1/queues/q/purge", json!({})).await["removed"], 1);
}
