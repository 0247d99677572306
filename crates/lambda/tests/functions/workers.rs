//! The queue's worker and the log's, with wake-ups and continuation.

use std::time::Duration;

use aws_credential_types::Credentials;
use millpond_lambda::functions::WorkerEvent;
use millpond_lambda::{Aws, Invoker, Waker};
use millpond_log::{Log, NewRecord, TopicConfig};
use millpond_queue::worker::Wake;
use millpond_queue::{Message, Order, QueueConfig};
use serde_json::{Value, json};

use crate::lambda_api::LambdaApi;
use crate::support::engine::{Engine, REGION};
use crate::support::function::{NAME, Start};
use crate::support::runtime_api::RuntimeApi;
use crate::trial::Notes;

const TIME: Duration = Duration::from_secs(60);

/// Too short for all of the slow messages of a test.
const SHORT: Duration = Duration::from_secs(5);

/// The SDK's configuration for a stand-in of Lambda.
async fn aws(engine: &Engine, endpoint: &str) -> Aws {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(http)
        .region(aws_config::Region::new(REGION))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(endpoint)
        .load()
        .await;
    Aws::with(config, &engine.environment)
}

#[tokio::test]
async fn a_sender_wakes_the_worker_once_and_it_works_the_queue_down() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let lambda = LambdaApi::start().await;
    let _function = Start::binary(env!("CARGO_BIN_EXE_queue-worker"))
        .store(&engine.endpoint())
        .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
        .set("MILLPOND_QUEUE", "tasks")
        .set("MILLPOND_FORWARD_QUEUE", "finished")
        .start(&api);
    let config = QueueConfig { order: Order::Lifo, ..QueueConfig::default() };
    let queue = engine.queues().create("tasks", config).await.unwrap();
    let shop = queue.client("shop-7").unwrap();
    let invoker = Invoker::new(&aws(&engine, &lambda.endpoint()).await, NAME);
    let waker = Waker::new(&shop, invoker).unwrap();
    for n in 0..5 {
        shop.send(Message::new(n.to_string())).await.unwrap();
        let expected = if n == 0 { Wake::Start } else { Wake::Starting };
        assert_eq!(waker.wake().await.unwrap(), expected);
    }
    let invoked = lambda.invoked();
    let woken =
        json!({ "millpond": "queue worker", "queue": "tasks", "client": "shop-7", "continued": 0 });
    assert_eq!(invoked, [woken], "five messages, one invocation");
    let answer = api.invoke(&invoked[0], TIME).await;
    assert_eq!(answer.ok()["state"], "idle");
    assert_eq!(answer.ok()["done"], 5);
    assert_eq!(shop.count().await.unwrap().total(), 0);
    assert_eq!(engine.bodies("finished").await.len(), 5);
    assert!(lambda.invoked().is_empty(), "nothing is left, so nothing is continued");
}

#[tokio::test]
async fn work_that_is_left_at_the_deadline_is_continued_until_nothing_is_left() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let lambda = LambdaApi::start().await;
    let _function = notes
        .start("trial::slow_queue_function")
        .store(&engine.endpoint())
        .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
        .set("MILLPOND_QUEUE", "tasks")
        .set("MILLPOND_CONCURRENCY", "1")
        .start(&api);
    let queue = engine.queues().create("tasks", QueueConfig::default()).await.unwrap();
    let client = queue.main().unwrap();
    let messages = (0..20).map(|n| Message::new(n.to_string())).collect();
    client.send_batch(messages).await.unwrap();
    let mut event: Value = serde_json::from_slice(&WorkerEvent::wake(&client).encode()).unwrap();
    let mut states = Vec::new();
    // 20 messages of 0.3 s in invocations of 5 s; on a slow machine a few more.
    for _ in 0..30 {
        let answer = api.invoke(&event, SHORT).await;
        assert!(answer.early.is_some(), "{answer:?}");
        states.push(answer.ok()["state"].as_str().unwrap().to_owned());
        match lambda.invoked().as_slice() {
            [] => break,
            [next] => {
                assert_eq!(next["continued"].as_u64(), Some(states.len() as u64));
                event = next.clone();
            }
            more => panic!("one invocation hands on to one: {more:?}"),
        }
    }
    let (last, before) = states.split_last().unwrap();
    assert_eq!(last, "idle", "{states:?}");
    assert!(!before.is_empty() && before.iter().all(|state| state == "continued"), "{states:?}");
    assert_eq!(client.count().await.unwrap().total(), 0);
    let begun: std::collections::BTreeSet<_> = notes.begun().into_iter().collect();
    assert_eq!(begun.len(), 20);
}

