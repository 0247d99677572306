//! Whoever watches a request is told what it is about and where its time goes, and nothing of what messages say.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use millpond_lanes::Ground;
use millpond_sqs::{Part, Sqs, SqsOptions, Watch};
use millpond_store::{Environment, MemoryStore};
use serde_json::{Value, json};

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Watch for Notes {
    fn action(&self, name: &'static str) {
        self.note(format!("action {name}"));
    }

    fn queue(&self, name: &str) {
        self.note(format!("queue {name}"));
    }

    fn messages(&self, count: usize) {
        self.note(format!("messages {count}"));
    }

    fn trace_header(&self, header: &str) {
        self.note(format!("trace {header}"));
    }

    fn began(&self, part: Part) {
        self.note(format!("began {part:?}"));
    }

    fn ended(&self, part: Part) {
        self.note(format!("ended {part:?}"));
    }

    fn refused(&self, code: &'static str) {
        self.note(format!("refused {code}"));
    }

    fn carry(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.note("carry".to_owned());
        work
    }
}

async fn sqs() -> Sqs {
    let environment = Environment::system();
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    Sqs::open(&ground, SqsOptions::default()).await.unwrap()
}

/// What was told of a request.
async fn told(sqs: &Sqs, action: &str, body: &Value) -> Vec<String> {
    let notes = Arc::new(Notes::default());
    let watch: Arc<dyn Watch> = notes.clone();
    let request = Request::post("http://localhost/")
        .header("x-amz-target", format!("AmazonSQS.{action}"))
        .extension(watch)
        .body(Bytes::from(body.to_string()));
    sqs.handle(request.unwrap()).await;
    let notes = notes.0.lock().unwrap();
    notes.clone()
}

const URL: &str = "http://localhost/000000000000/orders";

#[tokio::test]
async fn a_watch_is_told_of_the_action_its_queue_its_messages_and_its_parts() {
    let sqs = sqs().await;
    let made = told(&sqs, "CreateQueue", &json!({ "QueueName": "orders" })).await;
    assert_eq!(made, ["action CreateQueue", "queue orders"]);

    let header = json!({ "AWSTraceHeader": { "DataType": "String", "StringValue": "Root=1-x" } });
    let one = json!({ "QueueUrl": URL, "MessageBody": "hush", "MessageSystemAttributes": header });
    let sent = told(&sqs, "SendMessage", &one).await;
    assert_eq!(sent, ["action SendMessage", "queue orders", "began Commit", "ended Commit"]);
    let entries =
        json!([{ "Id": "a", "MessageBody": "hush" }, { "Id": "b", "MessageBody": "hush" }]);
    let sent =
        told(&sqs, "SendMessageBatch", &json!({ "QueueUrl": URL, "Entries": entries })).await;
    let all =
        ["action SendMessageBatch", "queue orders", "messages 2", "began Commit", "ended Commit"];
    assert_eq!(sent, all);

    let ask = json!({ "QueueUrl": URL, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20 });
    let mut got = told(&sqs, "ReceiveMessage", &ask).await;
    let count = got.iter().position(|note| note.starts_with("messages ")).unwrap();
    assert_ne!(got.remove(count), "messages 0");
    let parts = ["began Wait", "carry", "ended Wait"];
    assert_eq!(
        got,
        [&["action ReceiveMessage", "queue orders"], &parts[..], &["trace Root=1-x"]].concat()
    );
    let ask = json!({ "QueueUrl": URL, "WaitTimeSeconds": 0 });
    let got = told(&sqs, "ReceiveMessage", &ask).await;
    assert!(!got.iter().any(|note| note.contains("Wait")), "{got:?}");
}

#[tokio::test]
async fn a_watch_is_told_of_refusals_and_not_of_queues_that_are_only_listed() {
    let sqs = sqs().await;
    let missing = told(&sqs, "ReceiveMessage", &json!({ "QueueUrl": URL })).await;
    assert_eq!(missing[..2], ["action ReceiveMessage", "queue orders"]);
    assert!(missing[2].starts_with("refused ") && missing[2].contains("Queue"), "{missing:?}");
    assert_eq!(told(&sqs, "Dance", &json!({})).await[0], "action Unknown");
    told(&sqs, "CreateQueue", &json!({ "QueueName": "orders" })).await;
    assert_eq!(told(&sqs, "ListQueues", &json!({})).await, ["action ListQueues"]);
}
