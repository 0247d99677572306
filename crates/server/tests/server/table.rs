//! The same server on a DynamoDB table.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::support::load::Load;
use crate::support::server::run;
use crate::support::{Server, eventually, get, sqs};

/// A DynamoDB engine inside this process: its address.
pub fn engine() -> (String, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let database = dynoxide::Database::memory().unwrap();
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let _ = dynoxide::server::serve_on(listener, database).await;
    });
    (endpoint, runtime)
}

/// What leads a server there.
pub fn variables(endpoint: &str) -> [(&str, &str); 4] {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "dummy"),
        ("AWS_SECRET_ACCESS_KEY", "dummy"),
        ("AWS_REGION", "us-east-1"),
    ]
}

#[test]
fn two_servers_share_the_queues_of_one_table_and_one_may_die() {
    let (endpoint, _engine) = engine();
    let start = |arguments: &[&str]| {
        let all = [&["--store", "dynamodb:queues"], arguments].concat();
        Server::start_with(Arc::new(tempfile::tempdir().unwrap()), &all, &variables(&endpoint))
    };
    let one = start(&["--create-table"]);
    let two = start(&[]);
    let made = json!({ "QueueName": "shared", "Attributes": { "VisibilityTimeout": "3" } });
    let queue = sqs::ok(&one, "CreateQueue", &made)["QueueUrl"].as_str().unwrap().to_owned();
    for number in 0..10 {
        sqs::send(if number % 2 == 0 { &one } else { &two }, &queue, &number.to_string());
    }
    let metrics = get(&one.address, "/metrics").body;
    assert!(metrics.contains("millpond_store_requests_total{operation=\"write\"}"), "{metrics}");
    // One takes some, and dies before it is done with them.
    assert!(!sqs::receive(&one, &queue, 5).is_empty());
    one.kill();
    let mut seen = BTreeSet::new();
    eventually("the other has all of them", || {
        for message in sqs::receive(&two, &queue, 1) {
            seen.insert(message["Body"].as_str().unwrap().to_owned());
            let handle = &message["ReceiptHandle"];
            sqs::ok(&two, "DeleteMessage", &json!({ "QueueUrl": queue, "ReceiptHandle": handle }));
        }
        seen.len() == 10
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_one_of_two_servers_is_killed_under_load() {
    let (endpoint, engine) = engine();
    let start = |arguments: &[&str]| {
        let all = [&["--log-level", "warn", "--store", "dynamodb:queues"], arguments].concat();
        Server::start_with(Arc::new(tempfile::tempdir().unwrap()), &all, &variables(&endpoint))
    };
    let (one, two) = (start(&["--create-table"]), start(&[]));
    let load = Load::default();
    let running = load.start(&[&one, &two]).await;
    load.until_sent(60).await;
    one.kill();
    load.until_sent(60).await;
    running.stop().await;
    load.check(&two).await;
    engine.shutdown_background();
}

#[test]
fn a_missing_table_is_named_with_what_to_do() {
    let (endpoint, _engine) = engine();
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", "dynamodb:nowhere"];
    let (well, said) = run(directory.path(), &arguments, &variables(&endpoint));
    assert!(!well && said.contains("nowhere"), "{said}");
}
