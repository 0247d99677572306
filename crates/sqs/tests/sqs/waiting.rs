//! Long polls: who is woken, by what, in which order, and what becomes of those who hang up.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use std::time::Duration;

use crate::common::{World, bodies, json_request, while_time_passes};
use millpond_sqs::SqsOptions;
use millpond_store::{Fault, FaultPlan};
use serde_json::{Value, json};

fn wait(url: &str) -> Value {
    json!({"QueueUrl": url, "WaitTimeSeconds": 20, "MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["All"]})
}

async fn got(call: tokio::task::JoinHandle<crate::common::Answer>) -> Vec<Value> {
    let answer = call.await.unwrap().ok().json();
    answer["Messages"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_send_wakes_who_waits_and_nobody_waits_to_fill_a_batch() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    assert!(!call.is_finished());
    assert_eq!(world.sqs.metrics().waiting, 1);
    world.send(&url, "x").await;
    assert_eq!(bodies(&got(call).await), ["x"]);
    assert_eq!(world.sqs.metrics().waiting, 0);
}

#[tokio::test]
async fn a_wait_ends_empty_when_its_time_is_over() {
    let world = World::new().await;
    let url = world.create("q", json!({"ReceiveMessageWaitTimeSeconds": "3"})).await;
    let call = world.spawn("ReceiveMessage", &json!({"QueueUrl": url}));
    world.settle().await;
    world.clock.advance(Duration::from_millis(2_999));
    world.settle().await;
    assert!(!call.is_finished(), "the queue says three seconds");
    world.clock.advance(Duration::from_millis(1));
    let answer = call.await.unwrap().ok();
    assert_eq!(answer.json(), json!({}));
    let short = json!({"QueueUrl": url, "WaitTimeSeconds": 0});
    assert_eq!(world.json("ReceiveMessage", short).await, json!({}), "the request says none");
}

#[tokio::test]
async fn the_end_of_a_timeout_and_of_a_delay_wake_who_waits() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.send(&url, "held").await;
    world.receive_with(&url, json!({"VisibilityTimeout": 5})).await;
    world
        .json("SendMessage", json!({"QueueUrl": url, "MessageBody": "late", "DelaySeconds": 9}))
        .await;
    for expected in ["held", "late"] {
        let call = world.spawn("ReceiveMessage", &wait(&url));
        world.settle().await;
        assert!(!call.is_finished());
        for _ in 0..6 {
            world.pass(1);
            world.settle().await;
        }
        assert_eq!(bodies(&got(call).await), [expected]);
    }
}

#[tokio::test]
async fn giving_back_and_deleting_wake_who_waits_for_the_group() {
    let world = World::new().await;
    let url = world.fifo("q.fifo", json!({})).await;
    for body in ["1", "2"] {
        world.send_to(&url, "g", body).await;
    }
    let first = world.receive(&url, 1).await;
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    assert!(!call.is_finished());
    world.visibility(&url, &first[0], 0).await.ok();
    let held = got(call).await;
    assert_eq!(bodies(&held), ["1", "2"]);
    world.visibility(&url, &held[1], 0).await.ok();
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    assert!(!call.is_finished(), "the first is still in flight");
    world.delete(&url, &held[0]).await.ok();
    assert_eq!(bodies(&got(call).await), ["2"]);
}

#[tokio::test]
async fn the_deletion_of_the_queue_ends_all_waits() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let calls: Vec<_> = (0..3).map(|_| world.spawn("ReceiveMessage", &wait(&url))).collect();
    world.settle().await;
    world.json("DeleteQueue", json!({"QueueUrl": url})).await;
    for call in calls {
        assert_eq!(call.await.unwrap().error().0, "QueueDoesNotExist");
    }
}

#[tokio::test]
async fn who_waits_longest_is_served_first() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let mut calls = Vec::new();
    for _ in 0..5 {
        let mut ask = wait(&url);
        ask["MaxNumberOfMessages"] = json!(1);
        calls.push(world.spawn("ReceiveMessage", &ask));
        world.settle().await;
    }
    for n in 0..5 {
        world.send(&url, &n.to_string()).await;
        world.settle().await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(bodies(&got(call).await), [n.to_string()]);
    }
}

#[tokio::test]
async fn who_hangs_up_is_not_handed_messages() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    call.abort();
    world.settle().await;
    assert_eq!(world.sqs.metrics().waiting, 0);
    world.send(&url, "x").await;
    world.settle().await;
    let got = world.receive(&url, 10).await;
    assert_eq!(bodies(&got), ["x"]);
    assert_eq!(got[0]["Attributes"]["ApproximateReceiveCount"], "1");
}

