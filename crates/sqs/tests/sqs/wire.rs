//! The wire itself: encodings, addresses, and the shape of answers and errors.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "test code, with long tables"
)]

use crate::common::{Answer, World, form_request, json_request, matches_fixture};
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

const URL: &str = "http://queue.test:9324/000000000000/q";

#[tokio::test]
async fn both_encodings_do_the_same() {
    let world = World::new().await;
    let created = world
        .form(
            "/",
            &[
                ("Action", "CreateQueue"),
                ("Version", "2012-11-05"),
                ("QueueName", "q"),
                ("Attribute.1.Name", "DelaySeconds"),
                ("Attribute.1.Value", "0"),
                ("Tag.1.Key", "team"),
                ("Tag.1.Value", "a"),
            ],
        )
        .await
        .ok();
    assert_eq!(created.element("QueueUrl"), URL);
    assert_eq!(world.json("ListQueueTags", json!({"QueueUrl": URL})).await["Tags"]["team"], "a");
    let body = "a\r\n <&> \"q\" 🎈 \u{7f}\u{85}\u{9f}";
    let sent = world
        .form(
            "/",
            &[
                ("Action", "SendMessage"),
                ("QueueUrl", URL),
                ("MessageBody", body),
                ("MessageAttribute.1.Name", "n"),
                ("MessageAttribute.1.Value.DataType", "String"),
                ("MessageAttribute.1.Value.StringValue", "v"),
            ],
        )
        .await
        .ok();
    let got = world.receive_with(URL, json!({"VisibilityTimeout": 0})).await;
    assert_eq!(got[0]["Body"], body);
    assert_eq!(got[0]["MessageId"], sent.element("MessageId"));
    assert_eq!(got[0]["MD5OfMessageAttributes"], sent.element("MD5OfMessageAttributes"));
    let received = world
        .form(
            "/",
            &[
                ("Action", "ReceiveMessage"),
                ("QueueUrl", URL),
                ("AttributeName.1", "All"),
                ("MessageAttributeName.1", "All"),
                ("MaxNumberOfMessages", "10"),
            ],
        )
        .await
        .ok();
    assert_eq!(
        received.element("Body"),
        "a&#xD;\n &lt;&amp;&gt; &quot;q&quot; 🎈 &#x7F;&#x85;&#x9F;"
    );
    assert!(received.text.contains(
        "<MessageAttribute><Name>n</Name><Value><DataType>String</DataType><StringValue>v</StringValue></Value></MessageAttribute>"
    ));
    assert!(
        received.text.contains(
            "<Attribute><Name>ApproximateReceiveCount</Name><Value>2</Value></Attribute>"
        )
    );
    let handle = received.element("ReceiptHandle");
    let delete =
        [("Action", "DeleteMessage"), ("QueueUrl", URL), ("ReceiptHandle", handle.as_str())];
    world.form("/", &delete).await.ok();
    assert_eq!(world.counts(URL).await, (0, 0, 0));
}

