//! Every action through the AWS SDK for Rust.

use std::collections::HashMap;

use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
    MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};
use aws_sdk_sqs::{Client, Config};

use crate::support::{PATIENCE, Server};

/// A client that never asks twice, so that a test sees what happened.
pub fn client(endpoint: &str) -> Client {
    signed_client(endpoint, "dummy", "dummy")
}

pub fn signed_client(endpoint: &str, id: &str, secret: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new(id, secret, None, None, "test"))
        .retry_config(aws_sdk_sqs::config::retry::RetryConfig::disabled())
        .timeout_config(
            aws_sdk_sqs::config::timeout::TimeoutConfig::builder()
                .operation_timeout(PATIENCE)
                .build(),
        )
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}

async fn queue(client: &Client, name: &str, attributes: &[(QueueAttributeName, &str)]) -> String {
    let mut create = client.create_queue().queue_name(name);
    for (attribute, value) in attributes {
        create = create.attributes(attribute.clone(), *value);
    }
    create.send().await.unwrap().queue_url.unwrap()
}

/// The code of the error that a call must end with.
macro_rules! code {
    ($call:expr) => {
        $call.send().await.unwrap_err().into_service_error().code().unwrap_or_default().to_owned()
    };
}

#[tokio::test]
async fn queues_are_made_found_listed_changed_tagged_and_deleted() {
    let server = Server::start(&[]);
    let client = client(&server.endpoint);
    let timeout = [(QueueAttributeName::VisibilityTimeout, "45")];
    let url = queue(&client, "first", &timeout).await;
    assert_eq!(url, format!("{}/000000000000/first", server.endpoint));
    assert_eq!(queue(&client, "first", &timeout).await, url, "creating again finds it");
    queue(&client, "second", &[]).await;

    let found = client.get_queue_url().queue_name("first").send().await.unwrap();
    assert_eq!(found.queue_url(), Some(url.as_str()));
    let listed = client.list_queues().queue_name_prefix("f").send().await.unwrap();
    assert_eq!(listed.queue_urls(), std::slice::from_ref(&url));

    let set = client.set_queue_attributes().queue_url(&url);
    set.attributes(QueueAttributeName::DelaySeconds, "3").send().await.unwrap();
    let all = client.get_queue_attributes().queue_url(&url);
    let all = all.attribute_names(QueueAttributeName::All).send().await.unwrap();
    let all: HashMap<_, _> = all.attributes.unwrap();
    assert_eq!(all[&QueueAttributeName::VisibilityTimeout], "45");
    assert_eq!(all[&QueueAttributeName::DelaySeconds], "3");
    assert_eq!(all[&QueueAttributeName::QueueArn], "arn:aws:sqs:us-east-1:000000000000:first");

    client.tag_queue().queue_url(&url).tags("team", "blue").tags("x", "y").send().await.unwrap();
    client.untag_queue().queue_url(&url).tag_keys("x").send().await.unwrap();
    let tags = client.list_queue_tags().queue_url(&url).send().await.unwrap().tags.unwrap();
    assert_eq!(tags, HashMap::from([("team".to_owned(), "blue".to_owned())]));

    let permit = client.add_permission().queue_url(&url).label("friends");
    permit.aws_account_ids("111122223333").actions("SendMessage").send().await.unwrap();
    let remove = || client.remove_permission().queue_url(&url).label("friends");
    remove().send().await.unwrap();
    assert_eq!(code!(remove()), "InvalidParameterValue");

    client.delete_queue().queue_url(&url).send().await.unwrap();
    let error = client.get_queue_url().queue_name("first").send().await.unwrap_err();
    assert!(error.into_service_error().is_queue_does_not_exist());
}

