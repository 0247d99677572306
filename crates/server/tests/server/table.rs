//! The same server on a DynamoDB table.

use std::sync::Arc;

use crate::support::server::run;
use crate::support::{Server, get, sqs};

/// A DynamoDB engine inside this process: its address.
fn engine() -> (String, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let database = dynoxide::Database::memory().unwrap();
    runtime.spawn(async move {
        let _ = dynoxide::server::serve_on(listener, database).await;
    });
    (endpoint, runtime)
}

fn variables(endpoint: &str) -> [(&str, &str); 4] {
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
    let queue = sqs::queue(&one, "shared");
    for number in 0..10 {
        sqs::send(if number % 2 == 0 { &one } else { &two }, &queue, &number.to_string());
    }
    let metrics = get(&one.address, "/metrics").body;
    assert!(metrics.contains("millpond_store_requests_total{operation=\"write\"}"), "{metrics}");
    let first = sqs::receive(&one, &queue, 0).len();
    one.kill();
    let mut rest = 0;
    while first + rest < 10 {
        let got = sqs::receive(&two, &queue, 5).len();
        assert!(got > 0, "{first} before and {rest} after the death of 10");
        rest += got;
    }
}

#[test]
fn a_missing_table_is_named_with_what_to_do() {
    let (endpoint, _engine) = engine();
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", "dynamodb:nowhere"];
    let (well, said) = run(directory.path(), &arguments, &variables(&endpoint));
    assert!(!well && said.contains("nowhere"), "{said}");
}