#[tokio::test]
async fn every_action_is_answered_in_both_encodings() {
    let world = World::new().await;
    world.queue("q").await;
    world.queue("dead").await;
    world.set(URL, json!({"RedrivePolicy": crate::common::redrive("dead", 1)})).await.ok();
    let dead = crate::common::arn("dead");
    let forms: &[&[(&str, &str)]] = &[
        &[("Action", "CreateQueue"), ("QueueName", "other")],
        &[("Action", "GetQueueUrl"), ("QueueName", "q")],
        &[("Action", "ListQueues"), ("MaxResults", "1")],
        &[("Action", "GetQueueAttributes"), ("AttributeName.1", "All")],
        &[
            ("Action", "SetQueueAttributes"),
            ("Attribute.Name", "DelaySeconds"),
            ("Attribute.Value", "0"),
        ],
        &[("Action", "SendMessage"), ("MessageBody", "x"), ("DelaySeconds", "0")],
        &[
            ("Action", "SendMessageBatch"),
            ("SendMessageBatchRequestEntry.1.Id", "a"),
            ("SendMessageBatchRequestEntry.1.MessageBody", "x"),
            ("SendMessageBatchRequestEntry.2.Id", "b"),
            ("SendMessageBatchRequestEntry.2.MessageBody", "\u{1}"),
        ],
        &[("Action", "ReceiveMessage"), ("MaxNumberOfMessages", "1")],
        &[
            ("Action", "DeleteMessageBatch"),
            ("DeleteMessageBatchRequestEntry.1.Id", "a"),
            ("DeleteMessageBatchRequestEntry.1.ReceiptHandle", "x"),
        ],
        &[
            ("Action", "ChangeMessageVisibilityBatch"),
            ("ChangeMessageVisibilityBatchRequestEntry.1.Id", "a"),
            ("ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle", "x"),
            ("ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout", "1"),
        ],
        &[("Action", "TagQueue"), ("Tag.1.Key", "k"), ("Tag.1.Value", "v")],
        &[("Action", "ListQueueTags")],
        &[("Action", "UntagQueue"), ("TagKey.1", "k")],
        &[
            ("Action", "AddPermission"),
            ("Label", "l"),
            ("AWSAccountId.1", "111111111111"),
            ("ActionName.1", "*"),
        ],
        &[("Action", "RemovePermission"), ("Label", "l")],
        &[("Action", "ListDeadLetterSourceQueues")],
        &[("Action", "StartMessageMoveTask"), ("SourceArn", &dead)],
        &[("Action", "ListMessageMoveTasks"), ("SourceArn", &dead)],
        &[("Action", "PurgeQueue")],
        &[("Action", "DeleteQueue")],
    ];
    for form in forms {
        let action = form[0].1;
        let answer = world.form("/000000000000/q", form).await.ok();
        assert_eq!(answer.headers["content-type"], "text/xml");
        assert!(answer.text.starts_with(&format!(
            "<?xml version=\"1.0\"?><{action}Response xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">"
        )), "{}", answer.text);
        let id = answer.headers["x-amzn-requestid"].to_str().unwrap();
        assert!(answer.text.ends_with(&format!(
            "<ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata></{action}Response>"
        )), "{}", answer.text);
        world.settle().await;
    }
    for (action, form) in [
        ("DeleteMessage", vec![("ReceiptHandle", "x")]),
        ("ChangeMessageVisibility", vec![("ReceiptHandle", "x"), ("VisibilityTimeout", "1")]),
        ("CancelMessageMoveTask", vec![("TaskHandle", "x")]),
    ] {
        let mut all = vec![("Action", action)];
        all.extend(form);
        assert!(world.form("/000000000000/dead", &all).await.status >= 400, "{action}");
    }
}

#[tokio::test]
async fn requests_go_to_the_root_or_to_a_queues_own_path() {
    let world = World::new().await;
    world.queue("q").await;
    world.queue("other").await;
    for path in ["/000000000000/q", "/queue/q", "http://queue.test:9324/queue/q"] {
        world.form(path, &[("Action", "SendMessage"), ("MessageBody", "form")]).await.ok();
        let mut request = json_request("SendMessage", &json!({"MessageBody": "json"}));
        *request.uri_mut() = path.parse().unwrap();
        world.raw(request).await.ok();
    }
    assert_eq!(world.counts(URL).await.0, 6);
    // What the parameters say counts more than the path.
    let other = "http://elsewhere/000000000000/other";
    let form = [("Action", "SendMessage"), ("MessageBody", "x"), ("QueueUrl", other)];
    world.form("/000000000000/q", &form).await.ok();
    assert_eq!(world.counts(other).await.0, 1);
    // Without a signature, by GET, as a browser does.
    let get = Request::get("/000000000000/q?Action=ReceiveMessage&MaxNumberOfMessages=2")
        .header("host", "queue.test:9324")
        .body(Bytes::new())
        .unwrap();
    let answer = world.raw(get).await.ok();
    assert_eq!(answer.text.matches("<Message>").count(), 2);
    let nowhere = world.form("/", &[("Action", "SendMessage"), ("MessageBody", "x")]).await;
    assert_eq!(nowhere.error().0, "MissingParameter");
    let address = json!({"QueueUrl": "http://queue.test/q", "MessageBody": "x"});
    let bad = world.ask("SendMessage", address).await;
    assert_eq!(bad.error().0, "InvalidAddress");
    assert_eq!(bad.error().1, "The address http://queue.test/q is not valid for this endpoint.");
}

