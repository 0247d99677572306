//! What travels in a lane.

use bytes::Bytes;
use millpond_store::{Result, StoreError, Timestamp};

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
