//! A clock that tests can move.

use std::time::Duration;

use serde_json::json;

use crate::support::server::run;
use crate::support::{Server, get, post, sqs};

#[test]
fn moving_the_clock_makes_a_message_visible_again_at_once() {
    let server = Server::start(&["--test-clock"]);
    assert!(server.said.contains("/test-clock/advance"), "{}", server.said);
    let queue = sqs::queue(&server, "clocked");
    sqs::send(&server, &queue, "one");
    assert_eq!(sqs::receive(&server, &queue, 0).len(), 1);
    assert_eq!(sqs::receive(&server, &queue, 0).len(), 0, "it is leased");
    let moved = post(&server.address, "/test-clock/advance", "{\"seconds\": 31}");
    assert_eq!(moved.status, 200, "{moved:?}");
    assert_eq!(moved.json()["ahead_seconds"], json!(31.0));
    assert_eq!(sqs::receive(&server, &queue, 0).len(), 1, "its lease is over");
}

#[test]
fn moving_the_clock_wakes_a_receive_that_waits_for_a_delayed_message() {
    let server = Server::start(&["--test-clock"]);
    let queue = sqs::queue(&server, "delayed");
    let body = json!({ "QueueUrl": queue, "MessageBody": "later", "DelaySeconds": 600 });
    sqs::ok(&server, "SendMessage", &body);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sqs::receive(&server, &queue, 20));
        while get(&server.address, "/metrics").body.contains("sqs_receives_waiting 0") {
            std::thread::sleep(Duration::from_millis(10));
        }
        post(&server.address, "/test-clock/advance", "{\"seconds\": 600.5}");
        // It may be that its 20 seconds were over before the message was looked for.
        let got = waiting.join().unwrap().len() + sqs::receive(&server, &queue, 0).len();
        assert_eq!(got, 1);
    });
}

#[test]
fn the_clock_stands_firm_without_the_flag_and_refuses_nonsense_with_it() {
    let server = Server::start(&[]);
    let answer = post(&server.address, "/test-clock/advance", "{\"seconds\": 1}");
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("--test-clock"), "{answer:?}");

    let server = Server::start(&["--test-clock"]);
    for body in
        ["", "{}", "{\"seconds\": -1}", "{\"seconds\": 1e300}", "{\"seconds\": 1, \"x\": 1}"]
    {
        let answer = post(&server.address, "/test-clock/advance", body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.json()["error"].is_string());
    }
    assert_eq!(get(&server.address, "/test-clock").json()["ahead_seconds"], json!(0.0));

    let elsewhere = tempfile::tempdir().unwrap();
    let arguments =
        ["serve", "--listen", "0.0.0.0:0", "--insecure-allow-anonymous", "--test-clock"];
    let (well, said) = run(elsewhere.path(), &arguments, &[]);
    assert!(!well && said.contains("test_clock") && said.contains("loopback"), "{said}");
}
