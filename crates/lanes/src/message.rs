//! What travels in a lane.

use std::time::Duration;

use bytes::Bytes;
use millpond_store::{Attributes, Key, Result, StoreError, Timestamp};

use crate::limits::{HEAD_BYTES_MAX, MESSAGE_BYTES_MAX};

/// A message as a lane sees it: bytes, and the little that is needed to choose it without reading them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    /// What the product says about the message (attributes, ids): opaque here.
    pub head: Bytes,
    /// What the sender said.
    pub body: Bytes,
    /// A hash of the message's group, when it has one.
    pub group: Option<u32>,
    /// Not to be delivered before this time, when delayed.
    pub due: Option<Timestamp>,
    /// Not to be delivered at or after this time, when it has an end of its own.
    pub expires: Option<Timestamp>,
    /// In a sequenced lane: appended only if this has not been appended yet. It is not stored with the message.
    pub once: Option<Once>,
}

/// A mark that is stored in one atomic group with a message, so that the message is appended only once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    /// Where the mark is kept. Who finds one there does not append.
    pub key: Key,
    /// How long it is kept.
    pub kept: Duration,
    /// What is kept with it, beside the message's number (`num`).
    pub note: Attributes,
}

impl Message {
    /// A message with this body and nothing else.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Bytes of head and body.
    #[must_use]
    pub fn size(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Checks sizes.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], which names what is too large.
    pub fn check(&self) -> Result<()> {
        StoreError::check_size("message head", self.head.len(), HEAD_BYTES_MAX)?;
        StoreError::check_size("message", self.size(), MESSAGE_BYTES_MAX)
    }
}