#[tokio::test]
async fn the_schedule_finds_clients_that_nobody_is_at() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let lambda = LambdaApi::start().await;
    let _function = Start::binary(env!("CARGO_BIN_EXE_queue-worker"))
        .store(&engine.endpoint())
        .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
        .set("MILLPOND_QUEUE", "tasks")
        .start(&api);
    let schedule =
        json!({ "source": "aws.events", "detail-type": "Scheduled Event", "detail": {} });
    let answer = api.invoke(&schedule, TIME).await;
    assert_eq!(*answer.ok(), json!({ "state": "looked", "waiting": 0, "started": 0 }));

    // Their senders died before they could wake anybody.
    let queue = engine.queues().open("tasks").await.unwrap();
    for client in ["a", "b"] {
        queue.client(client).unwrap().send(Message::new("task")).await.unwrap();
    }
    let answer = api.invoke(&schedule, TIME).await;
    assert_eq!(*answer.ok(), json!({ "state": "looked", "waiting": 2, "started": 2 }));
    let invoked = lambda.invoked();
    assert_eq!(invoked.len(), 2);
    for event in &invoked {
        assert_eq!(api.invoke(event, TIME).await.ok()["done"], 1);
    }
    let answer = api.invoke(&schedule, TIME).await;
    assert_eq!(*answer.ok(), json!({ "state": "looked", "waiting": 0, "started": 0 }));

    let error = api.invoke(&json!({ "Records": [] }), TIME).await.result.unwrap_err();
    assert_eq!(error["errorType"], "Millpond.Event");
}

#[tokio::test]
async fn a_log_is_handled_to_its_end_with_a_continuation_at_the_deadline() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let lambda = LambdaApi::start().await;
    let log = Log::new(&engine.ground);
    let topic = log.create("events", TopicConfig::with_partitions(1)).await.unwrap();
    let records = (0..16).map(|n: usize| NewRecord::keyed("k", n.to_string())).collect();
    topic.append_batch(records).await.unwrap();
    let _function = notes
        .start("trial::slow_log_function")
        .store(&engine.endpoint())
        .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
        .set("MILLPOND_TOPIC", "events")
        .start(&api);
    let mut states = Vec::new();
    for _ in 0..30 {
        let answer = api.invoke(&json!({ "source": "aws.events" }), SHORT).await;
        assert!(answer.early.is_some(), "{answer:?}");
        states.push(answer.ok()["state"].as_str().unwrap().to_owned());
        if lambda.invoked().is_empty() {
            break;
        }
    }
    let (last, before) = states.split_last().unwrap();
    assert_eq!(last, "done", "{states:?}");
    assert!(!before.is_empty() && before.iter().all(|state| state == "continued"), "{states:?}");
    let mut handled = notes.begun();
    handled.dedup();
    assert_eq!(handled, (0..16).collect::<Vec<_>>(), "in order");
}

#[tokio::test]
async fn the_ready_log_consumer_sends_records_on_and_says_what_is_missing() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let _function = Start::binary(env!("CARGO_BIN_EXE_log-consumer"))
        .store(&engine.endpoint())
        .set("MILLPOND_TOPIC", "events")
        .set("MILLPOND_FORWARD_QUEUE", "finished")
        .start(&api);
    let error = api.invoke(&json!({}), TIME).await.result.unwrap_err();
    assert!(error["errorMessage"].as_str().unwrap().contains("events"), "{error}");

    let log = Log::new(&engine.ground);
    let topic = log.create("events", TopicConfig::with_partitions(4)).await.unwrap();
    for n in 0..8 {
        let record = NewRecord::keyed(format!("key-{n}"), n.to_string());
        topic.append(record).await.unwrap();
    }
    let answer = api.invoke(&json!({}), TIME).await;
    assert_eq!((&answer.ok()["state"], &answer.ok()["handled"]), (&json!("done"), &json!(8)));
    assert_eq!(engine.bodies("finished").await.len(), 8);
    let answer = api.invoke(&json!({}), TIME).await;
    assert_eq!(answer.ok()["handled"], 0);
}

#[tokio::test]
async fn a_record_that_cannot_be_handled_is_a_dead_letter_or_waits_for_the_schedule() {
    let (engine, notes, lambda) = (Engine::start().await, Notes::new(), LambdaApi::start().await);
    let log = Log::new(&engine.ground);
    let topic = log.create("events", TopicConfig::with_partitions(1)).await.unwrap();
    for payload in ["this is not a number", "1"] {
        topic.append(NewRecord::new(payload)).await.unwrap();
    }
    let start = |group: &str| {
        notes
            .start("trial::slow_log_function")
            .store(&engine.endpoint())
            .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
            .set("MILLPOND_TOPIC", "events")
            .set("MILLPOND_GROUP", group)
    };
    let api = RuntimeApi::start().await;
    let blocked = start("blocked").start(&api);
    let answer = api.invoke(&json!({}), SHORT).await;
    assert_eq!((&answer.ok()["state"], &answer.ok()["handled"]), (&json!("stuck"), &json!(0)));
    assert!(lambda.invoked().is_empty(), "it does not run for ever in vain");
    drop(blocked);

    let api = RuntimeApi::start().await;
    let _burying = start("burying")
        .set("MILLPOND_DEAD_LETTERS", "log:dead")
        .set("MILLPOND_ATTEMPTS", "2")
        .start(&api);
    let answer = api.invoke(&json!({}), TIME).await;
    let expected =
        json!({ "state": "done", "handled": 1, "failures": 2, "buried": 1, "missed": 0 });
    assert_eq!(*answer.ok(), expected);
    let dead = log.topic("dead").await.unwrap().read(0, 0, 10).await.unwrap();
    assert_eq!(dead.records.len(), 1);
    assert_eq!(dead.records[0].payload, "this is not a number");
}
