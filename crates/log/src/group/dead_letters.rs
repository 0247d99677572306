//! Records that could not be handled.

use async_trait::async_trait;
use bytes::Bytes;
use millpond_lanes::Terms;

use super::handler::Failure;
use crate::error::Result;
use crate::limits::{
    FAILURE_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, LETTER_BYTES_MAX, LETTER_HEADERS_MAX,
};
use crate::partitioner::partition_of;
use crate::record::{NewRecord, Record};
use crate::topic::Topic;

/// A record that could not be handled, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The topic it comes from.
    pub topic: String,
    /// The group that could not handle it.
    pub group: String,
    /// The record. Topic, partition and offset name it: after a crash it may come again.
    pub record: Record,
    /// The last failure, cut at 4 KiB.
    pub reason: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// Where dead letters go. A record is done only when the sink has said that it has it.
#[async_trait]
pub trait DeadLetters: Send + Sync + 'static {
    /// Keeps a letter for good.
    async fn bury(&self, letter: &DeadLetter) -> Result<(), Failure>;
}

/// Dead letters in another topic: the same key, payload and headers, and the headers `millpond-origin`
/// (`TOPIC/PARTITION/OFFSET`), `millpond-group`, `millpond-reason` and `millpond-attempts`.
#[derive(Debug, Clone)]
pub struct TopicSink(Topic);

impl TopicSink {
    /// Letters go to `topic`.
    #[must_use]
    pub const fn new(topic: Topic) -> Self {
        Self(topic)
    }
}

#[async_trait]
impl DeadLetters for TopicSink {
    async fn bury(&self, letter: &DeadLetter) -> Result<(), Failure> {
        let DeadLetter { topic, group, record, reason, attempts } = letter;
        let origin = format!("{topic}/{}/{}", record.partition, record.offset);
        let (key, payload) = (record.key.clone(), record.payload.clone());
        let copy = NewRecord { key, payload, headers: record.headers.clone() }
            .header("millpond-origin", origin)
            .header("millpond-group", group.clone())
            .header("millpond-reason", reason.clone())
            .header("millpond-attempts", attempts.to_string());
        let partitions = self.0.recent().await?.config.partitions;
        let partition = match &copy.key {
            Some(key) => partition_of(key, partitions),
            None => self.0.next_turn(partitions),
        };
        // A record at every limit must still fit, or it could never be buried.
        let headers_max = HEADERS_MAX + LETTER_HEADERS_MAX;
        let message = copy.into_message_within(headers_max, HEAD_BYTES_MAX + LETTER_BYTES_MAX)?;
        self.0.append_segment(partition, vec![message], Terms::default()).await?;
        Ok(())
    }
}

/// A reason that can be kept.
pub(super) fn cut(reason: &str) -> String {
    let mut end = reason.len().min(FAILURE_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    String::from_utf8_lossy(&Bytes::copy_from_slice(
        reason.as_bytes().get(..end).unwrap_or_default(),
    ))
    .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_are_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        let cut = cut(&"ä".repeat(FAILURE_BYTES_MAX));
        assert!(cut.len() <= FAILURE_BYTES_MAX && cut.chars().all(|c| c == 'ä'));
    }
}
