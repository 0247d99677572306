//! The index of a segment: what is known of each message without its cargo.
//!
//! ```text
//! format   1 byte, 1
//! count    varint
//! then for each message:
//!   flags  1 byte: 1 has a head, 2 has a group, 4 is delayed, 8 has an end
//!   body   varint, bytes of the body
//!   head   varint, bytes of the head          (flag 1)
//!   group  4 bytes, big-endian, a hash        (flag 2)
//!   delay  varint, ms after the segment's time (flag 4)
//!   life   varint, ms after the segment's time (flag 8)
//! ```
//! The cargo of a segment is the heads and bodies of its messages, one after the other.

use bytes::Bytes;
use millpond_store::Timestamp;

use crate::codec::{Reader, put_varint};
use crate::limits::{HEAD_BYTES_MAX, LOG_SEGMENT_MESSAGES_MAX, MESSAGE_BYTES_MAX};
use crate::message::Message;

const FORMAT: u8 = 1;
const HAS_HEAD: u8 = 1;
const HAS_GROUP: u8 = 2;
const IS_DELAYED: u8 = 4;
const HAS_END: u8 = 8;

/// What is known of one message without its cargo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Bytes of the head.
    pub head_len: usize,
    /// Bytes of the body.
    pub body_len: usize,
    /// A hash of the group.
    pub group: Option<u32>,
    /// Not to be delivered before this time.
    pub due: Option<Timestamp>,
    /// Not to be delivered at or after this time.
    pub expires: Option<Timestamp>,
}

/// What is known of a segment's messages without their cargo, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index(Vec<Entry>);

impl Index {
    /// The index of `messages`.
    #[must_use]
    pub fn of(messages: &[Message]) -> Self {
        let entry = |message: &Message| Entry {
            head_len: message.head.len(),
            body_len: message.body.len(),
            group: message.group,
            due: message.due,
            expires: message.expires,
        };
        Self(messages.iter().map(entry).collect())
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// Bytes of the cargo that the index describes.
    #[must_use]
    pub fn cargo_len(&self) -> usize {
        self.0.iter().map(|entry| entry.head_len + entry.body_len).sum()
    }

    /// The index as stored; delays are kept relative to `appended`.
    #[must_use]
    pub fn encode(&self, appended: Timestamp) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.0.len() * 8);
        out.push(FORMAT);
        put_varint(&mut out, self.0.len() as u64);
        for entry in &self.0 {
            let delay = entry.due.map(|due| due.since(appended).as_millis()).filter(|d| *d > 0);
            let mut flags = 0;
            flags |= if entry.head_len > 0 { HAS_HEAD } else { 0 };
            flags |= if entry.group.is_some() { HAS_GROUP } else { 0 };
            flags |= if delay.is_some() { IS_DELAYED } else { 0 };
            flags |= if entry.expires.is_some() { HAS_END } else { 0 };
            out.push(flags);
            put_varint(&mut out, entry.body_len as u64);
            if entry.head_len > 0 {
                put_varint(&mut out, entry.head_len as u64);
            }
            if let Some(group) = entry.group {
                out.extend_from_slice(&group.to_be_bytes());
            }
            if let Some(delay) = delay {
                put_varint(&mut out, u64::try_from(delay).unwrap_or(u64::MAX));
            }
            if let Some(expires) = entry.expires {
                let life = expires.since(appended).as_millis();
                put_varint(&mut out, u64::try_from(life).unwrap_or(u64::MAX));
            }
        }
        out
    }

    /// Reads what [`encode`](Self::encode) wrote; nothing when the bytes are anything else.
    #[must_use]
    pub fn decode(bytes: &[u8], appended: Timestamp) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.byte()? != FORMAT {
            return None;
        }
        let count = reader.length().filter(|count| *count <= LOG_SEGMENT_MESSAGES_MAX)?;
        // Each entry has two bytes at least: a count that cannot be true allocates nothing.
        let mut entries = Vec::with_capacity(count.min(bytes.len() / 2));
        for _ in 0..count {
            entries.push(decode_entry(&mut reader, appended)?);
        }
        reader.is_empty().then_some(Self(entries))
    }

    /// Cuts a cargo into the messages it holds; nothing when it is not of the index's length.
    #[must_use]
    pub fn cut(&self, cargo: &Bytes) -> Option<Vec<Message>> {
        if cargo.len() != self.cargo_len() {
            return None;
        }
        let mut rest = cargo.clone();
        let message = |entry: &Entry| Message {
            head: rest.split_to(entry.head_len),
            body: rest.split_to(entry.body_len),
            group: entry.group,
            due: entry.due,
            expires: entry.expires,
            once: None,
        };
        Some(self.0.iter().map(message).collect())
    }
}

