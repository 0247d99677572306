//! An append that can be tried again until its outcome is known.

use bytes::{Bytes, BytesMut};
use millpond_store::{
    Change, Environment, Monotonic, Result, StoreError, Timestamp, UniqueId, Version, Write,
};

use crate::carry::Carry;
use crate::index::Index;
use crate::limits::{
    INDEX_IN_ROW_BYTES_MAX, LOG_SEGMENT_MESSAGES_MAX, MESSAGE_BYTES_MAX, QUEUE_SEGMENT_MESSAGES_MAX,
};
use crate::message::{Message, Once};
use crate::segment::Place;

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
    /// Marks that are stored with the row, by the place of their messages.
    pub(crate) marks: Vec<(usize, Once)>,
    /// Whether the cargo is known to be written.
    pub(crate) stowed: bool,
    /// In a sequenced lane: an attempt whose outcome is unknown.
    pub(crate) open_attempt: Option<Attempt>,
    pub(crate) terms: Terms,
    /// Its part of a shared object, once that is written.
    pub(crate) slot: Option<Slot>,
    /// In a sequenced lane: what the row hands on.
    pub(crate) carry: Carry,
    delayed: bool,
}

/// Under which terms a segment is appended to a sequenced lane.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Refused when the lane has seen a greater one; refuses smaller ones from then on.
    pub fence: Option<u64>,
    /// A put that is applied together with the segment, or neither is. Its attribute `o` will hold the number of the
    /// segment's first message.
    pub beside: Option<Write>,
}

/// A part of a shared object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub object: UniqueId,
    pub offset: u64,
}

/// A number that was tried, and when the tail was seen before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub number: u64,
    pub tail_seen: Monotonic,
    /// What the row before it handed on.
    pub before: Carry,
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
            marks: marks(messages),
            stowed: false,
            open_attempt: None,
            terms: Terms::default(),
            slot: None,
            carry: Carry::default(),
            delayed: messages
                .iter()
                .any(|message| message.due.is_some() || message.expires.is_some()),
        })
    }

    /// Whether a refusal was about one of its marks.
    pub(crate) fn is_marked_by(&self, error: &StoreError) -> bool {
        let StoreError::Conflict(conflicts) = error else { return false };
        conflicts.iter().any(|found| self.marks.iter().any(|(_, once)| once.key == found.key))
    }

    /// The same append under an id of the caller's: in an unordered lane, whoever appends under the same id appends
    /// the same thing once.
    #[must_use]
    pub const fn with_id(mut self, id: UniqueId) -> Self {
        self.id = id;
        self
    }

    /// The same under these terms: for sequenced lanes.
    #[must_use]
    pub fn under(self, terms: Terms) -> Self {
        Self { terms, ..self }
    }

    /// The fence token that it comes with.
    #[must_use]
    pub const fn fence(&self) -> Option<u64> {
        self.terms.fence
    }

    /// How many messages it has.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// What is written beside a row at `place`.
    pub(crate) fn beside_at(&self, place: Place) -> Option<Write> {
        let mut beside = self.terms.beside.clone()?;
        if let (Change::Put { attributes, .. }, Place::Number(number)) = (&mut beside.change, place)
        {
            attributes.set("o", i64::try_from(number).unwrap_or(i64::MAX));
        }
        Some(beside)
    }

    /// Whether the index is kept in the row. Queues choose messages by the index alone; that of a segment of theirs
    /// has 1.6 KB at most.
    pub(crate) const fn index_in_row(&self) -> bool {
        self.count <= QUEUE_SEGMENT_MESSAGES_MAX || self.index.len() <= INDEX_IN_ROW_BYTES_MAX
    }

    /// The bytes to store: the cargo, with the index before it where that is too long for the row.
    pub(crate) fn stored(&self) -> Bytes {
        if self.index_in_row() {
            return self.cargo.clone();
        }
        let mut stored = BytesMut::with_capacity(self.stored_len());
        stored.extend_from_slice(&self.index);
        stored.extend_from_slice(&self.cargo);
        stored.freeze()
    }

    /// How many bytes are stored for it, its row apart.
    #[must_use]
    pub fn stored_len(&self) -> usize {
        let index = if self.index_in_row() { 0 } else { self.index.len() };
        index + self.cargo.len()
    }

    /// Takes over what the row before hands on. Time does not go back, unless delays are reckoned from it.
    pub(crate) fn follow(&mut self, before: Carry) {
        if !self.delayed {
            self.appended = self.appended.max(before.at);
        }
        self.carry = Carry {
            fence: before.fence.max(self.terms.fence.unwrap_or_default()),
            bytes: before.bytes.saturating_add(self.stored_len() as u64),
            at: self.appended,
        };
    }

    /// The append's id.
    #[must_use]
    pub const fn id(&self) -> UniqueId {
        self.id
    }
}

fn marks(messages: &[Message]) -> Vec<(usize, Once)> {
    let marked = messages.iter().enumerate();
    marked.filter_map(|(at, message)| Some((at, message.once.clone()?))).collect()
}