#[tokio::test]
async fn urls_are_built_from_what_the_client_called() {
    let world = World::new().await;
    let ask = |headers: &[(&str, &str)]| {
        let mut request = json_request("CreateQueue", &json!({"QueueName": "q"}));
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    };
    for (headers, expected) in [
        (vec![("host", "sqs")], "http://sqs/000000000000/q"),
        (vec![("host", "10.0.0.7:9324")], "http://10.0.0.7:9324/000000000000/q"),
        (
            vec![("x-forwarded-host", "q.example.com"), ("x-forwarded-proto", "https")],
            "https://q.example.com/000000000000/q",
        ),
    ] {
        let answer = world.raw(ask(&headers)).await.ok().json();
        assert_eq!(answer["QueueUrl"], expected);
    }
}

/// A fixture, an action, and its parameters in either encoding.
type Case<'a> = (&'a str, &'a str, Value, Vec<(&'a str, &'a str)>);

async fn error_of(
    world: &World,
    action: &str,
    json: Value,
    form: &[(&str, &str)],
) -> (Answer, Answer) {
    let mut all = vec![("Action", action)];
    all.extend(form);
    (world.ask(action, json).await, world.form("/", &all).await)
}

#[tokio::test]
async fn errors_have_the_shape_that_clients_expect() {
    let world = World::new().await;
    world.queue("q").await;
    let cases: Vec<Case<'_>> = vec![
        ("no_queue", "GetQueueUrl", json!({"QueueName": "gone"}), vec![("QueueName", "gone")]),
        ("missing", "CreateQueue", json!({}), vec![]),
        (
            "parameter",
            "ReceiveMessage",
            json!({"QueueUrl": URL, "MaxNumberOfMessages": 11}),
            vec![("QueueUrl", URL), ("MaxNumberOfMessages", "11")],
        ),
        (
            "exists",
            "CreateQueue",
            json!({"QueueName": "q", "Attributes": {"DelaySeconds": "1"}}),
            vec![
                ("QueueName", "q"),
                ("Attribute.1.Name", "DelaySeconds"),
                ("Attribute.1.Value", "1"),
            ],
        ),
        (
            "attribute_name",
            "SetQueueAttributes",
            json!({"QueueUrl": URL, "Attributes": {"Colour": "1"}}),
            vec![("QueueUrl", URL), ("Attribute.1.Name", "Colour"), ("Attribute.1.Value", "1")],
        ),
        (
            "attribute_value",
            "SetQueueAttributes",
            json!({"QueueUrl": URL, "Attributes": {"DelaySeconds": "x"}}),
            vec![
                ("QueueUrl", URL),
                ("Attribute.1.Name", "DelaySeconds"),
                ("Attribute.1.Value", "x"),
            ],
        ),
        (
            "handle",
            "DeleteMessage",
            json!({"QueueUrl": URL, "ReceiptHandle": "a<b"}),
            vec![("QueueUrl", URL), ("ReceiptHandle", "a<b")],
        ),
        (
            "contents",
            "SendMessage",
            json!({"QueueUrl": URL, "MessageBody": "\u{1}"}),
            vec![("QueueUrl", URL), ("MessageBody", "\u{1}")],
        ),
        (
            "empty_batch",
            "SendMessageBatch",
            json!({"QueueUrl": URL, "Entries": []}),
            vec![("QueueUrl", URL)],
        ),
        (
            "not_found",
            "ListMessageMoveTasks",
            json!({"SourceArn": crate::common::arn("gone")}),
            vec![("SourceArn", "arn:aws:sqs:us-east-1:000000000000:gone")],
        ),
        (
            "address",
            "ReceiveMessage",
            json!({"QueueUrl": "http://x/"}),
            vec![("QueueUrl", "http://x/")],
        ),
    ];
    for (name, action, json, form) in cases {
        let (json, query) = error_of(&world, action, json, &form).await;
        matches_fixture(&format!("{name}.json"), &json);
        matches_fixture(&format!("{name}.xml"), &query);
    }
    world.json("PurgeQueue", json!({"QueueUrl": URL})).await;
    let (json, query) =
        error_of(&world, "PurgeQueue", json!({"QueueUrl": URL}), &[("QueueUrl", URL)]).await;
    matches_fixture("purge.json", &json);
    matches_fixture("purge.xml", &query);
    let unknown = world.ask("MakeCoffee", json!({})).await;
    matches_fixture("unknown_action.json", &unknown);
    matches_fixture("unknown_action.xml", &world.form("/", &[("Action", "MakeCoffee")]).await);
    let mut broken = json_request("SendMessage", &json!({}));
    *broken.body_mut() = Bytes::from_static(b"{\"QueueUrl\": ");
    matches_fixture("malformed.json", &world.raw(broken).await);
}

