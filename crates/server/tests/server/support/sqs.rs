//! The protocol in its JSON encoding, by hand.

use serde_json::{Value, json};

use super::Server;
use super::http::{Answer, request};

/// One action.
pub fn call(server: &Server, action: &str, body: &Value) -> Answer {
    call_at(&server.address, action, body)
}

/// The same at an address.
pub fn call_at(address: &str, action: &str, body: &Value) -> Answer {
    let target = format!("AmazonSQS.{action}");
    let headers = [("Content-Type", "application/x-amz-json-1.0"), ("X-Amz-Target", &*target)];
    request(address, "POST", "/", &headers, &body.to_string())
}

/// One action that must succeed.
pub fn ok(server: &Server, action: &str, body: &Value) -> Value {
    let answer = call(server, action, body);
    assert_eq!(answer.status, 200, "{action}: {answer:?}");
    if answer.body.is_empty() { Value::Null } else { answer.json() }
}

/// A new queue's URL.
pub fn queue(server: &Server, name: &str) -> String {
    let made = ok(server, "CreateQueue", &json!({ "QueueName": name }));
    made["QueueUrl"].as_str().unwrap_or_else(|| panic!("no URL in {made}")).to_owned()
}

pub fn send(server: &Server, queue: &str, body: &str) {
    ok(server, "SendMessage", &json!({ "QueueUrl": queue, "MessageBody": body }));
}

/// The messages of one receive.
pub fn receive(server: &Server, queue: &str, wait: u64) -> Vec<Value> {
    let body = json!({ "QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": wait });
    let got = ok(server, "ReceiveMessage", &body);
    got["Messages"].as_array().cloned().unwrap_or_default()
}
