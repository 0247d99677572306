//! Millpond's own attributes, tenants of standard queues, and several nodes over one store.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{World, bodies, while_time_passes};
use millpond_store::{Partition, Query, collect};
use serde_json::{Value, json};

#[tokio::test]
async fn a_queue_can_be_lifo() {
    let world = World::new().await;
    let url = world.create("q", json!({"Millpond.Order": "lifo"})).await;
    for n in 0..3 {
        world.send(&url, &n.to_string()).await;
        world.pass(1);
    }
    assert_eq!(world.bodies(&url, 1).await, ["2"]);
    world.set(&url, json!({"Millpond.Order": "fifo"})).await.ok();
    assert_eq!(world.bodies(&url, 1).await, ["0"]);
    assert_eq!(world.attributes(&url).await["Millpond.Order"], "fifo");
    world.set(&url, json!({"Millpond.Order": ""})).await.ok();
    assert_eq!(world.attributes(&url).await.get("Millpond.Order"), None);
}

#[tokio::test]
async fn a_message_says_its_priority_in_an_attribute() {
    let world = World::new().await;
    let url =
        world.create("q", json!({"Millpond.Order": "priority", "Millpond.Priorities": "3"})).await;
    let send = async |body: &str, priority: &str| {
        let attributes =
            json!({"Millpond.Priority": {"DataType": "Number", "StringValue": priority}});
        world
            .ask(
                "SendMessage",
                json!({"QueueUrl": url, "MessageBody": body, "MessageAttributes": attributes}),
            )
            .await
    };
    send("low", "0").await.ok();
    send("high", "2").await.ok();
    send("middle", "1").await.ok();
    assert_eq!(send("too high", "3").await.error().0, "InvalidParameterValueException");
    let mut order = Vec::new();
    for _ in 0..3 {
        order.extend(world.bodies(&url, 1).await);
    }
    assert_eq!(order, ["high", "middle", "low"]);
    let changed = world.set(&url, json!({"Millpond.Priorities": "4"})).await.error();
    assert_eq!(changed.0, "InvalidAttributeValue");
}

#[tokio::test]
async fn clients_of_a_queue_do_not_see_each_other() {
    let world = World::new().await;
    let url = world.create("q", json!({"Millpond.Clients": "true"})).await;
    let (shop, other) = (format!("{url}/shop-7"), format!("{url}/shop%2F8"));
    world.send(&shop, "for 7").await;
    world.send(&other, "for 8").await;
    assert_eq!(world.bodies(&url, 10).await, [""; 0]);
    assert_eq!(world.bodies(&shop, 10).await, ["for 7"]);
    let got = world.receive(&other, 10).await;
    assert_eq!(bodies(&got), ["for 8"]);
    assert_eq!(world.counts(&other).await, (0, 1, 0));
    assert_eq!(world.delete(&shop, &got[0]).await.error().0, "ReceiptHandleIsInvalid");
    world.delete(&other, &got[0]).await.ok();
    let plain = world.queue("plain").await;
    let refused = json!({"QueueUrl": format!("{plain}/shop-7"), "MessageBody": "x"});
    assert_eq!(world.ask("SendMessage", refused).await.error().0, "InvalidAddress");
}

#[tokio::test]
async fn old_messages_can_be_shed_to_a_side_queue() {
    let world = World::new().await;
    let side = world.queue("side").await;
    let url =
        world.create("q", json!({"Millpond.ShedAge": "1.5", "Millpond.ShedQueue": "side"})).await;
    world.send(&url, "old").await;
    world.pass(2);
    world.send(&url, "new").await;
    assert_eq!(world.bodies(&url, 10).await, ["new"]);
    assert_eq!(world.bodies(&side, 10).await, ["old"]);
}

#[tokio::test]
async fn what_is_handed_out_at_a_time_can_be_limited() {
    let world = World::new().await;
    let url = world.create("q", json!({"Millpond.Running": "2"})).await;
    for n in 0..5 {
        world.send(&url, &n.to_string()).await;
    }
    let got = world.receive(&url, 10).await;
    assert_eq!(got.len(), 2);
    assert_eq!(world.receive(&url, 10).await.len(), 0);
    world.delete(&url, &got[0]).await.ok();
    assert_eq!(world.receive(&url, 10).await.len(), 1);
}