#[tokio::test]
async fn results_have_the_shape_that_clients_expect() {
    let world = World::new().await;
    let created = world.ask("CreateQueue", json!({"QueueName": "q"})).await;
    matches_fixture("created.json", &created);
    matches_fixture(
        "created.xml",
        &world.form("/", &[("Action", "CreateQueue"), ("QueueName", "q")]).await,
    );
    matches_fixture(
        "received_nothing.json",
        &world.ask("ReceiveMessage", json!({"QueueUrl": URL})).await,
    );
    let nothing = world.form("/", &[("Action", "ReceiveMessage"), ("QueueUrl", URL)]).await;
    matches_fixture("received_nothing.xml", &nothing);
    let done = world
        .form(
            "/",
            &[
                ("Action", "SetQueueAttributes"),
                ("QueueUrl", URL),
                ("Attribute.1.Name", "DelaySeconds"),
                ("Attribute.1.Value", "1"),
            ],
        )
        .await;
    matches_fixture("done.xml", &done);
    let urls = world.form("/", &[("Action", "ListQueues")]).await;
    matches_fixture("listed.xml", &urls);
}

#[tokio::test]
async fn requests_are_counted_by_action_and_code() {
    let world = World::new().await;
    let url = world.queue("q").await;
    world.send(&url, "x").await;
    let got = world.receive(&url, 1).await;
    world.delete(&url, &got[0]).await.ok();
    world.ask("GetQueueUrl", json!({"QueueName": "gone"})).await;
    world.ask("MakeCoffee", json!({})).await;
    let metrics = world.sqs.metrics();
    assert_eq!(metrics.requests[&("CreateQueue", "OK")], 1);
    assert_eq!(metrics.requests[&("GetQueueUrl", "QueueDoesNotExist")], 1);
    assert_eq!(metrics.requests[&("Unknown", "UnknownOperationException")], 1);
    assert_eq!(
        (metrics.messages_sent, metrics.messages_received, metrics.messages_deleted),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn numbers_may_be_text_and_bodies_may_be_missing() {
    let world = World::new().await;
    let mut request = json_request("ListQueues", &json!({}));
    *request.body_mut() = Bytes::new();
    world.raw(request).await.ok();
    let url = world.queue("q").await;
    world.ask("ReceiveMessage", json!({"QueueUrl": url, "MaxNumberOfMessages": "2"})).await.ok();
    let (code, text) = world
        .ask("ReceiveMessage", json!({"QueueUrl": url, "WaitTimeSeconds": "soon"}))
        .await
        .error();
    assert_eq!(code, "InvalidParameterValueException");
    assert!(text.starts_with("Value soon for parameter WaitTimeSeconds is invalid."), "{text}");
    let wrong = world.ask("SendMessage", json!({"QueueUrl": url, "MessageBody": 7})).await;
    assert_eq!(wrong.error().0, "SerializationException");
    let path = form_request(
        "/000000000000/q",
        &[("Action", "ReceiveMessage"), ("MaxNumberOfMessages", "x")],
    );
    assert_eq!(world.raw(path).await.error().0, "InvalidParameterValue");
}