fn decode_entry(reader: &mut Reader<'_>, appended: Timestamp) -> Option<Entry> {
    let flags = reader.byte()?;
    if flags & !(HAS_HEAD | HAS_GROUP | IS_DELAYED | HAS_END) != 0 {
        return None;
    }
    let body_len = reader.length().filter(|len| *len <= MESSAGE_BYTES_MAX)?;
    let mut entry = Entry { head_len: 0, body_len, group: None, due: None, expires: None };
    if flags & HAS_HEAD != 0 {
        entry.head_len = reader.length().filter(|len| (1..=HEAD_BYTES_MAX).contains(len))?;
    }
    if flags & HAS_GROUP != 0 {
        entry.group = Some(u32::from_be_bytes(reader.array()?));
    }
    if flags & IS_DELAYED != 0 {
        let delay = reader.varint().filter(|delay| *delay > 0)?;
        entry.due = Some(Timestamp::from_millis(appended.as_millis().checked_add(delay)?));
    }
    if flags & HAS_END != 0 {
        let life = reader.varint()?;
        entry.expires = Some(Timestamp::from_millis(appended.as_millis().checked_add(life)?));
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

    const APPENDED: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn message() -> impl Strategy<Value = Message> {
        let due = option::of(
            (1..10_000_000_u64)
                .prop_map(|delay| Timestamp::from_millis(APPENDED.as_millis() + delay)),
        );
        let expires = option::of(
            (0..10_000_000_u64)
                .prop_map(|life| Timestamp::from_millis(APPENDED.as_millis() + life)),
        );
        let bytes = (vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..300));
        (bytes, option::of(any::<u32>()), due, expires).prop_map(
            |((head, body), group, due, expires)| Message {
                head: head.into(),
                body: body.into(),
                group,
                due,
                expires,
                once: None,
            },
        )
    }

    proptest! {
        #[test]
        fn round_trips(messages in vec(message(), 0..70)) {
            let index = Index::of(&messages);
            let bytes = index.encode(APPENDED);
            prop_assert_eq!(Index::decode(&bytes, APPENDED), Some(index.clone()));
            let cargo: Bytes = messages.iter().flat_map(|m| [&m.head[..], &m.body[..]].concat()).collect();
            prop_assert_eq!(index.cut(&cargo), Some(messages));
            prop_assert!(index.cut(&[cargo, Bytes::from_static(b"x")].concat().into()).is_none());
        }

        #[test]
        fn hostile_bytes_are_refused_or_mean_what_they_say(bytes in vec(any::<u8>(), 0..200)) {
            if let Some(index) = Index::decode(&bytes, APPENDED) {
                prop_assert_eq!(index.encode(APPENDED), bytes);
            }
        }

        #[test]
        fn damaged_bytes_never_panic(
            messages in vec(message(), 1..20), at in any::<proptest::sample::Index>(), flip in 1..=255_u8,
        ) {
            let mut bytes = Index::of(&messages).encode(APPENDED);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Some(index) = Index::decode(&bytes, APPENDED) {
                prop_assert_eq!(index.encode(APPENDED), bytes);
            }
        }
    }

    #[test]
    fn a_full_queue_segment_with_groups_fits_half_a_row() {
        let message = Message { body: vec![0; 1_024].into(), group: Some(7), ..Message::default() };
        let bytes = Index::of(&vec![message; 64]).encode(APPENDED);
        assert!(bytes.len() <= 512, "{} bytes", bytes.len());
    }

    #[test]
    fn what_is_due_already_is_not_delayed() {
        let message = Message { due: Some(APPENDED), ..Message::new("x") };
        let bytes = Index::of(&[message]).encode(APPENDED);
        let index = Index::decode(&bytes, APPENDED).unwrap();
        assert_eq!(index.entries()[0].due, None);
    }
}
