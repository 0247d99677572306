//! An append that can be tried again until its outcome is known.

use bytes::{Bytes, BytesMut};
use millpond_store::{Environment, Monotonic, Result, StoreError, Timestamp, UniqueId, Version};

use crate::index::Index;
use crate::limits::{LOG_SEGMENT_MESSAGES_MAX, MESSAGE_BYTES_MAX};
use crate::message::Message;

/// Messages on their way into a lane, as one segment.
///
/// It remembers what was tried. When an attempt ends with an unknown outcome, give the **same** `Append` to the
/// lane again: however often that is done, the messages are in the lane once.
#[derive(Debug)]
pub struct Append {
    pub(crate) id: UniqueId,
    pub(crate) version: Version,
    pub(crate) appended: Timestamp,
    pub(crate) count: usize,
    pub(crate) index: Vec<u8>,
    pub(crate) cargo: Bytes,
    /// Whether the cargo is known to be written.
    pub(crate) stowed: bool,
    /// In a sequenced lane: an attempt whose outcome is unknown.
    pub(crate) open_attempt: Option<Attempt>,
}

/// A number that was tried, and when the tail was seen before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub number: u64,
    pub tail_seen: Monotonic,
}

impl Append {
    /// Prepares one segment of `messages`.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when there are none, [`StoreError::TooLarge`] when there are too many or too large
    /// ones.
    pub fn new(environment: &Environment, messages: &[Message]) -> Result<Self> {
        if messages.is_empty() {
            return Err(StoreError::invalid("segment", "has no messages"));
        }
        if messages.len() > LOG_SEGMENT_MESSAGES_MAX {
            let (what, size, unit) = ("segment", messages.len(), "messages");
            return Err(StoreError::TooLarge { what, size, unit, limit: LOG_SEGMENT_MESSAGES_MAX });
        }
        messages.iter().try_for_each(Message::check)?;
        let index = Index::of(messages);
        StoreError::check_size("segment", index.cargo_len(), MESSAGE_BYTES_MAX)?;
        let mut cargo = BytesMut::with_capacity(index.cargo_len());
        for message in messages {
            cargo.extend_from_slice(&message.head);
            cargo.extend_from_slice(&message.body);
        }
        let appended = environment.now();
        Ok(Self {
            id: environment.unique_id(),
            version: environment.version(),
            appended,
            count: messages.len(),
            index: index.encode(appended),
            cargo: cargo.freeze(),
            stowed: false,
            open_attempt: None,
        })
    }

    /// The append's id.
    #[must_use]
    pub const fn id(&self) -> UniqueId {
        self.id
    }
}
