//! Queues: creating, finding, listing, changing, purging and deleting them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{World, arn, redrive};
use http::Request;
use millpond_sqs::SqsOptions;
use millpond_store::{Fault, FaultPlan};
use serde_json::json;

#[tokio::test]
async fn a_created_queue_is_found_again_and_has_the_defaults() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    assert_eq!(url, "http://queue.test:9324/000000000000/orders");
    let found = world.json("GetQueueUrl", json!({"QueueName": "orders"})).await;
    assert_eq!(found["QueueUrl"], url);
    assert_eq!(
        world.attributes(&url).await,
        json!({
            "QueueArn": arn("orders"),
            "VisibilityTimeout": "30", "MaximumMessageSize": "1048576",
            "MessageRetentionPeriod": "345600", "DelaySeconds": "0",
            "ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true",
            "CreatedTimestamp": "1800000000", "LastModifiedTimestamp": "1800000000",
            "ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0",
            "ApproximateNumberOfMessagesDelayed": "0",
        })
    );
}

#[tokio::test]
async fn a_fifo_queue_has_attributes_of_its_own() {
    let world = World::new().await;
    let url = world.fifo("orders.fifo", json!({})).await;
    let all = world.attributes(&url).await;
    assert_eq!(all["FifoQueue"], "true");
    assert_eq!(all["ContentBasedDeduplication"], "false");
    assert_eq!(all["DeduplicationScope"], "queue");
    assert_eq!(all["FifoThroughputLimit"], "perQueue");
    // Switching to high throughput and back.
    let high =
        json!({"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"});
    world.set(&url, high).await.ok();
    assert_eq!(world.attributes(&url).await["FifoThroughputLimit"], "perMessageGroupId");
    let low = json!({"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"});
    world.set(&url, low).await.ok();
    let half = world.set(&url, json!({"FifoThroughputLimit": "perMessageGroupId"})).await;
    assert_eq!(half.error().0, "InvalidAttributeValue");
}

#[tokio::test]
async fn names_and_kinds_must_fit() {
    let world = World::new().await;
    let refused = async |name: &str, attributes| {
        let body = json!({"QueueName": name, "Attributes": attributes});
        world.ask("CreateQueue", body).await.error()
    };
    for bad in ["", "a b", "a.b", "ä", "orders.fifo", &"x".repeat(81)] {
        assert_eq!(refused(bad, json!({})).await.0, "InvalidParameterValueException", "{bad}");
    }
    let (code, text) = refused("orders", json!({"FifoQueue": "true"})).await;
    assert_eq!(code, "InvalidParameterValueException");
    assert!(text.contains("must end with .fifo suffix"), "{text}");
    let (code, text) = refused("orders", json!({"FifoQueue": "false"})).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("InvalidAttributeName", "Unknown Attribute FifoQueue.")
    );
    let (code, text) = refused("orders", json!({"ContentBasedDeduplication": "true"})).await;
    assert_eq!(code, "InvalidAttributeName");
    assert_eq!(text, "Unknown Attribute ContentBasedDeduplication.");
    let missing = world.ask("CreateQueue", json!({})).await.error();
    assert_eq!(missing.0, "MissingRequiredParameterException");
    assert_eq!(missing.1, "The request must contain the parameter QueueName.");
    world.queue(&"x".repeat(80)).await;
    world.fifo(&format!("{}.fifo", "x".repeat(75)), json!({})).await;
}

#[tokio::test]
async fn creating_a_queue_again_succeeds_unless_an_attribute_differs() {
    let world = World::new().await;
    let url = world.create("orders", json!({"VisibilityTimeout": "40"})).await;
    assert_eq!(world.queue("orders").await, url, "what is omitted does not differ");
    assert_eq!(
        world.create("orders", json!({"VisibilityTimeout": "40", "DelaySeconds": "0"})).await,
        url
    );
    let body = json!({"QueueName": "orders", "Attributes": {"VisibilityTimeout": "41"}});
    let (code, text) = world.ask("CreateQueue", body).await.error();
    assert_eq!(code, "QueueNameExists");
    assert_eq!(
        text,
        "A queue already exists with the same name and a different value for attribute VisibilityTimeout"
    );
    let fifo = world.fifo("a.fifo", json!({})).await;
    let body = json!({"QueueName": "a.fifo", "Attributes": {"FifoQueue": "true", "ContentBasedDeduplication": "true"}});
    let (_, text) = world.ask("CreateQueue", body).await.error();
    assert!(text.ends_with("attribute ContentBasedDeduplication"), "{text}");
    assert_eq!(world.fifo("a.fifo", json!({"ContentBasedDeduplication": "false"})).await, fifo);
}

