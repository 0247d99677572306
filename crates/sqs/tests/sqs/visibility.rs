//! Receipt handles, visibility timeouts and delays.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{World, bodies};
use serde_json::json;

#[tokio::test]
async fn a_handle_is_new_with_each_receive_and_an_old_one_deletes_nothing() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.send(&url, "x").await;
    let first = world.receive(&url, 1).await;
    assert!(world.receive(&url, 1).await.is_empty());
    world.pass(30);
    let second = world.receive(&url, 1).await;
    assert_eq!(second[0]["MessageId"], first[0]["MessageId"]);
    assert_eq!(second[0]["Attributes"]["ApproximateReceiveCount"], "2");
    assert_ne!(second[0]["ReceiptHandle"], first[0]["ReceiptHandle"]);
    world.delete(&url, &first[0]).await.ok();
    assert_eq!(world.counts(&url).await, (0, 1, 0), "an old handle succeeds and does not delete");
    world.delete(&url, &second[0]).await.ok();
    world.delete(&url, &second[0]).await.ok();
    assert_eq!(world.counts(&url).await, (0, 0, 0));
}

#[tokio::test]
async fn in_a_standard_queue_a_late_delete_and_a_late_change_work() {
    let world = World::new().await;
    let url = world.queue("q").await;
    for body in ["a", "b"] {
        world.send(&url, body).await;
    }
    let got = world.receive(&url, 2).await;
    world.pass(31);
    world.delete(&url, &got[0]).await.ok();
    world.visibility(&url, &got[1], 60).await.ok();
    assert_eq!(world.counts(&url).await, (0, 1, 0));
}

#[tokio::test]
async fn in_a_fifo_queue_a_late_delete_is_refused_unless_the_timeout_was_extended() {
    let world = World::new().await;
    let url = world.fifo("q.fifo", json!({})).await;
    world.send_to(&url, "g", "a").await;
    let first = world.receive(&url, 1).await;
    world.visibility(&url, &first[0], 60).await.ok();
    world.pass(31);
    world.delete(&url, &first[0]).await.ok();
    world.send_to(&url, "g", "b").await;
    let second = world.receive(&url, 1).await;
    world.pass(30);
    for answer in
        [world.delete(&url, &second[0]).await, world.visibility(&url, &second[0], 9).await]
    {
        let (code, text) = answer.error();
        assert_eq!(code, "InvalidParameterValueException");
        let handle = second[0]["ReceiptHandle"].as_str().unwrap();
        assert_eq!(
            text,
            format!(
                "Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
            )
        );
    }
    assert_eq!(world.bodies(&url, 1).await, ["b"]);
}

#[tokio::test]
async fn the_visibility_of_a_deleted_message_cannot_be_changed() {
    let world = World::new().await;
    for url in [
        world.queue("q").await,
        world.fifo("q.fifo", json!({"ContentBasedDeduplication": "true"})).await,
    ] {
        let message = if url.ends_with(".fifo") {
            json!({"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g"})
        } else {
            json!({"QueueUrl": url, "MessageBody": "x"})
        };
        world.json("SendMessage", message).await;
        let got = world.receive(&url, 1).await;
        world.delete(&url, &got[0]).await.ok();
        let (code, text) = world.visibility(&url, &got[0], 10).await.error();
        assert_eq!(code, "InvalidParameterValueException");
        assert!(text.contains("Message does not exist"), "{text}");
        world.delete(&url, &got[0]).await.ok();
    }
}

#[tokio::test]
async fn garbage_and_other_queues_handles_are_refused() {
    let world = World::new().await;
    let (url, other) = (world.queue("q").await, world.queue("other").await);
    world.send(&other, "x").await;
    let theirs = world.receive(&other, 1).await;
    let body = json!({"QueueUrl": url, "ReceiptHandle": "x"});
    let (code, text) = world.ask("DeleteMessage", body).await.error();
    assert_eq!(code, "ReceiptHandleIsInvalid");
    assert_eq!(text, "The input receipt handle \"x\" is not a valid receipt handle.");
    assert_eq!(world.delete(&url, &theirs[0]).await.error().0, "ReceiptHandleIsInvalid");
    assert_eq!(world.visibility(&url, &theirs[0], 1).await.error().0, "ReceiptHandleIsInvalid");
    for (action, body, parameter) in [
        ("DeleteMessage", json!({"QueueUrl": url}), "ReceiptHandle"),
        (
            "ChangeMessageVisibility",
            json!({"QueueUrl": url, "ReceiptHandle": "x"}),
            "VisibilityTimeout",
        ),
    ] {
        let (code, text) = world.ask(action, body).await.error();
        assert_eq!(code, "MissingRequiredParameterException");
        assert_eq!(text, format!("The request must contain the parameter {parameter}."));
    }
}

