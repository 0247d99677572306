//! Messages: what can be sent, what comes back, digests, sizes, batches.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use crate::common::{World, bodies};
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_sent_comes_back_with_its_digests() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let attributes = json!({
        "colour": {"DataType": "String.name", "StringValue": "blau 🎈"},
        "count": {"DataType": "Number", "StringValue": "12.5"},
        "photo": {"DataType": "Binary.gif", "BinaryValue": "AAEC"},
    });
    let sent = world
        .json("SendMessage", json!({
            "QueueUrl": url, "MessageBody": "hello", "MessageAttributes": attributes,
            "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}},
        }))
        .await;
    assert_eq!(sent["MD5OfMessageBody"], "5d41402abc4b2a76b9719d911017c592");
    assert_eq!(sent.get("SequenceNumber"), None);
    assert!(sent["MD5OfMessageSystemAttributes"].is_string());
    world.pass(3);
    let got = &world.receive(&url, 1).await[0];
    assert_eq!(got["MessageId"], sent["MessageId"]);
    assert_eq!(got["Body"], "hello");
    assert_eq!(got["MD5OfBody"], sent["MD5OfMessageBody"]);
    assert_eq!(got["MessageAttributes"], attributes);
    assert_eq!(got["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"]);
    assert_eq!(
        got["Attributes"],
        json!({
            "SenderId": "000000000000", "SentTimestamp": "1800000000000",
            "ApproximateReceiveCount": "1", "ApproximateFirstReceiveTimestamp": "1800000003000",
            "AWSTraceHeader": "Root=1",
        })
    );
}

#[tokio::test]
async fn system_attributes_never_change_the_digest_of_the_others() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let mut message = json!({
        "QueueUrl": url, "MessageBody": "x",
        "MessageAttributes": {"timestamp": {"DataType": "Number", "StringValue": "1493147359900"}},
    });
    let plain = world.json("SendMessage", message.clone()).await;
    assert_eq!(plain["MD5OfMessageAttributes"], "235c5c510d26fb653d073faed50ae77c");
    assert_eq!(plain.get("MD5OfMessageSystemAttributes"), None);
    message["MessageSystemAttributes"] =
        json!({"AWSTraceHeader": {"DataType": "String", "StringValue": "x"}});
    let traced = world.json("SendMessage", message.clone()).await;
    assert_eq!(traced["MD5OfMessageAttributes"], plain["MD5OfMessageAttributes"]);
    message["MessageSystemAttributes"] =
        json!({"Colour": {"DataType": "String", "StringValue": "x"}});
    assert_eq!(world.ask("SendMessage", message).await.error().0, "InvalidParameterValueException");
}

#[tokio::test]
async fn without_attributes_there_is_no_digest_of_them() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let sent = world.send(&url, "x").await;
    assert_eq!(
        sent.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["MD5OfMessageBody", "MessageId"]
    );
    let got = world.json("ReceiveMessage", json!({"QueueUrl": url})).await;
    let keys: Vec<_> = got["Messages"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["Body", "MD5OfBody", "MessageId", "ReceiptHandle"]);
    assert_eq!(world.json("ReceiveMessage", json!({"QueueUrl": url})).await, json!({}));
}

#[tokio::test]
async fn a_digest_covers_the_attributes_that_are_returned() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let text = |value: &str| json!({"DataType": "String", "StringValue": value});
    let attributes = json!({"a.one": text("1"), "a.two": text("2"), "b": text("3")});
    let one = json!({"QueueUrl": url, "MessageBody": "x", "MessageAttributes": {"b": text("3")}});
    let only_b = world.json("SendMessage", one).await["MD5OfMessageAttributes"].clone();
    world.json("PurgeQueue", json!({"QueueUrl": url})).await;
    world
        .json(
            "SendMessage",
            json!({"QueueUrl": url, "MessageBody": "x", "MessageAttributes": attributes}),
        )
        .await;
    let ask = async |names: Value| {
        let ask = json!({"MessageAttributeNames": names, "VisibilityTimeout": 0});
        let got = world.receive_with(&url, ask).await.remove(0);
        let names: Vec<String> = got["MessageAttributes"]
            .as_object()
            .map(|m| m.keys().cloned().collect())
            .unwrap_or_default();
        (names, got.get("MD5OfMessageAttributes").cloned())
    };
    assert_eq!(ask(json!(["b"])).await, (vec!["b".into()], Some(only_b)));
    assert_eq!(ask(json!(["a.*"])).await.0, ["a.one", "a.two"]);
    assert_eq!(ask(json!([".*"])).await.0.len(), 3);
    assert_eq!(ask(json!(["All"])).await.0.len(), 3);
    assert_eq!(ask(json!(["c", "a"])).await, (vec![], None), "nothing matches: no digest");
}

