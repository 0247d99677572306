//! Answers come before the deadline, whatever hangs.

use std::time::Duration;

use serde_json::json;

use crate::support::engine::Engine;
use crate::support::events::{kinesis, sequence};
use crate::support::function::Start;
use crate::support::gate::Gate;
use crate::support::http::Server;
use crate::support::runtime_api::RuntimeApi;
use crate::trial::{Notes, fine, told};

/// Enough for a busy machine: a twentieth of it is kept for the answer.
const TIME: Duration = Duration::from_secs(15);

#[tokio::test]
async fn the_answer_comes_in_time_when_a_handler_hangs() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let _function = notes
        .start("trial::consumer_function")
        .store(&engine.endpoint())
        .set("MILLPOND_TIMEOUT_SHARE", "0.2")
        .start(&api);
    let answer = api.invoke(&kinesis(1, &[fine(1), told(2, "hang"), fine(3)]), TIME).await;
    assert!(answer.early.is_some(), "{answer:?}");
    assert_eq!(answer.failures(), [sequence(2)]);
    // What was finished stays so; the hang counts as an attempt.
    let answer = api.invoke(&kinesis(2, &[fine(2), fine(3)]), TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());
    assert_eq!((notes.count(1), notes.count(2), notes.count(3)), (1, 2, 1));
}

#[tokio::test]
async fn the_answer_comes_in_time_when_the_store_hangs() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let gate = Gate::start(engine.address).await;
    let _function = notes.start("trial::consumer_function").store(&gate.endpoint()).start(&api);
    let well = api.invoke(&kinesis(1, &[fine(1)]), TIME).await;
    assert_eq!(well.failures(), Vec::<String>::new());
    gate.shut();
    let answer = api.invoke(&kinesis(2, &[fine(2), told(3, "fail")]), TIME).await;
    assert!(answer.early.is_some(), "{answer:?}");
    assert_eq!(answer.failures(), [sequence(2)], "nothing of the batch is lost");
}

#[tokio::test]
async fn the_answer_comes_in_time_when_a_sink_hangs() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let sqs = Server::start(|_| std::future::pending()).await;
    let _function = notes
        .start("trial::consumer_function")
        .store(&engine.endpoint())
        .set("MILLPOND_DEAD_LETTERS", &format!("sqs:{}/1/dead", sqs.endpoint()))
        .set("AWS_ENDPOINT_URL_SQS", &sqs.endpoint())
        .start(&api);
    let answer = api.invoke(&kinesis(1, &[fine(1), told(2, "reject")]), TIME).await;
    assert!(answer.early.is_some(), "{answer:?}");
    assert_eq!(answer.failures(), [sequence(2)], "without a receipt it is not finished");
}

#[tokio::test]
async fn a_worker_answers_in_time_when_the_store_hangs() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let gate = Gate::start(engine.address).await;
    let _function = Start::binary(env!("CARGO_BIN_EXE_queue-worker"))
        .store(&gate.endpoint())
        .set("MILLPOND_QUEUE", "tasks")
        .start(&api);
    let event = json!({ "millpond": "queue worker", "queue": "tasks" });
    assert_eq!(api.invoke(&event, TIME).await.ok()["state"], "idle");
    gate.shut();
    let answer = api.invoke(&event, Duration::from_secs(6)).await;
    assert!(answer.early.is_some(), "{answer:?}");
    let error = answer.result.unwrap_err();
    let kind = error["errorType"].as_str().unwrap();
    assert!(["Millpond.Deadline", "Millpond.Queue"].contains(&kind), "{error}");
}
