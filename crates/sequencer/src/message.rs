//! What producers put and consumers read.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::config::check_seq;
use crate::error::{Result, SequencerError};
use crate::limits::{ATTRIBUTES_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::names::QueueName;

/// A message without its place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    /// The payload.
    pub payload: Bytes,
    /// What else a producer says, by name.
    pub attributes: BTreeMap<String, String>,
}

impl Message {
    /// A message with this payload and no attributes.
    #[must_use]
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), attributes: BTreeMap::new() }
    }

    /// The same with one attribute more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// The attributes as they are stored; empty when there are none.
    pub(crate) fn attributes_text(&self) -> String {
        if self.attributes.is_empty() {
            return String::new();
        }
        serde_json::to_string(&self.attributes).expect("a map of text is always JSON")
    }

    pub(crate) fn check(&self) -> Result<()> {
        SequencerError::check_size("payload", self.payload.len(), PAYLOAD_BYTES_MAX)?;
        SequencerError::check_size("attributes", self.attributes_text().len(), ATTRIBUTES_BYTES_MAX)
    }
}

impl<T: Into<Bytes>> From<T> for Message {
    fn from(payload: T) -> Self {
        Self::new(payload)
    }
}

/// A message with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The queue.
    pub queue: QueueName,
    /// The number.
    pub seq: u64,
    /// The message.
    pub message: Message,
}

impl Entry {
    /// A message for `queue` at `seq`.
    ///
    /// # Errors
    /// When the queue's name cannot be one.
    pub fn new(queue: &str, seq: u64, message: impl Into<Message>) -> Result<Self> {
        Ok(Self { queue: QueueName::new(queue)?, seq, message: message.into() })
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_seq("sequence number", self.seq)?;
        self.message.check()
    }
}