#[tokio::test]
async fn either_name_of_the_parameter_chooses_system_attributes() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.send(&url, "x").await;
    let ask = json!({
        "QueueUrl": url, "AttributeNames": ["SentTimestamp"],
        "MessageSystemAttributeNames": ["ApproximateReceiveCount"],
    });
    let got = world.json("ReceiveMessage", ask).await;
    let names: Vec<_> =
        got["Messages"][0]["Attributes"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["ApproximateReceiveCount", "SentTimestamp"]);
    let unknown = json!({"QueueUrl": url, "AttributeNames": ["Colour"]});
    assert_eq!(world.ask("ReceiveMessage", unknown).await.error().0, "InvalidAttributeName");
}

#[tokio::test]
async fn bodies_are_text_of_allowed_characters() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let odd = "\t\n\r \u{20} \u{d7ff} \u{e000} \u{fffd} 🎈 \u{10ffff} <&\"'>";
    world.send(&url, odd).await;
    assert_eq!(world.bodies(&url, 1).await, [odd]);
    for bad in ["\u{0}", "a\u{b}", "\u{fffe}", "\u{ffff}"] {
        let refused = world.ask("SendMessage", json!({"QueueUrl": url, "MessageBody": bad})).await;
        assert_eq!(refused.error().0, "InvalidMessageContents", "{bad:?}");
    }
    for missing in [json!({"QueueUrl": url}), json!({"QueueUrl": url, "MessageBody": ""})] {
        let (code, text) = world.ask("SendMessage", missing).await.error();
        assert_eq!(code, "MissingRequiredParameterException");
        assert_eq!(text, "The request must contain the parameter MessageBody.");
    }
}

#[tokio::test]
async fn size_counts_body_and_attributes_and_the_limit_is_inclusive() {
    let world = World::new().await;
    let url = world.create("q", json!({"MaximumMessageSize": "1024"})).await;
    let message = |body: usize| {
        json!({
            "QueueUrl": url, "MessageBody": "x".repeat(body),
            // 1 + 6 + 3 bytes.
            "MessageAttributes": {"n": {"DataType": "String", "StringValue": "abc"}},
            "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "not counted"}},
        })
    };
    world.ask("SendMessage", message(1_014)).await.ok();
    let (code, text) = world.ask("SendMessage", message(1_015)).await.error();
    assert_eq!(code, "InvalidParameterValueException");
    assert_eq!(
        text,
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    );
    let large = world.queue("large").await;
    world.send(&large, &"x".repeat(1_048_576)).await;
    let over = json!({"QueueUrl": large, "MessageBody": "x".repeat(1_048_577)});
    let (_, text) = world.ask("SendMessage", over).await.error();
    assert!(text.ends_with("Message must be shorter than 1048576 bytes."), "{text}");
    assert_eq!(world.receive(&large, 1).await[0]["Body"].as_str().unwrap().len(), 1_048_576);
}

#[tokio::test]
async fn at_most_ten_attributes() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let message = |count: usize| {
        let all: serde_json::Map<_, _> = (0..count)
            .map(|n| (format!("a{n}"), json!({"DataType": "String", "StringValue": "x"})))
            .collect();
        json!({"QueueUrl": url, "MessageBody": "x", "MessageAttributes": all})
    };
    world.ask("SendMessage", message(10)).await.ok();
    let (_, text) = world.ask("SendMessage", message(11)).await.error();
    assert_eq!(text, "Number of message attributes [11] exceeds the allowed maximum [10].");
}

fn entry(id: &str, body: &str) -> Value {
    json!({"Id": id, "MessageBody": body})
}

#[tokio::test]
async fn each_entry_of_a_batch_has_its_outcome() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let entries = json!([entry("good", "x"), entry("bad", "\u{1}"), {"Id": "late", "MessageBody": "y", "DelaySeconds": 901}]);
    let answer = world.json("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
    assert_eq!(answer["Successful"].as_array().unwrap().len(), 1);
    assert_eq!(answer["Successful"][0]["Id"], "good");
    assert!(answer["Successful"][0]["MessageId"].is_string());
    assert_eq!(answer["Failed"][0]["Id"], "bad");
    assert_eq!(answer["Failed"][0]["Code"], "InvalidMessageContents");
    assert_eq!(answer["Failed"][0]["SenderFault"], true);
    assert_eq!(answer["Failed"][1]["Code"], "InvalidParameterValue");
    let fine = json!({"QueueUrl": url, "Entries": [entry("a", "x")]});
    assert_eq!(world.json("SendMessageBatch", fine).await.get("Failed"), None);
    let none = json!({"QueueUrl": url, "Entries": [entry("a", "\u{1}")]});
    assert_eq!(world.json("SendMessageBatch", none).await.get("Successful"), None);
}

