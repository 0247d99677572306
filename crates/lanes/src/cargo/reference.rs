//! Where a segment's cargo is.
//!
//! ```text
//! kind     1 byte: 1 items, 2 object, 3 part of a shared object
//! length   varint, bytes of the cargo
//! chunks   varint, number of items      (kind 1)
//! object   16 bytes, the object's id    (kind 3)
//! offset   varint, where in the object  (kind 3)
//! ```
//! Inline cargo has no reference: it is the row's attribute `cargo`.

use bytes::Bytes;
use millpond_store::UniqueId;

use crate::codec::{Reader, put_varint};
use crate::limits::{CARGO_CHUNK_BYTES, MESSAGE_BYTES_MAX};

const ITEMS: u8 = 1;
const OBJECT: u8 = 2;
const SHARED: u8 = 3;

/// The largest cargo that a reference may speak of: a message of full size and an index in front of it.
const LENGTH_MAX: usize = 2 * MESSAGE_BYTES_MAX;

/// Where a segment's cargo is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CargoRef {
    /// In the row.
    Inline(Bytes),
    /// In items of its own.
    Items {
        /// Bytes in all.
        len: usize,
    },
    /// In one object.
    Object {
        /// Bytes in all.
        len: usize,
    },
    /// In a part of an object that holds the cargo of several lanes.
    Shared {
        /// The object.
        object: UniqueId,
        /// Where in it the cargo begins.
        offset: u64,
        /// Bytes in all.
        len: usize,
    },
}

impl CargoRef {
    /// Bytes of the cargo.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Inline(bytes) => bytes.len(),
            Self::Items { len } | Self::Object { len } | Self::Shared { len, .. } => *len,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items hold a cargo of `len` bytes.
    pub(super) fn chunks(len: usize) -> usize {
        len.div_ceil(CARGO_CHUNK_BYTES).max(1)
    }

    /// The reference as stored; nothing for inline cargo.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(8);
        match self {
            Self::Inline(_) => return None,
            Self::Items { len } => {
                out.push(ITEMS);
                put_varint(&mut out, *len as u64);
                put_varint(&mut out, Self::chunks(*len) as u64);
            }
            Self::Object { len } => {
                out.push(OBJECT);
                put_varint(&mut out, *len as u64);
            }
            Self::Shared { object, offset, len } => {
                out.push(SHARED);
                put_varint(&mut out, *len as u64);
                out.extend_from_slice(object.as_bytes());
                put_varint(&mut out, *offset);
            }
        }
        Some(out)
    }

    /// Reads what [`encode`](Self::encode) wrote; nothing when the bytes are anything else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let kind = reader.byte()?;
        let len = reader.length().filter(|len| *len <= LENGTH_MAX)?;
        let reference = match kind {
            ITEMS if reader.length()? == Self::chunks(len) => Self::Items { len },
            OBJECT => Self::Object { len },
            SHARED => {
                let object = UniqueId::from_bytes(reader.array()?);
                let offset = reader.varint().filter(|at| at.checked_add(len as u64).is_some())?;
                Self::Shared { object, offset, len }
            }
            _ => return None,
        };
        reader.is_empty().then_some(reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn round_trips(len in 0..=LENGTH_MAX, kind in 0..3_u8, id in any::<u128>(), offset in any::<u32>()) {
            let reference = match kind {
                0 => CargoRef::Object { len },
                1 => CargoRef::Items { len },
                _ => {
                    let object = UniqueId::from_bytes(id.to_be_bytes());
                    CargoRef::Shared { object, offset: offset.into(), len }
                }
            };
            let bytes = reference.encode().expect("not inline");
            prop_assert_eq!(CargoRef::decode(&bytes), Some(reference));
        }

        #[test]
        fn hostile_bytes_are_refused_or_mean_what_they_say(
            bytes in proptest::collection::vec(any::<u8>(), 0..24),
        ) {
            if let Some(reference) = CargoRef::decode(&bytes) {
                prop_assert_eq!(reference.encode(), Some(bytes));
            }
        }
    }
}
