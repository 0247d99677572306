//! Dead letters: policies, moving, and bringing back by move tasks.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{World, arn, bodies, redrive, while_time_passes};
use millpond_store::{Partition, Query, collect};
use serde_json::{Value, json};

/// A queue whose messages are dead after two receives.
async fn with_dead_letters() -> (World, String, String) {
    let world = World::new().await;
    let dead = world.queue("dead").await;
    let url = world.create("q", json!({"RedrivePolicy": redrive("dead", 2)})).await;
    (world, url, dead)
}

/// Brings what is in a queue to its dead letters.
async fn kill(world: &World, url: &str) {
    for _ in 0..2 {
        while !world.receive(url, 10).await.is_empty() {}
        world.pass(30);
    }
    assert!(world.receive(url, 10).await.is_empty());
}

#[tokio::test]
async fn a_message_is_moved_on_the_receive_after_its_count_and_stays_itself() {
    let (world, url, dead) = with_dead_letters().await;
    let attributes = json!({"a": {"DataType": "String.x", "StringValue": "1"}});
    let message = json!({"QueueUrl": url, "MessageBody": "x", "MessageAttributes": attributes});
    let sent = world.json("SendMessage", message).await;
    for count in ["1", "2"] {
        let got = world.receive(&url, 1).await;
        assert_eq!(got[0]["Attributes"]["ApproximateReceiveCount"], count);
        world.pass(30);
    }
    assert_eq!(world.counts(&dead).await, (0, 0, 0), "not before the next receive");
    assert!(world.receive(&url, 1).await.is_empty());
    let got = world.receive(&dead, 1).await;
    assert_eq!(got[0]["MessageId"], sent["MessageId"]);
    assert_eq!(got[0]["MessageAttributes"], attributes);
    assert_eq!(got[0]["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"]);
    let said = &got[0]["Attributes"];
    assert_eq!(said["DeadLetterQueueSourceArn"], arn("q"));
    assert_eq!(said["SentTimestamp"], "1800000000000", "a standard queue keeps its age");
    assert_eq!(said["ApproximateReceiveCount"], "1");
}

#[tokio::test]
async fn retention_goes_on_among_the_dead_letters_of_a_standard_queue() {
    let (world, url, dead) = with_dead_letters().await;
    world.set(&dead, json!({"MessageRetentionPeriod": "100"})).await.ok();
    world.send(&url, "x").await;
    kill(&world, &url).await;
    assert_eq!(world.counts(&dead).await, (1, 0, 0));
    world.pass(40);
    assert_eq!(world.counts(&dead).await, (0, 0, 0), "100 seconds after it was sent");
}

#[tokio::test]
async fn a_fifo_dead_letter_is_new_there() {
    let world = World::new().await;
    let dead = world.fifo("dead.fifo", json!({})).await;
    let url = world.fifo("q.fifo", json!({"RedrivePolicy": redrive("dead.fifo", 2)})).await;
    let sent = world.send_to(&url, "g", "x").await;
    kill(&world, &url).await;
    let got = world.receive(&dead, 1).await;
    assert_eq!(got[0]["MessageId"], sent["MessageId"]);
    assert_eq!(got[0]["Attributes"]["SentTimestamp"], "1800000060000");
    assert_eq!(got[0]["Attributes"]["MessageGroupId"], "g");
    assert_eq!(got[0]["Attributes"]["DeadLetterQueueSourceArn"], arn("q.fifo"));
}

#[tokio::test]
async fn a_redrive_policy_names_a_queue_that_exists_and_is_alike() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.fifo("dead.fifo", json!({})).await;
    world.queue("dead").await;
    let refused = async |policy: String| {
        let (code, text) = world.set(&url, json!({"RedrivePolicy": policy})).await.error();
        assert_eq!(code, "InvalidParameterValueException");
        text
    };
    assert!(
        refused(redrive("gone", 1)).await.ends_with("Reason: Dead letter target does not exist.")
    );
    assert!(refused(redrive("dead.fifo", 1)).await.contains("same type of queue"));
    assert!(refused(redrive("q", 1)).await.contains("itself"));
    let far = json!({"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:000000000000:dead", "maxReceiveCount": 1});
    assert!(refused(far.to_string()).await.contains("same region"));
    assert!(refused(redrive("dead", 0)).await.contains("from 1 to 1000"));
    // Numbers as text are accepted, and shown as numbers.
    let text = json!({"maxReceiveCount": "1000", "deadLetterTargetArn": arn("dead")}).to_string();
    world.set(&url, json!({"RedrivePolicy": text})).await.ok();
    let shown = world.attributes(&url).await["RedrivePolicy"].clone();
    assert_eq!(
        shown,
        format!("{{\"deadLetterTargetArn\":\"{}\",\"maxReceiveCount\":1000}}", arn("dead"))
    );
    let body = json!({"QueueName": "other", "Attributes": {"RedrivePolicy": redrive("gone", 1)}});
    assert_eq!(world.ask("CreateQueue", body).await.error().0, "InvalidParameterValueException");
}

