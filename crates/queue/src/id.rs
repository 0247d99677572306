//! Ids of messages: where a message stands.

use std::fmt;
use std::str::FromStr;

use millpond_lanes::Place;
use millpond_store::{UniqueId, hex};

use crate::error::QueueError;

/// The id of a message, unique within its client's queue. It says where the message stands, so that finding it is
/// one read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    pub(crate) lane: u8,
    pub(crate) place: MessagePlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum MessagePlace {
    /// In an unordered lane: its segment, and its slot there.
    Slot(UniqueId, u8),
    /// In a sequenced lane: its number.
    Number(u64),
}

impl MessageId {
    /// The id of the message in a slot of a segment.
    pub(crate) fn of(lane: u8, segment: Place, slot: usize) -> Self {
        let place = match segment {
            Place::Id(id) => {
                MessagePlace::Slot(id, u8::try_from(slot).expect("a segment has 64 messages"))
            }
            Place::Number(first) => MessagePlace::Number(first + slot as u64),
        };
        Self { lane, place }
    }

    /// Adds the id to a text. Every message gets its name by this, so that it goes without the machinery of formats.
    pub(crate) fn write(&self, out: &mut String) {
        match self.place {
            MessagePlace::Slot(id, slot) => {
                hex::push(out, id.as_bytes());
                out.push('-');
                hex::push(out, &[self.lane, slot]);
            }
            MessagePlace::Number(number) => {
                hex::push(out, &number.to_be_bytes());
                out.push('-');
                hex::push(out, &[self.lane]);
            }
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(37);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for MessageId {
    type Err = QueueError;

    fn from_str(text: &str) -> Result<Self, QueueError> {
        parse(text).ok_or_else(|| QueueError::invalid("message id", "is not one of a queue"))
    }
}

fn parse(text: &str) -> Option<MessageId> {
    let (place, rest) = text.split_once('-')?;
    if !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-')) {
        return None;
    }
    let lane = u8::from_str_radix(rest.get(0..2)?, 16).ok()?;
    let place = match (place.len(), rest.len()) {
        (32, 4) => {
            let id = u128::from_str_radix(place, 16).ok()?;
            let slot = u8::from_str_radix(rest.get(2..4)?, 16).ok()?;
            MessagePlace::Slot(UniqueId::from_bytes(id.to_be_bytes()), slot)
        }
        (16, 2) => MessagePlace::Number(u64::from_str_radix(place, 16).ok()?),
        _ => return None,
    };
    Some(MessageId { lane, place })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn ids_round_trip_as_text(bytes in any::<[u8; 16]>(), lane in any::<u8>(), slot in 0..64_u8, number in any::<u64>()) {
            let segment = UniqueId::from_bytes(bytes);
            for place in [MessagePlace::Slot(segment, slot), MessagePlace::Number(number)] {
                let id = MessageId { lane, place };
                prop_assert_eq!(id.to_string().parse::<MessageId>().ok(), Some(id));
            }
        }

        #[test]
        fn any_other_text_is_refused_or_means_what_it_says(text in "[0-9a-f+-]{0,40}") {
            if let Ok(id) = text.parse::<MessageId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
