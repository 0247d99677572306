//! FIFO queues: groups, deduplication, attempts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{World, bodies, redrive};
use serde_json::{Value, json};

async fn with_messages(attributes: Value, messages: &[(&str, &str)]) -> (World, String) {
    let world = World::new().await;
    let url = world.fifo("q.fifo", attributes).await;
    for (group, body) in messages {
        world.send_to(&url, group, body).await;
    }
    (world, url)
}

#[tokio::test]
async fn a_receive_takes_as_many_as_it_can_of_one_group_then_others() {
    let all = [("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2"), ("a", "a3")];
    let (world, url) = with_messages(json!({}), &all).await;
    let got = world.receive(&url, 10).await;
    assert_eq!(bodies(&got), ["a1", "a2", "a3", "b1", "b2"]);
    assert_eq!(got[0]["Attributes"]["MessageGroupId"], "a");
    assert_eq!(got[0]["Attributes"]["MessageDeduplicationId"], "a-a1");
    let numbers: Vec<&str> =
        got.iter().map(|one| one["Attributes"]["SequenceNumber"].as_str().unwrap()).collect();
    assert!(numbers[0] < numbers[1] && numbers[1] < numbers[2] && numbers[3] < numbers[4]);
    assert!(numbers.iter().all(|number| number.len() == 20), "{numbers:?}");
}

#[tokio::test]
async fn a_held_group_waits_and_others_do_not() {
    let all = [("a", "a1"), ("a", "a2"), ("b", "b1")];
    let (world, url) = with_messages(json!({}), &all).await;
    let first = world.receive(&url, 1).await;
    assert_eq!(bodies(&first), ["a1"]);
    assert_eq!(world.bodies(&url, 10).await, ["b1"]);
    assert!(world.receive(&url, 10).await.is_empty());
    world.delete(&url, &first[0]).await.ok();
    assert_eq!(world.bodies(&url, 10).await, ["a2"]);
}

#[tokio::test]
async fn releasing_the_first_while_the_second_is_in_flight_delivers_the_first_alone() {
    let (world, url) = with_messages(json!({}), &[("g", "1"), ("g", "2"), ("g", "3")]).await;
    let got = world.receive(&url, 2).await;
    world.visibility(&url, &got[0], 0).await.ok();
    assert_eq!(world.bodies(&url, 10).await, ["1"]);
    assert!(world.receive(&url, 10).await.is_empty());
}

#[tokio::test]
async fn the_first_expiring_while_the_second_is_extended_delivers_the_first_alone() {
    let (world, url) = with_messages(json!({}), &[("g", "1"), ("g", "2"), ("g", "3")]).await;
    let got = world.receive(&url, 2).await;
    world.visibility(&url, &got[1], 100).await.ok();
    world.pass(30);
    assert_eq!(world.bodies(&url, 10).await, ["1"], "what is extended hides what is behind it");
}

#[tokio::test]
async fn deleting_the_first_while_the_second_is_in_flight_delivers_nothing() {
    let (world, url) = with_messages(json!({}), &[("g", "1"), ("g", "2"), ("g", "3")]).await;
    let got = world.receive(&url, 2).await;
    world.delete(&url, &got[0]).await.ok();
    assert!(world.receive(&url, 10).await.is_empty());
    world.delete(&url, &got[1]).await.ok();
    assert_eq!(world.bodies(&url, 10).await, ["3"]);
}