#[tokio::test]
async fn a_deleted_queue_is_gone_at_once_and_comes_back_empty_after_a_minute() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    world.send(&url, "x").await;
    world.json("DeleteQueue", json!({"QueueUrl": url})).await;
    for (action, body) in [
        ("DeleteQueue", json!({"QueueUrl": url})),
        ("GetQueueUrl", json!({"QueueName": "orders"})),
        ("SendMessage", json!({"QueueUrl": url, "MessageBody": "x"})),
        ("ReceiveMessage", json!({"QueueUrl": url})),
        ("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})),
        ("TagQueue", json!({"QueueUrl": url, "Tags": {"a": "b"}})),
    ] {
        assert_eq!(world.ask(action, body).await.error().0, "QueueDoesNotExist", "{action}");
    }
    assert_eq!(world.json("ListQueues", json!({})).await, json!({}));
    world.pass(59);
    let early = world.ask("CreateQueue", json!({"QueueName": "orders"})).await.error();
    assert_eq!(early.0, "QueueDeletedRecently");
    assert_eq!(
        early.1,
        "You must wait 60 seconds after deleting a queue before you can create another with the same name."
    );
    world.pass(1);
    world.queue("orders").await;
    assert_eq!(world.counts(&url).await, (0, 0, 0));
}

#[tokio::test]
async fn without_quiet_periods_nobody_waits() {
    let options = SqsOptions { quiet_periods: false, ..SqsOptions::default() };
    let world = World::with(options).await;
    let url = world.queue("orders").await;
    for _ in 0..3 {
        world.json("PurgeQueue", json!({"QueueUrl": url})).await;
        world.json("DeleteQueue", json!({"QueueUrl": url})).await;
        world.create("orders", json!({"DelaySeconds": "1"})).await;
    }
}

#[tokio::test]
async fn purging_removes_what_waits_is_in_flight_or_delayed_once_a_minute() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    world.send(&url, "in flight").await;
    let held = world.receive(&url, 1).await;
    world.send(&url, "waits").await;
    world
        .json("SendMessage", json!({"QueueUrl": url, "MessageBody": "later", "DelaySeconds": 9}))
        .await;
    assert_eq!(world.counts(&url).await, (1, 1, 1));
    world.json("PurgeQueue", json!({"QueueUrl": url})).await;
    assert_eq!(world.counts(&url).await, (0, 0, 0));
    world.delete(&url, &held[0]).await.ok();
    let again = world.ask("PurgeQueue", json!({"QueueUrl": url})).await.error();
    assert_eq!(again.0, "PurgeQueueInProgress");
    assert_eq!(again.1, "Only one PurgeQueue operation on orders is allowed every 60 seconds.");
    world.pass(60);
    world.json("PurgeQueue", json!({"QueueUrl": url})).await;
}

#[tokio::test]
async fn a_purge_that_failed_can_be_made_again_at_once() {
    let (world, store) = World::new().await.failing_node(SqsOptions::default()).await;
    let mut failed = 0;
    for request in 0..10 {
        let url = world.queue(&format!("q{request}")).await;
        for body in ["a", "b"] {
            world.send(&url, body).await;
        }
        // From this request on all fail.
        let faults = (request..100).map(|request| (request, Fault::Definite));
        store.follow(FaultPlan::Script(faults.collect()));
        let call = world.spawn("PurgeQueue", &json!({"QueueUrl": url}));
        // It may be tried again within, after a while.
        for _ in 0..10 {
            world.settle().await;
            if !call.is_finished() {
                world.pass(1);
            }
        }
        store.follow(FaultPlan::None);
        let first = call.await.unwrap();
        if first.status == 200 {
            continue;
        }
        assert_eq!(first.error().0, "ServiceUnavailableException");
        failed += 1;
        world.json("PurgeQueue", json!({"QueueUrl": url})).await;
        assert_eq!(world.counts(&url).await, (0, 0, 0), "request {request}");
        let third = world.ask("PurgeQueue", json!({"QueueUrl": url})).await;
        assert_eq!(third.error().0, "PurgeQueueInProgress");
    }
    assert!(failed > 2, "the purge was cut off only {failed} times");
}