#[tokio::test]
async fn messages_are_sent_received_kept_back_and_deleted() {
    let server = Server::start(&[]);
    let client = client(&server.endpoint);
    let url = queue(&client, "messages", &[]).await;
    let number = MessageAttributeValue::builder().data_type("Number.int").string_value("7");
    let sent = client
        .send_message()
        .queue_url(&url)
        .message_body("grüß dich 🦆")
        .message_attributes("count", number.build().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(sent.md5_of_message_body().map(str::len), Some(32));
    assert_eq!(sent.md5_of_message_attributes().map(str::len), Some(32));

    let receive = || {
        let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
        receive
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All)
    };
    let got = receive().send().await.unwrap().messages.unwrap();
    let message = &got[0];
    assert_eq!(message.message_id, sent.message_id);
    assert_eq!(message.body(), Some("grüß dich 🦆"));
    assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
    let attributes = message.message_attributes().unwrap();
    assert_eq!(attributes["count"].string_value(), Some("7"));
    assert_eq!(attributes["count"].data_type(), "Number.int");
    let system = message.attributes().unwrap();
    assert_eq!(system[&MessageSystemAttributeName::ApproximateReceiveCount], "1");
    assert!(receive().send().await.unwrap().messages.is_none(), "it is leased");

    let change = client.change_message_visibility().queue_url(&url);
    let handle = message.receipt_handle().unwrap();
    change.receipt_handle(handle).visibility_timeout(0).send().await.unwrap();
    let got = receive().wait_time_seconds(5).send().await.unwrap().messages.unwrap();
    let system = got[0].attributes().unwrap();
    assert_eq!(system[&MessageSystemAttributeName::ApproximateReceiveCount], "2");
    let handle = got[0].receipt_handle().unwrap();
    client.delete_message().queue_url(&url).receipt_handle(handle).send().await.unwrap();

    let garbage = client.delete_message().queue_url(&url).receipt_handle("garbage");
    assert_eq!(code!(garbage), "ReceiptHandleIsInvalid");
    assert_eq!(
        code!(client.send_message().queue_url(&url).message_body("\u{1}")),
        "InvalidMessageContents"
    );
}

#[tokio::test]
async fn batches_are_answered_entry_by_entry_and_purge_empties() {
    let server = Server::start(&[]);
    let client = client(&server.endpoint);
    let url = queue(&client, "batches", &[]).await;
    let entry = |id: usize, body: &str| {
        let entry = SendMessageBatchRequestEntry::builder().id(format!("e{id}"));
        entry.message_body(body).build().unwrap()
    };
    let entries = [entry(0, "zero"), entry(1, "\u{1}"), entry(2, "two")].into();
    let sent = client.send_message_batch().queue_url(&url);
    let sent = sent.set_entries(Some(entries)).send().await.unwrap();
    assert_eq!(sent.successful().len(), 2);
    assert_eq!((sent.failed().len(), sent.failed()[0].id()), (1, "e1"));
    assert!(sent.failed()[0].sender_fault());

    let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
    let got = receive.send().await.unwrap().messages.unwrap();
    assert_eq!(got.len(), 2);
    let handle = |index: usize| got[index].receipt_handle().unwrap();
    let change = ChangeMessageVisibilityBatchRequestEntry::builder();
    let change = change.id("c").receipt_handle(handle(0)).visibility_timeout(100).build().unwrap();
    let changed = client.change_message_visibility_batch().queue_url(&url).entries(change);
    assert_eq!(changed.send().await.unwrap().successful().len(), 1);
    let delete = |id: &str, handle: &str| {
        let entry = DeleteMessageBatchRequestEntry::builder().id(id);
        entry.receipt_handle(handle).build().unwrap()
    };
    let deleted = client.delete_message_batch().queue_url(&url);
    let deleted = deleted.entries(delete("a", handle(0))).entries(delete("b", "garbage"));
    let deleted = deleted.send().await.unwrap();
    assert_eq!((deleted.successful().len(), deleted.failed().len()), (1, 1));
    assert_eq!(deleted.failed()[0].code(), "ReceiptHandleIsInvalid");

    let nothing = client.send_message_batch().queue_url(&url).set_entries(Some(Vec::new()));
    assert!(code!(nothing).contains("EmptyBatchRequest"));

    client.send_message().queue_url(&url).message_body("more").send().await.unwrap();
    client.purge_queue().queue_url(&url).send().await.unwrap();
    let count = QueueAttributeName::ApproximateNumberOfMessages;
    let left = client.get_queue_attributes().queue_url(&url).attribute_names(count.clone());
    assert_eq!(left.send().await.unwrap().attributes.unwrap()[&count], "0");
    assert!(code!(client.purge_queue().queue_url(&url)).contains("PurgeQueueInProgress"));
}

