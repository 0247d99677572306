//! The head of a message: what its sender said about it, beside the body.
//!
//! ```text
//! format  1 byte, 1
//! then fields, by rising tag: tag 1 byte, then
//!   1 group      bytes
//!   2 dedup id   bytes
//!   3 trace      bytes
//!   4 attribute  name bytes, type 1 byte (0 text, 1 number, 2 bytes), label bytes, value bytes; may repeat
//!   5 origin     bytes, JSON
//!   6 shared     the place of a body that several queues share: bytes, JSON
//!   7 identity   bytes: the name that it got where it was first sent, when it was moved
//! ```
//! where bytes stand behind their length, a varint. A message without any has no head.

use std::collections::BTreeMap;

use bytes::Bytes;
use millpond_lanes::codec::{Reader, put_bytes};

use crate::message::{Attribute, AttributeValue, Message};
use crate::origin::Origin;
use crate::topic::SharedBody;

const FORMAT: u8 = 1;
const GROUP: u8 = 1;
const DEDUP_ID: u8 = 2;
const TRACE: u8 = 3;
const ATTRIBUTE: u8 = 4;
const ORIGIN: u8 = 5;
const SHARED: u8 = 6;
const IDENTITY: u8 = 7;

/// What is said about a message, beside its body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    pub attributes: BTreeMap<String, Attribute>,
    pub group: Option<String>,
    pub dedup_id: Option<String>,
    pub trace: Option<String>,
    pub origin: Option<Origin>,
    pub shared: Option<SharedBody>,
    pub identity: Option<String>,
}

impl Head {
    pub fn of(message: &Message) -> Self {
        Self {
            attributes: message.attributes.clone(),
            group: message.group.clone(),
            dedup_id: message.dedup_id.clone(),
            trace: message.trace.clone(),
            origin: None,
            shared: None,
            identity: None,
        }
    }

    pub fn encode(&self) -> Bytes {
        let mut out = vec![FORMAT];
        let mut text = |tag: u8, value: &Option<String>| {
            if let Some(value) = value {
                out.push(tag);
                put_bytes(&mut out, value.as_bytes());
            }
        };
        text(GROUP, &self.group);
        text(DEDUP_ID, &self.dedup_id);
        text(TRACE, &self.trace);
        for (name, attribute) in &self.attributes {
            out.push(ATTRIBUTE);
            put_bytes(&mut out, name.as_bytes());
            out.push(match attribute.value {
                AttributeValue::String(_) => 0,
                AttributeValue::Number(_) => 1,
                AttributeValue::Binary(_) => 2,
            });
            put_bytes(&mut out, attribute.label.as_bytes());
            put_bytes(&mut out, attribute.value.as_bytes());
        }
        if let Some(origin) = &self.origin {
            out.push(ORIGIN);
            put_bytes(&mut out, &serde_json::to_vec(origin).expect("an origin is plain data"));
        }
        if let Some(shared) = &self.shared {
            out.push(SHARED);
            put_bytes(&mut out, &serde_json::to_vec(shared).expect("a reference is plain data"));
        }
        if let Some(identity) = &self.identity {
            out.push(IDENTITY);
            put_bytes(&mut out, identity.as_bytes());
        }
        if out.len() == 1 { Bytes::new() } else { out.into() }
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        if bytes.is_empty() {
            return Some(head);
        }
        let mut reader = Reader::new(bytes);
        let mut last = 0;
        if reader.byte()? != FORMAT || reader.is_empty() {
            return None;
        }
        while !reader.is_empty() {
            let tag = reader.byte()?;
            if tag < last || (tag == last && tag != ATTRIBUTE) {
                return None;
            }
            last = tag;
            match tag {
                GROUP => head.group = Some(text(&mut reader)?),
                DEDUP_ID => head.dedup_id = Some(text(&mut reader)?),
                TRACE => head.trace = Some(text(&mut reader)?),
                ATTRIBUTE => {
                    let (name, attribute) = read_attribute(&mut reader)?;
                    head.attributes.insert(name, attribute);
                }
                ORIGIN => head.origin = Some(serde_json::from_slice(reader.bytes()?).ok()?),
                SHARED => head.shared = Some(serde_json::from_slice(reader.bytes()?).ok()?),
                IDENTITY => head.identity = Some(text(&mut reader)?),
                _ => return None,
            }
        }
        Some(head)
    }
}

fn text(reader: &mut Reader<'_>) -> Option<String> {
    String::from_utf8(reader.bytes()?.to_vec()).ok()
}

fn read_attribute(reader: &mut Reader<'_>) -> Option<(String, Attribute)> {
    let name = text(reader)?;
    let kind = reader.byte()?;
    let label = text(reader)?;
    let value = match kind {
        0 => AttributeValue::String(text(reader)?),
        1 => AttributeValue::Number(text(reader)?),
        2 => AttributeValue::Binary(Bytes::copy_from_slice(reader.bytes()?)),
        _ => return None,
    };
    Some((name, Attribute { value, label }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    fn attribute() -> impl Strategy<Value = Attribute> {
        let value = prop_oneof![
            ".{1,20}".prop_map(AttributeValue::String),
            "[0-9]{1,9}".prop_map(AttributeValue::Number),
            vec(any::<u8>(), 1..20).prop_map(|bytes| AttributeValue::Binary(bytes.into())),
        ];
        (value, ".{0,5}").prop_map(|(value, label)| Attribute { value, label })
    }

    fn head() -> impl Strategy<Value = Head> {
        let texts = (option::of(".{1,20}"), option::of(".{1,20}"), option::of(".{1,20}"));
        let texts = (texts, option::of(".{1,20}"));
        (texts, btree_map(".{1,9}", attribute(), 0..5)).prop_map(
            |(((group, dedup_id, trace), identity), attributes)| Head {
                attributes,
                group,
                dedup_id,
                trace,
                origin: None,
                shared: None,
                identity,
            },
        )
    }

    proptest! {
        #[test]
        fn heads_round_trip(head in head()) {
            prop_assert_eq!(Head::decode(&head.encode()), Some(head));
        }

        #[test]
        fn hostile_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..100)) {
            if let Some(first) = bytes.first_mut() {
                *first = FORMAT;
            }
            let _ = Head::decode(&bytes);
        }

        #[test]
        fn a_cut_head_is_refused(head in head(), cut in 1..10_usize) {
            let bytes = head.encode();
            if bytes.len() > cut + 1 {
                let read = Head::decode(&bytes[..bytes.len() - cut]);
                prop_assert!(read.is_none_or(|read| read != head));
            }
        }
    }

    #[test]
    fn a_plain_message_has_no_head() {
        assert!(Head::of(&Message::new("x")).encode().is_empty());
    }
}