#[tokio::test]
async fn queues_are_listed_by_prefix_and_page() {
    let world = World::new().await;
    assert_eq!(world.json("ListQueues", json!({})).await, json!({}), "no queue: no list");
    for name in ["b-2", "a-1", "b-1", "b-3"] {
        world.queue(name).await;
    }
    let names = |answer: &serde_json::Value| -> Vec<String> {
        let urls = answer["QueueUrls"].as_array().cloned().unwrap_or_default();
        urls.iter()
            .map(|url| url.as_str().unwrap().rsplit_once('/').unwrap().1.to_owned())
            .collect()
    };
    let all = world.json("ListQueues", json!({})).await;
    assert_eq!(names(&all), ["a-1", "b-1", "b-2", "b-3"]);
    let ask = json!({"QueueNamePrefix": "b-", "MaxResults": 2});
    let first = world.json("ListQueues", ask.clone()).await;
    assert_eq!(names(&first), ["b-1", "b-2"]);
    let mut ask = ask;
    ask["NextToken"] = first["NextToken"].clone();
    let last = world.json("ListQueues", ask.clone()).await;
    assert_eq!(names(&last), ["b-3"]);
    assert_eq!(last.get("NextToken"), None);
    ask["NextToken"] = json!("?");
    assert_eq!(world.ask("ListQueues", ask).await.error().0, "InvalidParameterValueException");
    for bad in [0, 1_001] {
        let refused = world.ask("ListQueues", json!({"MaxResults": bad})).await;
        assert_eq!(refused.error().0, "InvalidParameterValueException", "{bad}");
    }
}

#[tokio::test]
async fn a_name_that_no_queue_can_have_is_not_found() {
    let world = World::new().await;
    world.queue("q").await;
    for name in ["x".repeat(81), "x".repeat(2_000), "a.b".to_owned()] {
        let url = format!("http://queue.test:9324/000000000000/{name}");
        for action in ["SendMessage", "ReceiveMessage", "DeleteQueue", "GetQueueAttributes"] {
            let body = json!({"QueueUrl": url, "MessageBody": "x"});
            assert_eq!(world.ask(action, body).await.error().0, "QueueDoesNotExist", "{action}");
        }
        let listed = world.json("ListQueues", json!({"QueueNamePrefix": name})).await;
        assert_eq!(listed, json!({}));
    }
}

#[tokio::test]
async fn policies_come_back_byte_for_byte_and_empty_ones_disappear() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    world.queue("dead").await;
    let policy = r#"{ "Version":"2012-10-17",  "Statement" : [ {"Zeta":1, "Alpha":2} ] }"#;
    let allow = r#"{"redrivePermission": "byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:a"]}"#;
    let redrive = redrive("dead", 3);
    world
        .set(&url, json!({"Policy": policy, "RedriveAllowPolicy": allow, "RedrivePolicy": redrive}))
        .await
        .ok();
    let all = world.attributes(&url).await;
    assert_eq!(all["Policy"], policy);
    assert_eq!(all["RedriveAllowPolicy"], allow);
    assert_eq!(all["RedrivePolicy"], redrive);
    world
        .set(&url, json!({"Policy": "", "RedriveAllowPolicy": "", "RedrivePolicy": ""}))
        .await
        .ok();
    let all = world.attributes(&url).await;
    for name in ["Policy", "RedriveAllowPolicy", "RedrivePolicy"] {
        assert_eq!(all.get(name), None, "{name}");
    }
    assert_eq!(world.set(&url, json!({"Policy": "x"})).await.error().0, "InvalidAttributeValue");
}