#[tokio::test]
async fn wherever_a_client_hangs_up_no_message_is_lost() {
    // The call is dropped after each number of turns: before, while and after messages are claimed for it.
    for turns in 0..60 {
        let world = World::new().await;
        let url = world.queue("q").await;
        world.send(&url, "x").await;
        let request = json_request("ReceiveMessage", &wait(&url));
        let mut call = Box::pin(world.sqs.handle(request));
        let mut answered = None;
        for _ in 0..turns {
            let waker = futures::task::noop_waker();
            let mut context = std::task::Context::from_waker(&waker);
            if let std::task::Poll::Ready(answer) = call.as_mut().poll(&mut context) {
                answered = Some(answer);
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        world.settle().await;
        let left = world.receive(&url, 10).await;
        match answered {
            Some(_) => assert_eq!(left.len(), 0, "after {turns} turns it was handed out"),
            None => {
                assert_eq!(bodies(&left), ["x"], "after {turns} turns");
                assert_eq!(left[0]["Attributes"]["ApproximateReceiveCount"], "1");
            }
        }
    }
}

#[tokio::test]
async fn closing_ends_waits_with_what_they_have_and_lets_none_begin() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    world.sqs.close();
    assert!(got(call).await.is_empty());
    let late = world.spawn("ReceiveMessage", &wait(&url));
    assert!(got(late).await.is_empty(), "it does not wait");
    world.send(&url, "x").await;
    assert_eq!(world.bodies(&url, 1).await, ["x"], "the rest still works");
}

#[tokio::test]
async fn it_is_known_beforehand_who_may_wait() {
    let world = World::with(SqsOptions::default()).await;
    let (short, long) = (
        world.queue("short").await,
        world.create("long", json!({"ReceiveMessageWaitTimeSeconds": "5"})).await,
    );
    let may = |action: &str, body: Value| world.sqs.may_wait(&json_request(action, &body));
    assert!(may("ReceiveMessage", json!({"QueueUrl": short, "WaitTimeSeconds": 1})));
    assert!(!may("ReceiveMessage", json!({"QueueUrl": long, "WaitTimeSeconds": 0})));
    assert!(!may("ReceiveMessage", json!({"QueueUrl": short})));
    assert!(may("ReceiveMessage", json!({"QueueUrl": long})), "the queue says so");
    assert!(may("ReceiveMessage", json!({"QueueUrl": "http://x/000000000000/unknown"})));
    assert!(!may("SendMessage", json!({"QueueUrl": long})));
    // An empty address is none: the path counts.
    let empty = [("Action", "ReceiveMessage"), ("QueueUrl", "")];
    assert!(world.sqs.may_wait(&crate::common::form_request("/000000000000/long", &empty)));
    let form = |form| world.sqs.may_wait(&crate::common::form_request("/000000000000/short", form));
    assert!(form(&[("Action", "ReceiveMessage"), ("WaitTimeSeconds", "1")]));
    assert!(!form(&[("Action", "ReceiveMessage")]));
}

#[tokio::test]
async fn a_thousand_waiting_receivers_are_all_served() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let mut ask = wait(&url);
    ask["MaxNumberOfMessages"] = json!(1);
    let calls: Vec<_> = (0..1_000).map(|_| world.spawn("ReceiveMessage", &ask)).collect();
    world.settle().await;
    assert_eq!(world.sqs.metrics().waiting, 1_000);
    for n in 0..100 {
        let entries: Vec<Value> = (0..10)
            .map(|k| json!({"Id": k.to_string(), "MessageBody": format!("{n}-{k}")}))
            .collect();
        world.json("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
    }
    let mut all = Vec::new();
    for call in calls {
        all.extend(bodies(&got(call).await));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_000);
}

#[tokio::test]
async fn a_store_that_fails_for_a_moment_does_not_end_the_waits_of_others() {
    let (world, store) = World::new().await.failing_node(SqsOptions::default()).await;
    let url = world.queue("q").await;
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    // What is known of the queue is old by now, so that the next request reads its row again.
    world.pass(6);
    world.settle().await;
    store.follow(FaultPlan::once(0, Fault::Definite));
    let (code, _) = world.ask("GetQueueAttributes", json!({"QueueUrl": url})).await.error();
    assert_eq!(code, "ServiceUnavailableException");
    world.settle().await;
    assert!(!call.is_finished(), "the queue is still there");
    world.send(&url, "x").await;
    assert_eq!(bodies(&got(call).await), ["x"]);
}

#[tokio::test]
async fn many_changes_at_once_do_not_end_the_waits_of_others() {
    let (world, store) = World::new().await.failing_node(SqsOptions::default()).await;
    let url = world.queue("q").await;
    let call = world.spawn("ReceiveMessage", &wait(&url));
    world.settle().await;
    // Each time that the row is written, another change has been faster.
    let faults = (0..500).map(|request| (2 * request + 1, Fault::Conflict));
    store.follow(FaultPlan::Script(faults.collect()));
    let tag = json!({"QueueUrl": url, "Tags": {"a": "b"}});
    let (code, _) = world.ask("TagQueue", tag).await.error();
    store.follow(FaultPlan::None);
    assert_eq!(code, "ServiceUnavailableException");
    world.settle().await;
    assert!(!call.is_finished(), "the queue is still there");
    world.send(&url, "x").await;
    assert_eq!(bodies(&got(call).await), ["x"]);
}

#[tokio::test]
async fn whenever_a_client_hangs_up_on_a_slow_store_no_message_is_lost() {
    let mut given_back = 0;
    for steps in 0..16 {
        let world = World::slow().await;
        let url = while_time_passes(&world.clock, world.queue("q")).await;
        while_time_passes(&world.clock, world.send(&url, "x")).await;
        let call = world.spawn("ReceiveMessage", &wait(&url));
        world.steps(steps).await;
        let answered = call.is_finished();
        call.abort();
        while_time_passes(&world.clock, async {
            for _ in 0..20 {
                world.settle().await;
            }
        })
        .await;
        let left = while_time_passes(&world.clock, world.receive(&url, 10)).await;
        given_back += world.sqs.metrics().messages_returned;
        assert_eq!(left.len(), usize::from(!answered), "after {steps} steps");
        if let Some(message) = left.first() {
            assert_eq!(
                message["Attributes"]["ApproximateReceiveCount"], "1",
                "after {steps} steps"
            );
        }
    }
    assert!(given_back > 0, "some hung up between claim and answer");
}
