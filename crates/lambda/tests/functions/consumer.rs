//! The stream consumer, batch by batch.

use std::time::Duration;

use serde_json::json;

use crate::support::engine::Engine;
use crate::support::events::{kinesis, kinesis_record, sequence};
use crate::support::function::Start;
use crate::support::runtime_api::RuntimeApi;
use crate::trial::{Notes, fine, told};

const TIME: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_ready_consumer_sends_messages_on_and_unusable_records_to_the_dead_letters() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let _function = Start::binary(env!("CARGO_BIN_EXE_stream-consumer"))
        .store(&engine.endpoint())
        .set("MILLPOND_FORWARD_QUEUE", "orders")
        .start(&api);
    let mut event = kinesis(1, &[json!({ "order": 1 }), json!({ "order": 2 })]);
    let arn = event["Records"][0]["eventSourceARN"].as_str().unwrap().to_owned();
    let bad = kinesis_record(&arn, &sequence(3), "key", b"this is not JSON");
    event["Records"].as_array_mut().unwrap().push(bad);
    let answer = api.invoke(&event, TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());
    let mut sent = engine.bodies("orders").await;
    sent.sort();
    assert_eq!(sent, [r#"{"order":1}"#, r#"{"order":2}"#]);
    let letters = engine.letters().await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason.name(), "unusable");
    assert_eq!(letters[0].record.as_deref(), Some(sequence(3).as_str()));
    assert_eq!(letters[0].consumer, "under-test", "the function's name is the consumer's");

    // The same process goes on with the next event.
    let next = api.invoke(&kinesis(4, &[json!({ "order": 4 })]), TIME).await;
    assert_eq!(next.failures(), Vec::<String>::new());
    assert_eq!(engine.bodies("orders").await.len(), 3);
    let empty = api.invoke(&json!({ "Records": [] }), TIME).await;
    assert_eq!(empty.failures(), Vec::<String>::new());
}

#[tokio::test]
async fn a_partial_batch_response_names_the_lowest_unfinished_and_only_that_runs_again() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let _function = notes.start("trial::consumer_function").store(&engine.endpoint()).start(&api);
    let messages = [fine(1), told(2, "fail once"), fine(3), told(4, "reject")];
    let answer = api.invoke(&kinesis(1, &messages), TIME).await;
    assert_eq!(answer.failures(), [sequence(2)]);
    assert_eq!(engine.letters().await.len(), 1, "the rejected one is dead in the same run");

    // Lambda delivers again from there on.
    let answer = api.invoke(&kinesis(2, &messages[1..]), TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());
    let calls: Vec<_> = (1..=4).map(|n| notes.count(n)).collect();
    assert_eq!(calls, [1, 2, 1, 1]);
    assert_eq!(engine.letters().await.len(), 1);
}

#[tokio::test]
async fn with_errors_instead_of_partial_responses_the_invocation_fails() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let _function = notes
        .start("trial::consumer_function")
        .store(&engine.endpoint())
        .set("MILLPOND_RESPONSES", "error")
        .start(&api);
    let event = kinesis(1, &[fine(1), told(2, "fail once")]);
    let error = api.invoke(&event, TIME).await.result.unwrap_err();
    assert_eq!(error["errorType"], "Millpond.Unfinished");
    assert!(error["errorMessage"].as_str().unwrap().contains("1 of 2 are not finished"), "{error}");
    api.invoke(&event, TIME).await.ok();
    assert_eq!((notes.count(1), notes.count(2)), (1, 2));
}

#[tokio::test]
async fn the_log_has_metrics_and_never_a_message() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let function = Start::binary(env!("CARGO_BIN_EXE_stream-consumer"))
        .store(&engine.endpoint())
        .set("MILLPOND_FORWARD_QUEUE", "orders")
        .set("RUST_LOG", "trace")
        .start_logging(&api, &log);
    let event = kinesis(1, &[json!("kept-to-itself")]);
    let encoded = event["Records"][0]["kinesis"]["data"].as_str().unwrap().to_owned();
    assert_eq!(api.invoke(&event, TIME).await.failures(), Vec::<String>::new());
    drop(function);
    let log = std::fs::read_to_string(&log).unwrap();
    let metrics = log.lines().find(|line| line.contains("_aws")).expect("a line of metrics");
    let metrics: serde_json::Value = serde_json::from_str(metrics).unwrap();
    assert_eq!(
        (&metrics["Consumer"], &metrics["consumer_finished"]),
        (&json!("under-test"), &json!(1))
    );
    assert!(log.lines().count() > 20, "the finest level was asked for");
    for secret in ["kept-to-itself", encoded.as_str()] {
        let found = log.lines().find(|line| line.contains(secret));
        assert_eq!(found, None);
    }
}