#[tokio::test]
async fn a_redrive_allow_policy_is_kept() {
    let world = World::new().await;
    let (url, dead) = (world.queue("q").await, world.queue("dead").await);
    let deny = json!({"RedriveAllowPolicy": r#"{"redrivePermission":"denyAll"}"#});
    world.set(&dead, deny).await.ok();
    let policy = json!({"RedrivePolicy": redrive("dead", 1)});
    assert_eq!(world.set(&url, policy.clone()).await.error().0, "InvalidParameterValueException");
    let by = |name: &str| {
        json!({"redrivePermission": "byQueue", "sourceQueueArns": [arn(name)]}).to_string()
    };
    world.set(&dead, json!({"RedriveAllowPolicy": by("other")})).await.ok();
    assert_eq!(world.set(&url, policy.clone()).await.error().0, "InvalidParameterValueException");
    world.set(&dead, json!({"RedriveAllowPolicy": by("q")})).await.ok();
    world.set(&url, policy).await.ok();
}

#[tokio::test]
async fn source_queues_are_listed_by_page() {
    let world = World::new().await;
    let dead = world.queue("dead").await;
    let ask = async |more: Value| {
        let mut body = json!({"QueueUrl": dead});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        world.json("ListDeadLetterSourceQueues", body).await
    };
    assert_eq!(ask(json!({})).await, json!({"queueUrls": []}));
    for name in ["c", "a", "b"] {
        world.create(name, json!({"RedrivePolicy": redrive("dead", 1)})).await;
    }
    let first = ask(json!({"MaxResults": 2})).await;
    assert_eq!(first["queueUrls"].as_array().unwrap().len(), 2);
    let last = ask(json!({"MaxResults": 2, "NextToken": first["NextToken"]})).await;
    assert_eq!(last, json!({"queueUrls": ["http://queue.test:9324/000000000000/c"]}));
}

async fn tasks(world: &World) -> Vec<Value> {
    let ask = json!({"SourceArn": arn("dead"), "MaxResults": 10});
    let answer = world.json("ListMessageMoveTasks", ask).await;
    answer["Results"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_move_task_brings_messages_back_to_where_they_came_from() {
    let (world, url, dead) = with_dead_letters().await;
    for n in 0..120 {
        world.send(&url, &n.to_string()).await;
    }
    kill(&world, &url).await;
    assert_eq!(world.counts(&dead).await, (120, 0, 0));
    let started = world.json("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await;
    assert!(started["TaskHandle"].is_string());
    let again = world.ask("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await.error();
    assert!(again.1.starts_with("There is already a task running."), "{}", again.1);
    for _ in 0..20 {
        world.settle().await;
    }
    let done = tasks(&world).await;
    assert_eq!(done.len(), 1);
    assert_eq!(done[0]["Status"], "COMPLETED");
    assert_eq!(done[0].get("TaskHandle"), None, "listed only while it runs");
    assert_eq!(done[0]["ApproximateNumberOfMessagesMoved"], 120);
    assert_eq!(done[0]["ApproximateNumberOfMessagesToMove"], 120);
    assert_eq!(done[0]["SourceArn"], arn("dead"));
    assert_eq!(done[0]["StartedTimestamp"], 1_800_000_060_000_u64);
    assert_eq!(world.counts(&dead).await, (0, 0, 0));
    assert_eq!(world.counts(&url).await, (120, 0, 0));
    // Another may follow.
    world.json("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await;
    world.settle().await;
    assert_eq!(tasks(&world).await.len(), 2);
}

#[tokio::test]
async fn a_move_task_can_go_elsewhere_slowly_and_be_cancelled() {
    let (world, url, dead) = with_dead_letters().await;
    let other = world.queue("other").await;
    for n in 0..10 {
        world.send(&url, &n.to_string()).await;
    }
    kill(&world, &url).await;
    let body = json!({
        "SourceArn": arn("dead"), "DestinationArn": arn("other"), "MaxNumberOfMessagesPerSecond": 2,
    });
    let handle = world.json("StartMessageMoveTask", body).await["TaskHandle"].clone();
    world.settle().await;
    assert_eq!(world.counts(&other).await.0, 1);
    world.clock.advance(std::time::Duration::from_millis(500));
    world.settle().await;
    assert_eq!(world.counts(&other).await.0, 2);
    let running = tasks(&world).await.remove(0);
    assert_eq!((&running["Status"], &running["TaskHandle"]), (&json!("RUNNING"), &handle));
    assert_eq!(running["MaxNumberOfMessagesPerSecond"], 2);
    assert_eq!(running["DestinationArn"], arn("other"));
    let cancelled = world.json("CancelMessageMoveTask", json!({"TaskHandle": handle})).await;
    assert_eq!(cancelled["ApproximateNumberOfMessagesMoved"], 2);
    assert_eq!(tasks(&world).await[0]["Status"], "CANCELLING");
    world.pass(1);
    world.settle().await;
    let ended = tasks(&world).await.remove(0);
    assert_eq!(ended["Status"], "CANCELLED");
    assert!(world.counts(&other).await.0 <= 3);
    let again = world.ask("CancelMessageMoveTask", json!({"TaskHandle": handle})).await.error();
    assert_eq!(again.0, "UnsupportedOperation");
    assert_eq!(world.counts(&dead).await.0 + world.counts(&other).await.0, 10);
}

#[tokio::test]
async fn a_move_task_whose_destination_goes_away_fails_and_loses_nothing() {
    let (world, url, dead) = with_dead_letters().await;
    let other = world.queue("other").await;
    for n in 0..5 {
        world.send(&url, &n.to_string()).await;
    }
    kill(&world, &url).await;
    let body = json!({
        "SourceArn": arn("dead"), "DestinationArn": arn("other"), "MaxNumberOfMessagesPerSecond": 1,
    });
    world.json("StartMessageMoveTask", body).await;
    world.settle().await;
    world.json("DeleteQueue", json!({"QueueUrl": other})).await;
    world.pass(1);
    world.settle().await;
    let failed = tasks(&world).await.remove(0);
    assert_eq!(failed["Status"], "FAILED");
    assert_eq!(failed["FailureReason"], "AWS.SimpleQueueService.NonExistentQueue");
    assert_eq!(world.counts(&dead).await.0, 4);
}

#[tokio::test]
async fn a_message_that_came_from_nowhere_cannot_be_brought_back() {
    let (world, _, dead) = with_dead_letters().await;
    world.send(&dead, "sent here").await;
    world.json("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await;
    world.settle().await;
    let failed = tasks(&world).await.remove(0);
    assert_eq!(failed["FailureReason"], "CouldNotDetermineMessageSource");
    world.pass(30);
    assert_eq!(world.bodies(&dead, 1).await, ["sent here"]);
}

#[tokio::test]
async fn only_dead_letters_of_queues_that_exist_can_be_moved() {
    let (world, url, _) = with_dead_letters().await;
    let refused = async |body: Value| world.ask("StartMessageMoveTask", body).await.error();
    let (code, text) = refused(json!({"SourceArn": arn("q")})).await;
    assert_eq!(code, "InvalidParameterValueException");
    assert_eq!(text, "Source queue must be configured as a Dead Letter Queue.");
    assert_eq!(refused(json!({"SourceArn": arn("gone")})).await.0, "ResourceNotFoundException");
    assert_eq!(refused(json!({"SourceArn": "x"})).await.0, "ResourceNotFoundException");
    let gone = json!({"SourceArn": arn("dead"), "DestinationArn": arn("gone")});
    assert_eq!(refused(gone).await.0, "ResourceNotFoundException");
    for bad in [0, 501] {
        let body = json!({"SourceArn": arn("dead"), "MaxNumberOfMessagesPerSecond": bad});
        assert_eq!(refused(body).await.0, "InvalidParameterValueException");
    }
    let body = json!({"TaskHandle": "x"});
    let (code, _) = world.ask("CancelMessageMoveTask", body).await.error();
    assert_eq!(code, "InvalidParameterValueException");
    assert_eq!(world.bodies(&url, 1).await.len(), 0);
}

#[tokio::test]
async fn a_task_of_a_node_that_is_gone_is_carried_on_by_another() {
    let (world, url, dead) = with_dead_letters().await;
    for n in 0..4 {
        world.send(&url, &n.to_string()).await;
    }
    kill(&world, &url).await;
    let body = json!({"SourceArn": arn("dead"), "MaxNumberOfMessagesPerSecond": 1});
    world.json("StartMessageMoveTask", body).await;
    world.settle().await;
    // The node ends without finishing its task.
    world.sqs.close();
    world.settle().await;
    assert_eq!(world.counts(&dead).await.0, 3);
    let soon = world.another_node().await;
    soon.settle().await;
    assert_eq!(tasks(&soon).await[0]["Status"], "RUNNING");
    assert_eq!(soon.counts(&dead).await.0, 3, "it may only be slow");
    world.pass(31);
    let later = world.another_node().await;
    for _ in 0..10 {
        later.settle().await;
        later.pass(1);
    }
    later.settle().await;
    let done = tasks(&later).await.remove(0);
    assert_eq!(done["Status"], "COMPLETED");
    assert_eq!(done["ApproximateNumberOfMessagesMoved"], 4);
    let mut got = bodies(&later.receive(&url, 10).await);
    got.sort();
    assert_eq!(got, ["0", "1", "2", "3"]);
}

#[tokio::test]
async fn a_task_is_carried_on_when_its_node_is_started_again_at_once() {
    let (world, url, dead) = with_dead_letters().await;
    for n in 0..4 {
        world.send(&url, &n.to_string()).await;
    }
    kill(&world, &url).await;
    let body = json!({"SourceArn": arn("dead"), "MaxNumberOfMessagesPerSecond": 1});
    world.json("StartMessageMoveTask", body).await;
    world.settle().await;
    world.sqs.close();
    world.settle().await;
    // Nobody asks about the task.
    let again = world.another_node().await;
    for _ in 0..40 {
        again.settle().await;
        again.pass(1);
    }
    again.settle().await;
    assert_eq!((again.counts(&url).await.0, again.counts(&dead).await.0), (4, 0));
}

#[tokio::test]
async fn a_source_is_not_listed_any_more_once_its_task_has_ended() {
    // What is taken off the list later could be the entry of the next task.
    let (world, store) = World::slow_over().await;
    let clock = world.clock.clone();
    while_time_passes(&clock, world.queue("dead")).await;
    let policy = json!({"RedrivePolicy": redrive("dead", 1)});
    while_time_passes(&clock, world.create("q", policy)).await;
    let start = world.json("StartMessageMoveTask", json!({"SourceArn": arn("dead")}));
    while_time_passes(&clock, start).await;
    let rows = async |partition: &str| {
        let query = Query::new(Partition::new(partition).unwrap());
        collect(store.as_ref(), query, 10).await.unwrap()
    };
    for _ in 0..200 {
        let task = rows("sqs-moves/us-east-1/000000000000/dead").await.remove(0);
        if task.attributes.text("row").unwrap().contains("COMPLETED") {
            assert!(rows("sqs-moves").await.is_empty());
            return;
        }
        assert_eq!(rows("sqs-moves").await.len(), 1);
        world.steps(1).await;
    }
    unreachable!("the task does not end");
}

#[tokio::test]
async fn each_clients_dead_letters_are_brought_back_to_it() {
    let world = World::new().await;
    let dead = world.create("dead", json!({"Millpond.Clients": "true"})).await;
    let attributes = json!({"RedrivePolicy": redrive("dead", 2), "Millpond.Clients": "true"});
    let url = world.create("q", attributes).await;
    let shops = ["a", "b"].map(|shop| format!("{url}/{shop}"));
    for shop in &shops {
        world.send(shop, shop).await;
    }
    for _ in 0..3 {
        for shop in &shops {
            world.receive(shop, 10).await;
        }
        world.pass(30);
    }
    assert_eq!(world.counts(&format!("{dead}/a")).await, (1, 0, 0));
    world.json("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await;
    world.settle().await;
    let done = tasks(&world).await.remove(0);
    assert_eq!(
        (&done["Status"], &done["ApproximateNumberOfMessagesMoved"]),
        (&json!("COMPLETED"), &json!(2))
    );
    for shop in &shops {
        assert_eq!(world.bodies(shop, 10).await, [shop.as_str()]);
    }
}
