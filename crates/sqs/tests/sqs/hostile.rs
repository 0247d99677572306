//! Bytes that no client sends: whatever comes, there is an answer, and the server goes on.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use std::path::Path;

use crate::common::{Answer, World};
use bytes::Bytes;
use http::{HeaderValue, Request};
use millpond_sqs::{ACTIONS, AccessKey, AccessKeys, SqsOptions};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};
use serde_json::json;

/// What is sent, and in which of the ways that a fuzzer tries.
async fn feed(world: &World, kind: &str, bytes: &[u8]) -> Option<Answer> {
    let request = match kind {
        "form" => Request::post("/000000000000/q").body(Bytes::copy_from_slice(bytes)).unwrap(),
        "json" => {
            let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
            let action = ACTIONS[usize::from(*first) % ACTIONS.len()];
            let body = Bytes::copy_from_slice(rest);
            Request::post("/000000000000/q")
                .header("x-amz-target", format!("AmazonSQS.{action}"))
                .body(body)
                .unwrap()
        }
        "receipt" => {
            let handle = String::from_utf8_lossy(bytes).into_owned();
            let body = json!({"ReceiptHandle": handle, "VisibilityTimeout": 1, "TaskHandle": handle, "NextToken": handle});
            let actions = [
                "DeleteMessage",
                "ChangeMessageVisibility",
                "CancelMessageMoveTask",
                "ListDeadLetterSourceQueues",
            ];
            let action = actions[bytes.len() % actions.len()];
            Request::post("/000000000000/q")
                .header("x-amz-target", format!("AmazonSQS.{action}"))
                .body(Bytes::from(body.to_string()))
                .unwrap()
        }
        "authorization" => {
            let header = HeaderValue::from_bytes(bytes).ok()?;
            Request::post("/?Action=ListQueues")
                .header("host", "x")
                .header("x-amz-date", "20270115T080000Z")
                .header("authorization", header)
                .body(Bytes::new())
                .unwrap()
        }
        "url" => {
            let url = String::from_utf8_lossy(bytes).into_owned();
            let body = json!({"QueueUrl": url, "SourceArn": url, "MessageBody": "x"});
            Request::post("/")
                .header("x-amz-target", "AmazonSQS.SendMessage")
                .body(Bytes::from(body.to_string()))
                .unwrap()
        }
        "policy" => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let names = ["Policy", "RedrivePolicy", "RedriveAllowPolicy", "Millpond.Rate"];
            let body = json!({"Attributes": {names[bytes.len() % names.len()]: text}});
            Request::post("/000000000000/q")
                .header("x-amz-target", "AmazonSQS.SetQueueAttributes")
                .body(Bytes::from(body.to_string()))
                .unwrap()
        }
        _ => return None,
    };
    let _ = world.sqs.may_wait(&request);
    Some(world.raw(request).await)
}

async fn world() -> World {
    let world = World::with(SqsOptions { quiet_periods: false, ..SqsOptions::default() }).await;
    world.queue("q").await;
    world
}

/// A world in which signatures are looked at.
async fn guarded() -> World {
    let keys = Some(AccessKeys { keys: vec![AccessKey::new("AKID", "secret")] });
    World::with(SqsOptions { keys, ..SqsOptions::default() }).await
}

/// Whether XML 1.0 has this character.
const fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// An answer is one of the protocol's, and the fault is never the server's.
fn check(answer: &Answer) {
    assert!(answer.status < 500, "{}", answer.text);
    assert_eq!(answer.headers["x-amzn-requestid"].len(), 36);
    if answer.text.starts_with('<') {
        let end = answer.text.rsplit_once("</").unwrap().1;
        assert!(end.ends_with("Response>"), "{}", answer.text);
        assert!(answer.text.chars().all(is_xml), "{}", answer.text);
    } else {
        assert!(answer.json().is_object());
    }
}

fn run(kind: &str, bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let world = if kind == "authorization" { guarded().await } else { world().await };
        // A receive of a hostile request may wait: time passes.
        let clock = world.clock.clone();
        let answered = tokio::select! {
            biased;
            answered = feed(&world, kind, bytes) => answered,
            () = async { loop { tokio::task::yield_now().await; clock.advance(std::time::Duration::from_secs(1)); } } => None,
        };
        if let Some(answer) = answered {
            check(&answer);
            if kind == "authorization" {
                assert!(answer.status >= 400, "nobody is let in: {}", answer.text);
            }
        }
    });
}

