//! What is remembered of finished messages by their ids.
//!
//! Sort key: `d`, then the SHA-256 of the id. Expires with the window.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `pos` | bytes | the sort key of the row of the message that had the id first |
//! | `sum` | text | the SHA-256 of its bytes |

use millpond_store::{Attributes, Item, SortKey, StoreError, Value};
use sha2::{Digest as _, Sha256};

use crate::position::Position;

/// A finished message, as others with the same id are held against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The id.
    pub id: String,
    /// Which message had it.
    pub position: Position,
    /// The digest of its bytes.
    pub digest: String,
}

impl Known {
    pub(super) fn encode(&self) -> Result<Attributes, StoreError> {
        let position = self.position.sort_key()?.to_bytes();
        Ok(Attributes::new().with("pos", position).with("sum", self.digest.as_str()))
    }

    pub(super) fn decode(id: &str, item: &Item) -> Option<Self> {
        let Some(Value::Bytes(bytes)) = item.attributes.get("pos") else {
            return None;
        };
        let position = Position::from_sort_key(&SortKey::new(bytes.clone()).ok()?)?;
        let digest = item.attributes.text("sum").ok()?.to_owned();
        Some(Self { id: id.to_owned(), position, digest })
    }
}

pub(super) fn sort_key(id: &str) -> Result<SortKey, StoreError> {
    let mut bytes = vec![b'd'];
    bytes.extend_from_slice(&Sha256::digest(id.as_bytes()));
    SortKey::new(bytes)
}