#[tokio::test]
async fn attributes_are_asked_for_by_name_and_changes_are_stamped() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    let none = world.json("GetQueueAttributes", json!({"QueueUrl": url})).await;
    assert_eq!(none, json!({}), "nothing asked for, nothing shown");
    let ask = json!({"QueueUrl": url, "AttributeNames": ["DelaySeconds", "Policy"]});
    let some = world.json("GetQueueAttributes", ask).await;
    assert_eq!(some, json!({"Attributes": {"DelaySeconds": "0"}}));
    let ask = json!({"QueueUrl": url, "AttributeNames": ["Colour"]});
    let unknown = world.ask("GetQueueAttributes", ask).await.error();
    assert_eq!(unknown, ("InvalidAttributeName".into(), "Unknown Attribute Colour.".into()));
    world.pass(100);
    world.set(&url, json!({"DelaySeconds": "7"})).await.ok();
    let all = world.attributes(&url).await;
    assert_eq!(all["DelaySeconds"], "7");
    assert_eq!(all["CreatedTimestamp"], "1800000000");
    assert_eq!(all["LastModifiedTimestamp"], "1800000100");
    let bad = world.set(&url, json!({"DelaySeconds": "901"})).await.error();
    assert_eq!(
        bad,
        ("InvalidAttributeValue".into(), "Invalid value for the parameter DelaySeconds.".into())
    );
    let missing = world.ask("SetQueueAttributes", json!({"QueueUrl": url})).await.error();
    assert_eq!(missing.0, "MissingRequiredParameterException");
}

#[tokio::test]
async fn a_queue_is_encrypted_in_one_way_at_a_time() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    world.set(&url, json!({"KmsMasterKeyId": "alias/mine"})).await.ok();
    let all = world.attributes(&url).await;
    assert_eq!(
        (&all["KmsMasterKeyId"], &all["SqsManagedSseEnabled"]),
        (&json!("alias/mine"), &json!("false"))
    );
    assert_eq!(all["KmsDataKeyReusePeriodSeconds"], "300");
    world.set(&url, json!({"SqsManagedSseEnabled": "true"})).await.ok();
    let all = world.attributes(&url).await;
    assert_eq!((all.get("KmsMasterKeyId"), &all["SqsManagedSseEnabled"]), (None, &json!("true")));
    for on in ["true", "True"] {
        let both = json!({"KmsMasterKeyId": "x", "SqsManagedSseEnabled": on});
        assert_eq!(world.set(&url, both).await.error().0, "InvalidAttributeValue", "{on}");
    }
}

#[tokio::test]
async fn tags_are_added_listed_and_removed() {
    let world = World::new().await;
    let body = json!({"QueueName": "orders", "tags": {"team": "a", "empty": ""}});
    let created = world.json("CreateQueue", body).await;
    let url = created["QueueUrl"].as_str().unwrap().to_owned();
    let tags = async || world.json("ListQueueTags", json!({"QueueUrl": url})).await;
    assert_eq!(tags().await, json!({"Tags": {"team": "a", "empty": ""}}));
    world.json("TagQueue", json!({"QueueUrl": url, "Tags": {"team": "b", "cost": "1"}})).await;
    world.json("UntagQueue", json!({"QueueUrl": url, "TagKeys": ["empty", "unknown"]})).await;
    assert_eq!(tags().await, json!({"Tags": {"team": "b", "cost": "1"}}));
    world.json("UntagQueue", json!({"QueueUrl": url, "TagKeys": ["team", "cost"]})).await;
    assert_eq!(tags().await, json!({}), "no tags: no list");
    let many: serde_json::Map<_, _> = (0..51).map(|n| (format!("k{n}"), json!("v"))).collect();
    let refused = world.ask("TagQueue", json!({"QueueUrl": url, "Tags": many})).await;
    assert_eq!(refused.error().0, "InvalidParameterValueException");
}

#[tokio::test]
async fn permissions_are_statements_of_the_policy() {
    let world = World::new().await;
    let url = world.queue("orders").await;
    let add = json!({
        "QueueUrl": url, "Label": "read", "AWSAccountIds": ["111111111111"], "Actions": ["ReceiveMessage"],
    });
    world.json("AddPermission", add.clone()).await;
    let text = world.attributes(&url).await["Policy"].as_str().unwrap().to_owned();
    let policy: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(policy["Version"], "2008-10-17");
    assert_eq!(policy["Id"], format!("{}/SQSDefaultPolicy", arn("orders")));
    assert_eq!(policy["Statement"][0]["Action"], "SQS:ReceiveMessage");
    assert_eq!(policy["Statement"][0]["Principal"]["AWS"], "arn:aws:iam::111111111111:root");
    let again = world.ask("AddPermission", add).await.error();
    assert_eq!(again.1, "Value read for parameter Label is invalid. Reason: Already exists.");
    let unknown = json!({"QueueUrl": url, "Label": "write"});
    let unknown = world.ask("RemovePermission", unknown).await.error();
    assert_eq!(unknown.1, "Value write for parameter Label is invalid. Reason: can't find label.");
    let actions: Vec<&str> = ["SendMessage"; 8].to_vec();
    let many = json!({"QueueUrl": url, "Label": "x", "AWSAccountIds": ["111111111111"], "Actions": actions});
    assert_eq!(world.ask("AddPermission", many).await.error().0, "OverLimit");
    world.json("RemovePermission", json!({"QueueUrl": url, "Label": "read"})).await;
    assert_eq!(world.attributes(&url).await.get("Policy"), None);
}

