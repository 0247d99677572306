//! Dead letters in an SQS queue.

use std::borrow::Cow;
use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use millpond_consumer::sink::{Letter, Sink, SinkError, SinkReceipt};
use millpond_store::Environment;

use super::batches::{self, Bounds, Fate, Outlet};
use crate::aws::Aws;
use crate::failure::{AwsError, Request};
use crate::limits::{SQS_BATCH_BYTES_MAX, SQS_BATCH_MAX, SQS_BYTES_MAX, SQS_GROUP_MAX};

/// Dead letters in an SQS queue. In a FIFO queue, a letter that is sent twice within five minutes is there once, and
/// letters of one source key are a message group. The receipt is the message's id.
#[derive(Debug, Clone)]
pub struct SqsSink {
    client: Client,
    url: String,
    fifo: bool,
    bytes_max: usize,
    environment: Environment,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    body: String,
    group: String,
    dedupe_id: String,
}

impl SqsSink {
    /// Letters go to the queue with this URL. One that ends with `.fifo` is a FIFO queue.
    #[must_use]
    pub fn new(aws: &Aws, url: impl Into<String>) -> Self {
        let url = url.into();
        let (fifo, environment) = (url.ends_with(".fifo"), aws.environment().clone());
        Self { client: aws.sqs(), url, fifo, bytes_max: SQS_BATCH_BYTES_MAX, environment }
    }

    /// The queue takes messages of so many bytes: more than 256 KiB where its `MaximumMessageSize` is more (1 MiB at
    /// most), less where that is less. Larger letters are spilled.
    #[must_use]
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max: bytes_max.min(SQS_BYTES_MAX), ..self }
    }

    fn request(&self) -> Request<'_> {
        Request { action: "sqs:SendMessage", what: &self.url }
    }
}

#[async_trait]
impl Outlet for SqsSink {
    type Entry = Entry;

    fn size(&self, entry: &Entry) -> usize {
        entry.body.len()
    }

    async fn send(&self, batch: Vec<Entry>) -> Result<Vec<Fate>, AwsError> {
        let request = self.request();
        let count = batch.len();
        let mut entries = Vec::with_capacity(count);
        for (at, entry) in batch.into_iter().enumerate() {
            let mut message =
                SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(entry.body);
            if self.fifo {
                message =
                    message.message_group_id(entry.group).message_deduplication_id(entry.dedupe_id);
            }
            entries.push(message.build().map_err(|error| request.failed(error.to_string()))?);
        }
        let send = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries));
        let answer = send.send().await.map_err(|error| request.error(&error))?;
        Ok(fates(&answer, count))
    }
}

fn fates(answer: &SendMessageBatchOutput, count: usize) -> Vec<Fate> {
    let mut known = HashMap::new();
    for kept in answer.successful() {
        let id = kept.message_id();
        let fate = if id.is_empty() {
            Fate::Again("the service gave no message id".into())
        } else {
            Fate::Kept(id.to_owned())
        };
        known.insert(kept.id(), fate);
    }
    for failed in answer.failed() {
        let problem = format!("{}: {}", failed.code(), failed.message().unwrap_or_default());
        let fate =
            if failed.sender_fault() { Fate::Refused(problem) } else { Fate::Again(problem) };
        known.insert(failed.id(), fate);
    }
    let none = || Fate::Again("the service did not say what became of it".into());
    (0..count).map(|at| known.remove(at.to_string().as_str()).unwrap_or_else(none)).collect()
}

/// SQS takes no U+FFFE and U+FFFF, which JSON allows: in a letter they can only be within a text, where they can be
/// written in another way.
fn sendable(body: &str) -> Cow<'_, str> {
    if !body.contains(['\u{fffe}', '\u{ffff}']) {
        return Cow::Borrowed(body);
    }
    Cow::Owned(body.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff"))
}

/// The source's own key where it can be a message group, and else the letter's id.
pub(crate) fn group_of(key: Option<&String>, id: &str) -> String {
    let usable = |key: &&String| {
        (1..=SQS_GROUP_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    key.filter(usable).map_or_else(|| id.to_owned(), String::clone)
}

#[async_trait]
impl Sink for SqsSink {
    fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        let entry = |letter: Letter| Entry {
            body: sendable(&String::from_utf8_lossy(&letter.body)).into_owned(),
            group: group_of(letter.group.as_ref(), &letter.dedupe_id),
            dedupe_id: letter.dedupe_id,
        };
        let entries = letters.into_iter().map(entry).collect();
        let bounds =
            Bounds { count: SQS_BATCH_MAX, bytes: self.bytes_max.max(SQS_BATCH_BYTES_MAX) };
        batches::deliver(self, entries, bounds, &self.environment).await
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};

    use super::*;

    #[test]
    fn each_entry_has_its_own_fate_whatever_their_order_in_the_answer() {
        let kept = |id: &str, message: &str| {
            SendMessageBatchResultEntry::builder()
                .id(id)
                .message_id(message)
                .md5_of_message_body("x")
                .build()
                .unwrap()
        };
        let failed = |id: &str, fault| {
            let failed = BatchResultErrorEntry::builder().id(id).sender_fault(fault).code("Code");
            failed.message("why").build().unwrap()
        };
        let answer = SendMessageBatchOutput::builder()
            .successful(kept("2", "m2"))
            .successful(kept("4", ""))
            .failed(failed("1", true))
            .failed(failed("0", false))
            .build()
            .unwrap();
        let fates = fates(&answer, 5);
        assert_eq!(fates[0], Fate::Again("Code: why".into()));
        assert_eq!(fates[1], Fate::Refused("Code: why".into()));
        assert_eq!(fates[2], Fate::Kept("m2".into()));
        assert!(matches!(&fates[3], Fate::Again(problem) if problem.contains("did not say")));
        assert!(matches!(&fates[4], Fate::Again(problem) if problem.contains("no message id")));
    }

    #[test]
    fn what_sqs_cannot_carry_is_written_in_another_way() {
        let letter = serde_json::json!({ "text": "a\u{ffff}b\u{fffe}c\u{1}é" });
        let body = letter.to_string();
        let sent = sendable(&body);
        let allowed = |c: char| matches!(c, ' '..='\u{fffd}' | '\u{10000}'..);
        assert!(sent.chars().all(allowed), "{sent}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&sent).unwrap(), letter);
        assert!(matches!(sendable("{}"), Cow::Borrowed("{}")));
    }

    #[test]
    fn keys_that_cannot_be_a_group_give_way_to_the_letters_id() {
        let of = |key: Option<&str>| group_of(key.map(str::to_owned).as_ref(), "id");
        assert_eq!(of(Some("customer-7")), "customer-7");
        for none in [None, Some(""), Some("with space"), Some("ü"), Some("x".repeat(129).as_str())]
        {
            assert_eq!(of(none), "id");
        }
    }
}
