//! A record, and how its key and headers are stored.
//!
//! The head of a record's message is empty when it has neither key nor headers, else:
//! ```text
//! format   1 byte, 1
//! flags    1 byte: 1 has a key
//! key      varint, bytes; then the key                      (flag 1)
//! headers  varint, how many; then for each:
//!   name   varint, bytes; then the name in UTF-8
//!   value  varint, bytes; then the value
//! ```

use bytes::Bytes;
use millpond_lanes::Message;
use millpond_lanes::codec::{Reader, put_varint};
use millpond_store::Timestamp;

use crate::error::{LogError, Result};
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX, LETTER_HEADERS_MAX, PAYLOAD_BYTES_MAX};

const FORMAT: u8 = 1;
const HAS_KEY: u8 = 1;

/// A record on its way into a topic.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewRecord {
    /// Records with the same key go to the same partition, in order.
    pub key: Option<Bytes>,
    /// What it says.
    pub payload: Bytes,
    /// What is said about it, in order; names may repeat.
    pub headers: Vec<(String, Bytes)>,
}

impl NewRecord {
    /// A record without a key.
    #[must_use]
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }

    /// A record with a key.
    #[must_use]
    pub fn keyed(key: impl Into<Bytes>, payload: impl Into<Bytes>) -> Self {
        Self { key: Some(key.into()), ..Self::new(payload) }
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Bytes of key, payload and headers.
    #[must_use]
    pub fn size(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.key.as_ref().map_or(0, Bytes::len) + self.payload.len() + headers
    }

    /// The message that holds the record.
    pub(crate) fn into_message(self) -> Result<Message> {
        self.into_message_within(HEADERS_MAX, HEAD_BYTES_MAX)
    }

    /// The same for a record that carries what is said of another one.
    pub(crate) fn into_message_within(
        self,
        headers_max: usize,
        head_max: usize,
    ) -> Result<Message> {
        LogError::check_size("payload", self.payload.len(), PAYLOAD_BYTES_MAX)?;
        LogError::check_size("headers", self.headers.len(), headers_max)?;
        let head = encode_head(self.key.as_ref(), &self.headers);
        LogError::check_size("key and headers", head.len(), head_max)?;
        Ok(Message { head: head.into(), body: self.payload, ..Message::default() })
    }
}

/// A record in a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The partition.
    pub partition: u32,
    /// Its place in the partition: dense, assigned once, never reused.
    pub offset: u64,
    /// When it was appended. Within a partition this never goes back.
    pub timestamp: Timestamp,
    /// Its key.
    pub key: Option<Bytes>,
    /// What it says.
    pub payload: Bytes,
    /// What is said about it.
    pub headers: Vec<(String, Bytes)>,
}

impl Record {
    /// The value of the first header called `name`.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&Bytes> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(crate) fn of(
        partition: u32,
        offset: u64,
        timestamp: Timestamp,
        message: &Message,
    ) -> Result<Self> {
        let (key, headers) = decode_head(&message.head).ok_or_else(|| {
            LogError::corrupt(
                format!("record {offset} of partition {partition}"),
                "its key and headers cannot be read",
            )
        })?;
        let payload = message.body.clone();
        Ok(Self { partition, offset, timestamp, key, payload, headers })
    }
}

fn encode_head(key: Option<&Bytes>, headers: &[(String, Bytes)]) -> Vec<u8> {
    let mut out = Vec::new();
    if key.is_none() && headers.is_empty() {
        return out;
    }
    let put = |bytes: &[u8], out: &mut Vec<u8>| {
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    };
    out.push(FORMAT);
    out.push(if key.is_some() { HAS_KEY } else { 0 });
    if let Some(key) = key {
        put(key, &mut out);
    }
    put_varint(&mut out, headers.len() as u64);
    for (name, value) in headers {
        put(name.as_bytes(), &mut out);
        put(value, &mut out);
    }
    out
}

type Head = (Option<Bytes>, Vec<(String, Bytes)>);

fn decode_head(head: &Bytes) -> Option<Head> {
    if head.is_empty() {
        return Some((None, Vec::new()));
    }
    let mut reader = Reader::new(head);
    let next = |reader: &mut Reader<'_>| {
        let len = reader.length()?;
        reader.slice(len).map(|bytes| head.slice_ref(bytes))
    };
    if reader.byte()? != FORMAT {
        return None;
    }
    let key = match reader.byte()? {
        0 => None,
        HAS_KEY => Some(next(&mut reader)?),
        _ => return None,
    };
    let count = reader.length().filter(|count| *count <= HEADERS_MAX + LETTER_HEADERS_MAX)?;
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let name = String::from_utf8(next(&mut reader)?.to_vec()).ok()?;
        headers.push((name, next(&mut reader)?));
    }
    // The form with nothing in it is the empty one.
    (reader.is_empty() && (key.is_some() || !headers.is_empty())).then_some((key, headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn round_trips(
            key in option::of(vec(any::<u8>(), 0..50)),
            headers in vec(("[a-z]{0,8}", vec(any::<u8>(), 0..20)), 0..6),
        ) {
            let key = key.map(Bytes::from);
            let headers: Vec<_> = headers.into_iter().map(|(n, v)| (n, Bytes::from(v))).collect();
            let head = Bytes::from(encode_head(key.as_ref(), &headers));
            prop_assert_eq!(decode_head(&head), Some((key, headers)));
        }

        #[test]
        fn hostile_bytes_are_refused_or_mean_what_they_say(bytes in vec(any::<u8>(), 0..40)) {
            let head = Bytes::from(bytes);
            if let Some((key, headers)) = decode_head(&head) {
                prop_assert_eq!(encode_head(key.as_ref(), &headers), head);
            }
        }
    }

    #[test]
    fn limits_are_inclusive_and_named() {
        assert!(NewRecord::new(vec![0; PAYLOAD_BYTES_MAX]).into_message().is_ok());
        let large = NewRecord::new(vec![0; PAYLOAD_BYTES_MAX + 1]).into_message().unwrap_err();
        assert!(matches!(large, LogError::TooLarge { what: "payload", .. }), "{large}");
        let head = NewRecord::keyed(vec![0; HEAD_BYTES_MAX], "x").into_message().unwrap_err();
        assert!(matches!(head, LogError::TooLarge { what: "key and headers", .. }), "{head}");
    }
}