/// Forms that are nearly right.
fn form() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        proptest::sample::select(ACTIONS.to_vec()).prop_map(|action| format!("Action={action}")),
        "(Attribute|Tag|MessageAttribute|SendMessageBatchRequestEntry)(\\.[0-9]{1,3})?(\\.(Name|Key|Value|Id|MessageBody))?=[a-zA-Z%0-9]{0,9}",
        "[A-Za-z.%0-9]{0,20}=.{0,10}",
    ];
    vec(name, 0..8).prop_map(|parts| parts.join("&").into_bytes())
}

/// JSON that is nearly right, behind a byte that chooses the action.
fn json_text() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        "-?[0-9]{1,20}".prop_map(String::from),
        "\"[a-zA-Z0-9:/.*]{0,20}\"",
        "null|true|\\[\\]|\\{\\}|\\[\"All\"\\]|\\{\"a\":\"b\"\\}|\\[\\{\"Id\":\"a\"\\}\\]"
            .prop_map(String::from),
    ];
    let name = proptest::sample::select(vec![
        "QueueUrl",
        "QueueName",
        "Attributes",
        "AttributeNames",
        "MessageBody",
        "Entries",
        "ReceiptHandle",
        "VisibilityTimeout",
        "DelaySeconds",
        "MessageAttributes",
        "MaxNumberOfMessages",
        "WaitTimeSeconds",
        "Tags",
        "TagKeys",
        "tags",
        "Label",
        "AWSAccountIds",
        "Actions",
        "SourceArn",
        "TaskHandle",
        "NextToken",
        "MaxResults",
        "MessageGroupId",
        "MessageDeduplicationId",
    ]);
    let fields = vec((name, value), 0..8).prop_map(|fields| {
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    });
    (any::<u8>(), fields).prop_map(|(action, text)| [vec![action], text.into_bytes()].concat())
}

fn authorization() -> impl Strategy<Value = Vec<u8>> {
    "(AWS4-HMAC-SHA256)? ?(Credential=[A-Z]{0,4}(/[a-z0-9]{0,9}){0,5})?,? ?(SignedHeaders=[a-z;-]{0,20})?,? ?(Signature=[0-9a-fA-F]{0,70})?"
        .prop_map(String::into_bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_as_a_form(bytes in prop_oneof![vec(any::<u8>(), 0..200), form()]) {
        run("form", &bytes);
    }

    #[test]
    fn any_bytes_as_json(bytes in prop_oneof![vec(any::<u8>(), 0..200), json_text(), json_text()]) {
        run("json", &bytes);
    }

    #[test]
    fn any_bytes_as_handles(bytes in prop_oneof![vec(any::<u8>(), 0..100), "[A-Za-z0-9_-]{40,90}".prop_map(String::into_bytes)]) {
        run("receipt", &bytes);
    }

    #[test]
    fn any_bytes_as_a_signature(bytes in prop_oneof![vec(any::<u8>(), 0..200), authorization()]) {
        run("authorization", &bytes);
    }

    #[test]
    fn any_bytes_as_an_address(bytes in prop_oneof![vec(any::<u8>(), 0..60), "[a-z]{0,5}(://)?[a-z:]{0,5}(/[0-9]{12}|/queue)?(/[a-z%2f]{0,9}){0,3}".prop_map(String::into_bytes)]) {
        run("url", &bytes);
    }

    #[test]
    fn any_bytes_as_a_policy(bytes in prop_oneof![vec(any::<u8>(), 0..60), "\\{\"[a-zA-Z]{0,20}\": ?([0-9]{1,5}|\"[a-z:0-9]{0,30}\"|\\[\\])\\}".prop_map(String::into_bytes)]) {
        run("policy", &bytes);
    }

    #[test]
    fn a_receipt_with_one_byte_changed_is_refused(at in any::<proptest::sample::Index>(), to in "[A-Za-z0-9_-]") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = world().await;
            let url = "http://x/000000000000/q";
            world.send(url, "x").await;
            let message = world.receive(url, 1).await.remove(0);
            let good = message["ReceiptHandle"].as_str().unwrap().to_owned();
            let mut bad = good.clone();
            let at = at.index(bad.len());
            bad.replace_range(at..=at, &to);
            let answer = world.ask("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": bad})).await;
            prop_assert!(good == bad || answer.error().0 == "ReceiptHandleIsInvalid");
            Ok(())
        })?;
    }
}

#[test]
fn what_fuzzers_have_found_is_answered() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut files = 0;
    for kind in ["form", "json", "receipt", "authorization", "url", "policy"] {
        for entry in
            std::fs::read_dir(corpus.join(kind)).expect("the corpus is part of the repository")
        {
            let path = entry.unwrap().path();
            run(kind, &std::fs::read(&path).unwrap());
            files += 1;
        }
    }
    assert!(files >= 30, "only {files} files in the corpus");
}