#[tokio::test]
async fn fifo_queues_keep_order_by_group_and_send_once() {
    let server = Server::start(&[]);
    let client = client(&server.endpoint);
    let fifo = [
        (QueueAttributeName::FifoQueue, "true"),
        (QueueAttributeName::ContentBasedDeduplication, "true"),
    ];
    let url = queue(&client, "line.fifo", &fifo).await;
    let send = |group: &str, body: &str| {
        client.send_message().queue_url(&url).message_group_id(group).message_body(body).send()
    };
    let first = send("a", "a1").await.unwrap();
    for (group, body) in [("a", "a2"), ("b", "b1"), ("a", "a1")] {
        let sent = send(group, body).await.unwrap();
        if body == "a1" {
            assert_eq!(sent.message_id, first.message_id, "a duplicate is the first one");
            assert_eq!(sent.sequence_number, first.sequence_number);
        }
    }
    let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
    let got = receive.receive_request_attempt_id("try-1").send().await.unwrap().messages.unwrap();
    let bodies: Vec<&str> = got.iter().filter_map(|message| message.body()).collect();
    assert_eq!(bodies, ["a1", "a2", "b1"]);
    assert_eq!(code!(client.send_message().queue_url(&url).message_body("x")), "MissingParameter");
}

#[tokio::test]
async fn dead_letters_are_moved_and_moved_back() {
    let server = Server::start(&["--test-clock"]);
    let client = client(&server.endpoint);
    let dead = queue(&client, "dead", &[]).await;
    let arn = "arn:aws:sqs:us-east-1:000000000000:dead";
    let policy = format!("{{\"deadLetterTargetArn\":\"{arn}\",\"maxReceiveCount\":1}}");
    let url = queue(&client, "work", &[(QueueAttributeName::RedrivePolicy, &policy)]).await;
    let sources = client.list_dead_letter_source_queues().queue_url(&dead).send().await.unwrap();
    assert_eq!(sources.queue_urls(), std::slice::from_ref(&url));

    client.send_message().queue_url(&url).message_body("poison").send().await.unwrap();
    let receive = |queue: &str| client.receive_message().queue_url(queue).send();
    assert!(receive(&url).await.unwrap().messages.is_some());
    crate::support::post(&server.address, "/test-clock/advance", "{\"seconds\": 31}");
    assert!(receive(&url).await.unwrap().messages.is_none(), "it was received too often");

    let task = client.start_message_move_task().source_arn(arn).send().await.unwrap();
    assert!(task.task_handle().is_some());
    let mut status = String::new();
    for _ in 0..600 {
        let tasks = client.list_message_move_tasks().source_arn(arn).send().await.unwrap();
        status = tasks.results()[0].status().unwrap_or_default().to_owned();
        if status != "RUNNING" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(status, "COMPLETED");
    let back = receive(&url).await.unwrap().messages.unwrap();
    assert_eq!(back[0].body(), Some("poison"));
    let cancel = client.cancel_message_move_task().task_handle("garbage");
    assert!(cancel.send().await.is_err());
}

#[tokio::test]
async fn keys_are_checked_and_limited_to_their_actions_and_queues() {
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let keys = "[[keys]]\nid = \"root\"\nsecret = \"root-secret-1\"\n[[keys]]\nid = \"sender\"\n\
                secret = \"send-secret-1\"\nactions = [\"SendMessage\", \"GetQueueUrl\"]\nqueues = [\"orders-*\"]\n";
    std::fs::write(directory.path().join("keys.toml"), keys).unwrap();
    let server = Server::start_in(directory, &["--access-keys", "keys.toml"]);
    let root = signed_client(&server.endpoint, "root", "root-secret-1");
    let orders = queue(&root, "orders-new", &[]).await;
    let bills = queue(&root, "bills", &[]).await;

    let sender = signed_client(&server.endpoint, "sender", "send-secret-1");
    sender.send_message().queue_url(&orders).message_body("one").send().await.unwrap();
    let refused = sender.send_message().queue_url(&bills).message_body("one");
    assert!(code!(refused).contains("AccessDenied"));
    assert!(code!(sender.receive_message().queue_url(&orders)).contains("AccessDenied"));

    let wrong = signed_client(&server.endpoint, "root", "another-secret");
    assert_eq!(code!(wrong.list_queues()), "SignatureDoesNotMatch");
    let unknown = signed_client(&server.endpoint, "nobody", "root-secret-1");
    assert_eq!(code!(unknown.list_queues()), "InvalidClientTokenId");
}