#[tokio::test]
async fn the_request_says_how_long_then_the_queue_then_thirty_seconds() {
    let world = World::new().await;
    let url = world.create("q", json!({"VisibilityTimeout": "10"})).await;
    world.send(&url, "x").await;
    let got = world.receive_with(&url, json!({"VisibilityTimeout": 5})).await;
    world.pass(5);
    // What was said for one receive does not stick.
    assert_eq!(world.receive(&url, 1).await.len(), 1);
    world.pass(9);
    assert_eq!(world.receive(&url, 1).await.len(), 0);
    world.pass(1);
    let again = world.receive(&url, 1).await;
    assert_eq!(again[0]["MessageId"], got[0]["MessageId"]);
    world.visibility(&url, &again[0], 100).await.ok();
    world.pass(99);
    assert_eq!(world.receive(&url, 1).await.len(), 0);
    world.pass(1);
    assert_eq!(world.receive(&url, 1).await.len(), 1);
    world.pass(10);
    assert_eq!(world.receive(&url, 1).await.len(), 1, "the changed timeout does not stick");
}

#[tokio::test]
async fn zero_ends_the_timeout_at_once() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.send(&url, "x").await;
    let got = world.receive(&url, 1).await;
    world.visibility(&url, &got[0], 0).await.ok();
    let again = world.receive_with(&url, json!({"VisibilityTimeout": 0})).await;
    assert_eq!(again[0]["Attributes"]["ApproximateReceiveCount"], "2");
    let at_once =
        world.receive_with(&url, json!({"VisibilityTimeout": 0, "MaxNumberOfMessages": 10})).await;
    assert_eq!(bodies(&at_once), ["x"], "one receive never returns a message twice");
    world.delete(&url, &at_once[0]).await.ok();
    assert_eq!(world.counts(&url).await, (0, 0, 0), "the last handle still deletes");
    let zero = world.create("zero", json!({"VisibilityTimeout": "0"})).await;
    world.send(&zero, "y").await;
    for _ in 0..3 {
        assert_eq!(world.bodies(&zero, 10).await, ["y"]);
    }
}

#[tokio::test]
async fn twelve_hours_are_the_total_since_the_receive() {
    let world = World::new().await;
    let url = world.create("q", json!({"VisibilityTimeout": "43200"})).await;
    world.send(&url, "x").await;
    let got = world.receive(&url, 1).await;
    world.pass(100);
    world.visibility(&url, &got[0], 43_100).await.ok();
    let (code, text) = world.visibility(&url, &got[0], 43_101).await.error();
    assert_eq!(code, "InvalidParameterValueException");
    assert!(text.contains("beyond the limit [43200 seconds]"), "{text}");
}

#[tokio::test]
async fn delays_are_of_the_message_or_of_the_queue() {
    let world = World::new().await;
    let url = world.create("q", json!({"DelaySeconds": "20"})).await;
    world.send(&url, "queue's").await;
    world
        .json("SendMessage", json!({"QueueUrl": url, "MessageBody": "own", "DelaySeconds": 10}))
        .await;
    world
        .json("SendMessage", json!({"QueueUrl": url, "MessageBody": "none", "DelaySeconds": 0}))
        .await;
    assert_eq!(world.counts(&url).await, (1, 0, 2));
    assert_eq!(world.bodies(&url, 10).await, ["none"]);
    world.pass(10);
    assert_eq!(world.bodies(&url, 10).await, ["own"]);
    world.pass(10);
    assert_eq!(world.bodies(&url, 10).await, ["queue's"]);
}

#[tokio::test]
async fn a_fifo_queue_has_only_a_delay_of_its_own() {
    let world = World::new().await;
    let url = world
        .fifo("q.fifo", json!({"DelaySeconds": "20", "ContentBasedDeduplication": "true"}))
        .await;
    let message = |delay| json!({"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g", "DelaySeconds": delay});
    let (code, text) = world.ask("SendMessage", message(5)).await.error();
    assert_eq!(code, "InvalidParameterValueException");
    assert!(text.starts_with("Value 5 for parameter DelaySeconds is invalid."), "{text}");
    world.ask("SendMessage", message(0)).await.ok();
    assert_eq!(world.receive(&url, 1).await.len(), 0, "0 means the queue's");
    world.pass(20);
    assert_eq!(world.receive(&url, 1).await.len(), 1);
}

#[tokio::test]
async fn messages_are_kept_for_as_long_as_the_queue_says() {
    let world = World::new().await;
    let url =
        world.create("q", json!({"MessageRetentionPeriod": "60", "DelaySeconds": "900"})).await;
    world
        .json("SendMessage", json!({"QueueUrl": url, "MessageBody": "x", "DelaySeconds": 0}))
        .await;
    // A delay longer than that delivers nothing, and is no error.
    world.send(&url, "never").await;
    world.pass(60);
    assert_eq!(world.receive(&url, 10).await.len(), 0);
    assert_eq!(world.counts(&url).await, (0, 0, 0));
}