#[tokio::test]
async fn what_does_not_make_sense_is_refused_by_name() {
    let world = World::new().await;
    let refused = async |name: &str, value: &str, fifo: bool| {
        let mut attributes = json!({name: value});
        if fifo {
            attributes["FifoQueue"] = json!("true");
        }
        let queue = if fifo { "q.fifo" } else { "q" };
        world
            .ask("CreateQueue", json!({"QueueName": queue, "Attributes": attributes}))
            .await
            .error()
    };
    for (name, value) in [
        ("Millpond.Order", "random"),
        ("Millpond.Priorities", "11"),
        ("Millpond.Priorities", "0"),
        ("Millpond.Lanes", "300"),
        ("Millpond.ShedAge", "-1"),
        ("Millpond.Rate", "fast"),
        ("Millpond.Rate", "-1"),
        ("Millpond.StatusKeep", "0"),
        ("Millpond.ShedQueue", "a b"),
        ("Millpond.Clients", "yes"),
    ] {
        let (code, text) = refused(name, value, false).await;
        assert_eq!(code, "InvalidAttributeValue", "{name}={value}: {text}");
    }
    let (code, text) = refused("Millpond.Colour", "1", false).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("InvalidAttributeName", "Unknown Attribute Millpond.Colour.")
    );
    let (code, text) = refused("Millpond.Order", "lifo", true).await;
    assert_eq!(code, "InvalidAttributeValue");
    assert!(text.contains("order of a strict queue is fifo"), "{text}");
}

#[tokio::test]
async fn a_noisy_tenant_does_not_keep_quiet_ones_waiting() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let send = async |group: &str, count: usize| {
        for batch in 0..count.div_ceil(10) {
            let entries: Vec<Value> = (0..10.min(count - batch * 10))
                .map(
                    |n| json!({"Id": n.to_string(), "MessageBody": group, "MessageGroupId": group}),
                )
                .collect();
            world.json("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
        }
    };
    send("noisy", 400).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.extend(world.receive(&url, 10).await);
    }
    assert_eq!(held[0]["Attributes"]["MessageGroupId"], "noisy");
    assert_eq!(held[0]["Attributes"].get("SequenceNumber"), None);
    send("quiet", 5).await;
    world.send(&url, "nobody's").await;
    let got = bodies(&world.receive(&url, 10).await);
    assert_eq!(&got[..6], ["quiet", "quiet", "quiet", "quiet", "quiet", "nobody's"]);
    assert!(got[6..].iter().all(|body| body == "noisy"), "nobody is throttled: {got:?}");
    assert_eq!(got.len(), 10);
    // Groups of a standard queue do not exclude each other, and nothing is lost.
    let mut rest = 0;
    loop {
        let more = world.receive(&url, 10).await.len();
        rest += more;
        if more == 0 {
            break;
        }
    }
    assert_eq!(rest, 406 - 50);
}

