//! Whole exchanges, request and answer, as they are on the wire: errors that need some preparation.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{
    Answer, World, answer_text, arn, compare, form_request, json_request, redrive,
};
use crate::signature::{TIME, guarded, sign};
use bytes::Bytes;
use http::Request;
use millpond_sqs::SqsOptions;
use millpond_store::{Fault, FaultPlan};
use serde_json::{Value, json};

const URL: &str = "http://queue.test:9324/000000000000/q";

/// A request as it is on the wire; what is long and all the same is shortened.
fn request_text(request: &Request<Bytes>) -> String {
    let mut text = format!("> {} {}\n", request.method(), request.uri().path());
    for (name, value) in request.headers() {
        text.push_str(&format!("> {name}: {}\n", value.to_str().unwrap()));
    }
    let body = String::from_utf8(request.body().to_vec()).unwrap();
    let long = "x".repeat(110_000);
    text.push_str(&format!(">\n> {}\n", body.replace(&long, "(110,000 times x)")));
    text
}

/// Sends a request and compares both with a file. What is different each time is given, and what stands for it.
async fn exchange(
    world: &World,
    name: &str,
    request: Request<Bytes>,
    hide: &[(&str, &str)],
) -> Answer {
    let mut seen = request_text(&request);
    let answer = world.raw(request).await;
    seen.push_str(&answer_text(&answer));
    for (value, stands_for) in hide {
        seen = seen.replace(value, stands_for);
    }
    compare(&format!("exchanges/{name}"), &seen);
    answer
}

/// The same action in both encodings.
async fn both(world: &World, name: &str, action: &str, json: Value, form: &[(&str, &str)]) {
    let mut all = vec![("Action", action), ("Version", "2012-11-05")];
    all.extend(form);
    exchange(world, &format!("{name}.json"), json_request(action, &json), &[]).await;
    exchange(world, &format!("{name}.xml"), form_request("/", &all), &[]).await;
}

/// A batch with these ids and bodies, in both encodings.
async fn batch(world: &World, name: &str, entries: &[(String, String)]) {
    let list: Vec<Value> =
        entries.iter().map(|(id, body)| json!({"Id": id, "MessageBody": body})).collect();
    let mut form = vec![("QueueUrl".to_owned(), URL.to_owned())];
    for (number, (id, body)) in (1..).zip(entries) {
        form.push((format!("SendMessageBatchRequestEntry.{number}.Id"), id.clone()));
        form.push((format!("SendMessageBatchRequestEntry.{number}.MessageBody"), body.clone()));
    }
    let form: Vec<(&str, &str)> = form.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let json = json!({"QueueUrl": URL, "Entries": list});
    both(world, name, "SendMessageBatch", json, &form).await;
}

#[tokio::test]
async fn batches_that_are_wrong_as_a_whole() {
    let world = World::new().await;
    world.queue("q").await;
    let entries = |ids: &[&str], body: &str| -> Vec<(String, String)> {
        ids.iter().map(|id| ((*id).to_owned(), body.to_owned())).collect()
    };
    let ids: Vec<String> = (0..11).map(|n| format!("e{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    batch(&world, "too_many_entries", &entries(&ids, "b")).await;
    batch(&world, "ids_not_distinct", &entries(&["a", "b", "a"], "b")).await;
    batch(&world, "entry_id", &entries(&["a b"], "b")).await;
    batch(&world, "batch_too_long", &entries(&ids[..10], &"x".repeat(110_000))).await;
}

#[tokio::test]
async fn limits_and_rules() {
    let world = World::new().await;
    world.queue("q").await;
    let actions = [
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "ChangeMessageVisibility",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListQueues",
        "PurgeQueue",
    ];
    let json = json!({
        "QueueUrl": URL, "Label": "l", "AWSAccountIds": ["111111111111"], "Actions": actions,
    });
    let names: Vec<String> = (1..=8).map(|n| format!("ActionName.{n}")).collect();
    let mut form = vec![("QueueUrl", URL), ("Label", "l"), ("AWSAccountId.1", "111111111111")];
    form.extend(names.iter().map(String::as_str).zip(actions));
    both(&world, "over_limit", "AddPermission", json, &form).await;
    world.json("DeleteQueue", json!({"QueueUrl": URL})).await;
    let form = [("QueueName", "q")];
    both(&world, "deleted_recently", "CreateQueue", json!({"QueueName": "q"}), &form).await;
}

#[tokio::test]
async fn a_task_that_has_ended_cannot_be_cancelled() {
    let world = World::new().await;
    world.queue("dead").await;
    world.create("q", json!({"RedrivePolicy": redrive("dead", 1)})).await;
    let started = world.json("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await;
    world.settle().await;
    let handle = started["TaskHandle"].as_str().unwrap();
    let hide = [(handle, "TASK-HANDLE")];
    let json = json_request("CancelMessageMoveTask", &json!({"TaskHandle": handle}));
    exchange(&world, "unsupported.json", json, &hide).await;
    let form = [("Action", "CancelMessageMoveTask"), ("TaskHandle", handle)];
    exchange(&world, "unsupported.xml", form_request("/", &form), &hide).await;
}

#[tokio::test]
async fn what_a_key_may_not_do() {
    let world = guarded().await;
    let signed = |request| sign(request, "LIMITED", "secret", "us-east-1", TIME);
    let json = signed(json_request("PurgeQueue", &json!({"QueueUrl": URL})));
    exchange(&world, "denied.json", json, &[]).await;
    let form = signed(form_request("/", &[("Action", "PurgeQueue"), ("QueueUrl", URL)]));
    exchange(&world, "denied.xml", form, &[]).await;
}

#[tokio::test]
async fn a_store_that_fails() {
    let (world, store) = World::new().await.failing_node(SqsOptions::default()).await;
    let faults = || FaultPlan::once(0, Fault::Definite);
    let json = json_request("GetQueueUrl", &json!({"QueueName": "q"}));
    store.follow(faults());
    assert_eq!(exchange(&world, "unavailable.json", json, &[]).await.status, 503);
    let form = form_request("/", &[("Action", "GetQueueUrl"), ("QueueName", "q")]);
    store.follow(faults());
    assert_eq!(exchange(&world, "unavailable.xml", form, &[]).await.status, 503);
}