#[tokio::test]
async fn batches_have_one_to_ten_entries_with_ids_of_their_own() {
    let world = World::new().await;
    let url = world.queue("q").await;
    let refused = async |entries: Value| {
        world.ask("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await.error()
    };
    let (code, text) = refused(json!([])).await;
    assert_eq!(code, "EmptyBatchRequest");
    assert_eq!(text, "There should be at least one SendMessageBatchRequestEntry in the request.");
    let many: Vec<Value> = (0..11).map(|n| entry(&n.to_string(), "x")).collect();
    let (code, text) = refused(json!(many)).await;
    assert_eq!(code, "TooManyEntriesInBatchRequest");
    assert_eq!(text, "Maximum number of entries per request are 10. You have sent 11.");
    let (code, text) = refused(json!([entry("a", "x"), entry("a", "y")])).await;
    assert_eq!((code.as_str(), text.as_str()), ("BatchEntryIdsNotDistinct", "Id a repeated."));
    for bad in ["", "a b", "ä", &"x".repeat(81)] {
        assert_eq!(refused(json!([entry(bad, "x")])).await.0, "InvalidBatchEntryId", "{bad}");
    }
    let half = "x".repeat(600_000);
    let (code, text) = refused(json!([entry("a", &half), entry("b", &half)])).await;
    assert_eq!(code, "BatchRequestTooLong");
    assert_eq!(
        text,
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1200000 bytes."
    );
    let (code, _) = refused(json!([entry("a", &"x".repeat(1_048_577)), entry("b", "y")])).await;
    assert_eq!(code, "BatchRequestTooLong", "also for one that is too long by itself");
    assert_eq!(world.counts(&url).await, (0, 0, 0), "nothing of a refused batch was sent");
}

#[tokio::test]
async fn messages_are_deleted_and_changed_in_batches() {
    let world = World::new().await;
    let url = world.queue("q").await;
    for n in 0..3 {
        world.send(&url, &n.to_string()).await;
    }
    let got = world.receive(&url, 10).await;
    assert_eq!(bodies(&got), ["0", "1", "2"]);
    let entries = json!([
        {"Id": "a", "ReceiptHandle": got[0]["ReceiptHandle"], "VisibilityTimeout": 0},
        {"Id": "b", "ReceiptHandle": "x", "VisibilityTimeout": 0},
        {"Id": "c", "ReceiptHandle": got[1]["ReceiptHandle"], "VisibilityTimeout": 43_201},
        {"Id": "d", "ReceiptHandle": got[1]["ReceiptHandle"], "VisibilityTimeout": 100},
    ]);
    let body = json!({"QueueUrl": url, "Entries": entries});
    let answer = world.json("ChangeMessageVisibilityBatch", body).await;
    assert_eq!(answer["Successful"], json!([{"Id": "a"}, {"Id": "d"}]));
    assert_eq!(answer["Failed"][0]["Code"], "ReceiptHandleIsInvalid");
    assert_eq!(answer["Failed"][1]["Code"], "InvalidParameterValue");
    assert_eq!(world.counts(&url).await, (1, 2, 0));
    let entries: Vec<Value> = got
        .iter()
        .enumerate()
        .map(|(n, message)| json!({"Id": n.to_string(), "ReceiptHandle": message["ReceiptHandle"]}))
        .chain([json!({"Id": "x", "ReceiptHandle": "garbage"})])
        .collect();
    let answer =
        world.json("DeleteMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
    assert_eq!(answer["Successful"].as_array().unwrap().len(), 3);
    assert_eq!(answer["Failed"][0]["Id"], "x");
    assert_eq!(world.counts(&url).await, (0, 0, 0));
}

#[tokio::test]
async fn bounds_of_parameters_are_named() {
    let world = World::new().await;
    let url = world.queue("q").await;
    for (name, bad, reason) in [
        ("MaxNumberOfMessages", 11, "Must be between 1 and 10, if provided."),
        ("MaxNumberOfMessages", 0, "Must be between 1 and 10, if provided."),
        ("WaitTimeSeconds", 21, "Must be >= 0 and <= 20, if provided."),
        ("VisibilityTimeout", 43_201, "Must be >= 0 and <= 43200, if provided."),
        ("VisibilityTimeout", -1, "Must be >= 0 and <= 43200, if provided."),
    ] {
        let mut body = json!({"QueueUrl": url});
        body[name] = json!(bad);
        let (code, text) = world.ask("ReceiveMessage", body).await.error();
        assert_eq!(code, "InvalidParameterValueException");
        assert_eq!(text, format!("Value {bad} for parameter {name} is invalid. Reason: {reason}"));
    }
}