#[tokio::test]
async fn two_nodes_serve_one_store() {
    let one = World::new().await;
    let two = one.another_node().await;
    let url = one.queue("q").await;
    for n in 0..20 {
        let node = if n % 2 == 0 { &one } else { &two };
        node.send(&url, &n.to_string()).await;
    }
    let mut got = Vec::new();
    for node in [&one, &two, &one, &two] {
        got.extend(node.receive(&url, 5).await);
    }
    let mut all: Vec<u32> = bodies(&got).iter().map(|body| body.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    for (n, message) in got.iter().enumerate() {
        // A handle is good on every node.
        let node = if n % 2 == 0 { &two } else { &one };
        node.delete(&url, message).await.ok();
    }
    assert_eq!(two.counts(&url).await, (0, 0, 0));
}

#[tokio::test]
async fn changes_of_one_node_reach_the_others_within_seconds() {
    let one = World::new().await;
    let two = one.another_node().await;
    let url = one.queue("q").await;
    two.send(&url, "x").await;
    one.set(&url, json!({"VisibilityTimeout": "77", "DelaySeconds": "5"})).await.ok();
    one.json("TagQueue", json!({"QueueUrl": url, "Tags": {"a": "b"}})).await;
    // Both change at once: neither loses the other's change.
    two.set(&url, json!({"ReceiveMessageWaitTimeSeconds": "1"})).await.ok();
    let all =
        one.json("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})).await;
    assert_eq!(all["Attributes"]["VisibilityTimeout"], "77");
    one.pass(5);
    assert_eq!(one.attributes(&url).await["ReceiveMessageWaitTimeSeconds"], "1");
    assert_eq!(two.json("ListQueueTags", json!({"QueueUrl": url})).await["Tags"]["a"], "b");
    one.json("DeleteQueue", json!({"QueueUrl": url})).await;
    one.pass(11);
    let refused = two.ask("SendMessage", json!({"QueueUrl": url, "MessageBody": "x"})).await;
    assert_eq!(refused.error().0, "QueueDoesNotExist");
    one.pass(60);
    one.queue("q").await;
    two.send(&url, "new").await;
    assert_eq!(one.counts(&url).await.0, 1);
}

#[tokio::test]
async fn a_queue_that_was_half_made_or_half_deleted_is_made_whole() {
    let world = World::new().await;
    let url = world.create("q", json!({"VisibilityTimeout": "50"})).await;
    world.send(&url, "x").await;
    // The row is there and the queue is not: a node died between the two.
    let queues = millpond_queue::Queues::new(&world.ground);
    queues.open("q").await.unwrap().delete().await.unwrap();
    let fresh = world.another_node().await;
    assert_eq!(fresh.counts(&url).await, (0, 0, 0));
    fresh.send(&url, "y").await;
    assert_eq!(queues.open("q").await.unwrap().config().await.unwrap().visibility.as_secs(), 50);
    // The queue is configured otherwise than its row says.
    let native = queues.open("q").await.unwrap();
    let config = native.config().await.unwrap();
    let other = millpond_queue::QueueConfig {
        visibility: std::time::Duration::from_secs(9),
        ..(*config).clone()
    };
    native.update_config(other).await.unwrap();
    world.another_node().await.counts(&url).await;
    assert_eq!(queues.open("q").await.unwrap().config().await.unwrap().visibility.as_secs(), 50);
}

#[tokio::test]
async fn a_deletion_that_is_cut_off_anywhere_leaves_nothing_behind() {
    let mut cut_off = 0;
    for steps in 0..20 {
        let world = World::slow().await;
        let clock = world.clock.clone();
        let url = while_time_passes(&clock, world.queue("q")).await;
        for n in 0..20 {
            while_time_passes(&clock, world.send(&url, &n.to_string())).await;
        }
        let queues = millpond_queue::Queues::new(&world.ground);
        let native = while_time_passes(&clock, queues.open("q")).await.unwrap();
        let lane = format!("q/q~{}//0", native.incarnation());
        let left = async || {
            let query = Query::new(Partition::new(lane.clone()).unwrap());
            let all = collect(world.ground.store.as_ref(), query, 100);
            while_time_passes(&clock, all).await.unwrap().len()
        };
        let call = world.spawn("DeleteQueue", &json!({"QueueUrl": url}));
        world.steps(steps).await;
        // The client hangs up, and the node ends.
        call.abort();
        world.sqs.close();
        world.steps(10).await;
        let before = left().await;
        let next = while_time_passes(&clock, world.another_node()).await;
        let exists =
            while_time_passes(&clock, next.ask("GetQueueUrl", json!({"QueueName": "q"}))).await;
        if exists.status == 200 {
            assert_eq!(before, 20, "after {steps} steps nothing has happened");
            continue;
        }
        cut_off += usize::from(before > 0);
        next.pass(60);
        world.steps(100).await;
        assert_eq!(left().await, 0, "after {steps} steps");
    }
    assert!(cut_off > 0, "no deletion was cut off half-way");
}

#[tokio::test]
async fn messages_that_have_ended_are_removed_though_nobody_receives() {
    let world = World::new().await;
    let url = world
        .create("q", json!({"MessageRetentionPeriod": "60", "Millpond.Clients": "true"}))
        .await;
    for url in [url.clone(), format!("{url}/shop")] {
        world.send(&url, "x").await;
    }
    let queues = millpond_queue::Queues::new(&world.ground);
    let native = queues.open("q").await.unwrap();
    let left = async |client: &str| native.client(client).unwrap().peek(10).await.unwrap().len();
    assert_eq!((left("").await, left("shop").await), (1, 1));
    for _ in 0..2 {
        world.settle().await;
        world.pass(60);
    }
    for _ in 0..10 {
        world.settle().await;
    }
    assert_eq!((left("").await, left("shop").await), (0, 0));
}

#[tokio::test]
async fn a_side_queue_must_exist() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.fifo("f.fifo", json!({})).await;
    for (name, part) in
        [("gone", "Millpond.ShedQueue"), ("f.fifo", "Millpond.ShedQueue"), ("q", "itself")]
    {
        let (code, text) = world.set(&url, json!({"Millpond.ShedQueue": name})).await.error();
        assert_eq!(code, "InvalidAttributeValue");
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(world.attributes(&url).await.get("Millpond.ShedQueue"), None);
}

#[tokio::test]
async fn queues_can_be_declared_without_a_signature() {
    use std::collections::BTreeMap;
    let keys = millpond_sqs::AccessKeys { keys: vec![millpond_sqs::AccessKey::new("a", "b")] };
    let options =
        millpond_sqs::SqsOptions { keys: Some(keys), ..millpond_sqs::SqsOptions::default() };
    let guarded = World::with(options).await;
    let declare = async |name: &str, delay: &str| {
        let attributes = BTreeMap::from([("DelaySeconds".to_owned(), delay.to_owned())]);
        guarded.sqs.declare(name, attributes, BTreeMap::new(), "http://x:1/").await
    };
    assert_eq!(declare("q", "5").await.unwrap(), "http://x:1/000000000000/q");
    declare("q", "6").await.unwrap();
    let open = guarded.another_node().await;
    assert_eq!(open.attributes("http://x/000000000000/q").await["DelaySeconds"], "6");
    let refused = declare("q", "901").await.unwrap_err().to_string();
    assert_eq!(refused, "queue \"q\": Invalid value for the parameter DelaySeconds.");
    assert!(declare("a b", "1").await.is_err());
}

#[tokio::test]
async fn what_was_not_sent_through_sqs_has_the_digest_of_what_is_shown() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let queues = millpond_queue::Queues::new(&world.ground);
    let native = queues.open("q").await.unwrap().main().unwrap();
    native.send(millpond_queue::Message::new(vec![b'a', 0xff])).await.unwrap();
    let got = world.receive(&url, 1).await;
    assert_eq!(got[0]["Body"], "a\u{fffd}");
    // The MD5 of "a" and the replacement character.
    assert_eq!(got[0]["MD5OfBody"], "ef175e9b596d296034dda690087252f8");
}

#[tokio::test]
async fn when_the_store_fails_clients_are_told_to_try_again_and_no_more() {
    use millpond_store::{Fault, FaultPlan};
    let world = World::new().await;
    let url = world.queue("q").await;
    let (failing, store) = world.failing_node(millpond_sqs::SqsOptions::default()).await;
    for (fault, status, code) in [
        (Fault::Definite, 503, "ServiceUnavailableException"),
        (Fault::Throttle, 400, "RequestThrottled"),
    ] {
        // Whichever request fails, and however often it is tried: the answer is of the protocol and says nothing of the
        // store's.
        for request in 0..4 {
            store.follow(FaultPlan::once(request, fault));
            let send = json!({"QueueUrl": url, "MessageBody": "x"});
            let call = failing.spawn("SendMessage", &send);
            // It may be tried again within, after a while.
            for _ in 0..100 {
                failing.settle().await;
                if call.is_finished() {
                    break;
                }
                failing.pass(1);
            }
            assert!(call.is_finished(), "request {request}, {fault:?}");
            let answer = call.await.unwrap();
            if answer.status != 200 {
                assert_eq!(
                    (answer.status, answer.error().0.as_str()),
                    (status, code),
                    "{}",
                    answer.text
                );
                assert!(!answer.text.contains("injected"), "{}", answer.text);
            }
            // Others are served on.
            store.follow(FaultPlan::default());
            failing.send(&url, "y").await;
        }
    }
    let metrics = failing.sqs.metrics();
    let refused = metrics.requests.keys().filter(|(_, code)| *code != "OK").count();
    assert!(refused > 0, "no failure was seen at all: {metrics:?}");
}