#[tokio::test]
async fn regions_and_accounts_are_name_spaces() {
    let world = World::new().await;
    let signed = |key: &str, region: &str, action: &str, body: serde_json::Value| {
        let mut request: Request<bytes::Bytes> = crate::common::json_request(action, &body);
        let credential = format!(
            "AWS4-HMAC-SHA256 Credential={key}/20270115/{region}/sqs/aws4_request, SignedHeaders=host, Signature=0"
        );
        request.headers_mut().insert("authorization", credential.parse().unwrap());
        request.headers_mut().insert("x-amz-date", "20270115T080000Z".parse().unwrap());
        request
    };
    let create = |key: &str, region: &str| {
        signed(key, region, "CreateQueue", json!({"QueueName": "orders"}))
    };
    let mut urls = Vec::new();
    for (key, region) in [("any", "us-east-1"), ("any", "eu-west-1"), ("123456789012", "us-east-1")]
    {
        let created = world.raw(create(key, region)).await.ok().json();
        let url = created["QueueUrl"].as_str().unwrap().to_owned();
        let send = json!({"QueueUrl": url, "MessageBody": format!("{key} {region}")});
        world.raw(signed(key, region, "SendMessage", send)).await.ok();
        urls.push((key, region, url));
    }
    assert_eq!(urls[0].2, urls[1].2, "a URL does not say the region");
    assert!(urls[2].2.ends_with("/123456789012/orders"));
    for (key, region, url) in urls {
        let receive = json!({"QueueUrl": url, "MaxNumberOfMessages": 10});
        let got = world.raw(signed(key, region, "ReceiveMessage", receive)).await.ok().json();
        assert_eq!(
            crate::common::bodies(got["Messages"].as_array().unwrap()),
            [format!("{key} {region}")]
        );
        let ask = json!({"QueueUrl": url, "AttributeNames": ["QueueArn"]});
        let shown = world.raw(signed(key, region, "GetQueueAttributes", ask)).await.ok().json();
        let account = if key == "any" { "000000000000" } else { key };
        assert_eq!(
            shown["Attributes"]["QueueArn"],
            format!("arn:aws:sqs:{region}:{account}:orders")
        );
    }
    // Another account's queue, by its owner.
    let owned = json!({"QueueName": "orders", "QueueOwnerAWSAccountId": "123456789012"});
    let found = world.json("GetQueueUrl", owned).await;
    assert!(found["QueueUrl"].as_str().unwrap().ends_with("/123456789012/orders"));
}

#[tokio::test]
async fn a_queue_that_was_not_made_through_sqs_is_taken_in_when_it_is_what_is_asked_for() {
    let world = World::new().await;
    let queues = millpond_queue::Queues::new(&world.ground);
    queues.create("native", millpond_queue::QueueConfig::default()).await.unwrap();
    let refused = world.ask("CreateQueue", json!({"QueueName": "native"})).await.error();
    assert_eq!(refused.0, "QueueNameExists");
    let missing = world.ask("GetQueueUrl", json!({"QueueName": "native"})).await.error();
    assert_eq!(missing.0, "QueueDoesNotExist", "what was refused left nothing behind");
    // What a queue of SQS is below, made by somebody else, with a message in it.
    world.queue("like-this").await;
    let like = queues.open("like-this").await.unwrap().config().await.unwrap();
    let alike = queues.create("alike", (*like).clone()).await.unwrap();
    alike.main().unwrap().send(millpond_queue::Message::new("x")).await.unwrap();
    let url = world.queue("alike").await;
    assert_eq!(world.bodies(&url, 10).await, ["x"]);
    let found = world.json("GetQueueUrl", json!({"QueueName": "alike"})).await;
    assert_eq!(found["QueueUrl"], url);
}