#[tokio::test]
async fn expiry_restores_the_order() {
    let (world, url) = with_messages(json!({}), &[("g", "1"), ("g", "2"), ("g", "3")]).await;
    assert_eq!(world.bodies(&url, 2).await, ["1", "2"]);
    world.pass(30);
    assert_eq!(world.bodies(&url, 10).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_timeout_of_zero_leaves_the_group_receivable() {
    let (world, url) = with_messages(json!({}), &[("g", "1"), ("g", "2")]).await;
    for _ in 0..2 {
        let got = world
            .receive_with(&url, json!({"VisibilityTimeout": 0, "MaxNumberOfMessages": 10}))
            .await;
        assert_eq!(bodies(&got), ["1", "2"]);
    }
}

#[tokio::test]
async fn a_group_that_was_served_goes_behind_those_that_were_not() {
    let all = [("g1", "1"), ("g2", "2"), ("g3", "3")];
    let (world, url) = with_messages(json!({}), &all).await;
    let first = world.receive(&url, 2).await;
    assert_eq!(bodies(&first), ["1", "2"]);
    for message in &first {
        world.visibility(&url, message, 0).await.ok();
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        order.extend(world.bodies(&url, 1).await);
    }
    assert_eq!(order, ["3", "1", "2"]);
}

#[tokio::test]
async fn a_dead_message_releases_its_group() {
    let world = World::new().await;
    world.fifo("dead.fifo", json!({})).await;
    let policy = redrive("dead.fifo", 1);
    let url = world.fifo("q.fifo", json!({"RedrivePolicy": policy})).await;
    world.send_to(&url, "g", "1").await;
    world.send_to(&url, "g", "2").await;
    assert_eq!(world.bodies(&url, 1).await, ["1"]);
    world.pass(30);
    let mut got = world.bodies(&url, 10).await;
    got.extend(world.bodies(&url, 10).await);
    assert_eq!(got, ["2"]);
}

#[tokio::test]
async fn a_group_and_a_deduplication_id_are_needed() {
    let (world, url) = with_messages(json!({}), &[]).await;
    let (code, text) =
        world.ask("SendMessage", json!({"QueueUrl": url, "MessageBody": "x"})).await.error();
    assert_eq!(code, "MissingRequiredParameterException");
    assert_eq!(text, "The request must contain the parameter MessageGroupId.");
    let body = json!({"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g"});
    let (code, text) = world.ask("SendMessage", body).await.error();
    assert_eq!(code, "InvalidParameterValueException");
    assert_eq!(
        text,
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
    );
    for (name, bad) in
        [("MessageGroupId", "a b"), ("MessageDeduplicationId", "ä"), ("MessageGroupId", "")]
    {
        let mut body = json!({"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"});
        body[name] = json!(bad);
        assert_eq!(
            world.ask("SendMessage", body).await.error().0,
            "InvalidParameterValueException",
            "{bad}"
        );
    }
    let standard = world.queue("standard").await;
    let body = json!({"QueueUrl": standard, "MessageBody": "x", "MessageDeduplicationId": "d"});
    assert_eq!(world.ask("SendMessage", body).await.error().0, "InvalidParameterValueException");
}

#[tokio::test]
async fn a_duplicate_gets_the_id_and_number_of_the_first_also_after_it_was_deleted() {
    let (world, url) = with_messages(json!({}), &[]).await;
    let send = async |group: &str, body: &str| {
        let message = json!({
            "QueueUrl": url, "MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": "same",
        });
        world.json("SendMessage", message).await
    };
    let first = send("a", "one").await;
    let second = send("b", "two").await;
    assert_eq!(second["MessageId"], first["MessageId"]);
    assert_eq!(second["SequenceNumber"], first["SequenceNumber"]);
    let got = world.receive(&url, 10).await;
    assert_eq!(bodies(&got), ["one"]);
    assert_eq!(got[0]["MessageId"], first["MessageId"]);
    world.delete(&url, &got[0]).await.ok();
    world.pass(299);
    assert_eq!(send("a", "three").await["MessageId"], first["MessageId"]);
    assert!(world.receive(&url, 10).await.is_empty());
    world.pass(2);
    assert_ne!(send("a", "four").await["MessageId"], first["MessageId"]);
    assert_eq!(world.bodies(&url, 10).await, ["four"]);
}

#[tokio::test]
async fn a_purge_forgets_what_was_sent() {
    let (world, url) = with_messages(json!({}), &[("g", "1")]).await;
    world.json("PurgeQueue", json!({"QueueUrl": url})).await;
    world.send_to(&url, "g", "1").await;
    assert_eq!(world.bodies(&url, 10).await, ["1"]);
}

#[tokio::test]
async fn deduplication_can_be_scoped_to_the_group_and_back() {
    let (world, url) = with_messages(json!({}), &[]).await;
    let send = async |group: &str, body: &str| {
        let message = json!({
            "QueueUrl": url, "MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": "same",
        });
        world.json("SendMessage", message).await
    };
    send("a", "1").await;
    send("b", "2").await;
    world.set(&url, json!({"DeduplicationScope": "messageGroup"})).await.ok();
    send("a", "3").await;
    send("b", "4").await;
    send("b", "5").await;
    world.set(&url, json!({"DeduplicationScope": "queue"})).await.ok();
    send("c", "6").await;
    let mut got = world.bodies(&url, 10).await;
    got.sort();
    assert_eq!(got, ["1", "3", "4"]);
}

#[tokio::test]
async fn content_is_the_body_alone_and_an_explicit_id_wins() {
    let (world, url) = with_messages(json!({"ContentBasedDeduplication": "true"}), &[]).await;
    let send = async |more: Value| {
        let mut message = json!({"QueueUrl": url, "MessageBody": "same", "MessageGroupId": "g"});
        for (name, value) in more.as_object().unwrap() {
            message[name] = value.clone();
        }
        world.json("SendMessage", message).await["MessageId"].clone()
    };
    let first = send(json!({})).await;
    let attributes =
        json!({"MessageAttributes": {"a": {"DataType": "String", "StringValue": "x"}}});
    assert_eq!(send(attributes).await, first);
    assert_ne!(send(json!({"MessageDeduplicationId": "other"})).await, first);
    let got = world.receive(&url, 10).await;
    assert_eq!(got.len(), 2);
    // The SHA-256 of "same".
    assert_eq!(
        got[0]["Attributes"]["MessageDeduplicationId"],
        "0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"
    );
}

#[tokio::test]
async fn an_attempt_that_is_made_again_gets_the_same_messages_and_handles() {
    let (world, url) = with_messages(json!({}), &[("a", "1"), ("a", "2"), ("b", "3")]).await;
    let ask = json!({"MaxNumberOfMessages": 2, "ReceiveRequestAttemptId": "once"});
    let first = world.receive_with(&url, ask.clone()).await;
    assert_eq!(bodies(&first), ["1", "2"]);
    world.pass(20);
    let again = world.receive_with(&url, ask.clone()).await;
    assert_eq!(again, first, "the same messages, handles and counts");
    world.pass(20);
    let counted = world.counts(&url).await;
    assert_eq!(counted, (1, 2, 0), "it began their timeout anew");
    let other = json!({"MaxNumberOfMessages": 2, "ReceiveRequestAttemptId": "other"});
    assert_eq!(bodies(&world.receive_with(&url, other).await), ["3"]);
    let standard = world.queue("standard").await;
    world.send(&standard, "x").await;
    assert_eq!(
        world.receive_with(&standard, ask).await.len(),
        1,
        "on a standard queue it says nothing"
    );
}

#[tokio::test]
async fn a_batch_is_in_order_and_each_entry_is_judged() {
    let (world, url) = with_messages(json!({}), &[]).await;
    let entry = |id: &str, dedup: Value| json!({"Id": id, "MessageBody": id, "MessageGroupId": "g", "MessageDeduplicationId": dedup});
    let entries = json!([
        entry("a", json!("1")),
        entry("b", Value::Null),
        entry("c", json!("1")),
        entry("d", json!("2"))
    ]);
    let answer = world.json("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
    let done = answer["Successful"].as_array().unwrap();
    assert_eq!(
        done.iter().map(|one| one["Id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["a", "c", "d"]
    );
    assert_eq!(done[0]["MessageId"], done[1]["MessageId"], "a duplicate within the batch");
    assert_eq!(answer["Failed"][0]["Id"], "b");
    assert_eq!(world.bodies(&url, 10).await, ["a", "d"]);
}
