//! Names of queues and topics, and ids of clients: checked when made.

use std::fmt;
use std::sync::Arc;

use crate::error::{QueueError, Result};
use crate::limits::{CLIENT_BYTES_MAX, NAME_CHARS_MAX};

/// The name of a queue or topic: 1 to 128 letters, digits, `-`, `_` or `.`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] or [`QueueError::TooLarge`], which say what is wrong.
    pub fn new(name: &str) -> Result<Self> {
        if name.is_empty() {
            return Err(QueueError::invalid("name", "is empty"));
        }
        if name.len() > NAME_CHARS_MAX {
            let (what, size, unit, limit) = ("name", name.len(), "characters", NAME_CHARS_MAX);
            return Err(QueueError::TooLarge { what, size, unit, limit });
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match name.chars().find(|c| !is_allowed(*c)) {
            Some(c) => Err(QueueError::invalid(
                "name",
                format!("has the character {c:?}; letters, digits, '-', '_' and '.' are accepted"),
            )),
            None => Ok(Self(name.into())),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The id of a client of a queue: any text up to 256 bytes without control characters. The main client's is empty.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// Checks an id.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] or [`QueueError::TooLarge`], which say what is wrong.
    pub fn new(id: &str) -> Result<Self> {
        QueueError::check_bytes("client id", id.len(), CLIENT_BYTES_MAX)?;
        match id.chars().find(|c| c.is_control()) {
            Some(c) => {
                Err(QueueError::invalid("client id", format!("has the control character {c:?}")))
            }
            None => Ok(Self(id.into())),
        }
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as part of a partition's name, in which `/` and `#` have a meaning.
    pub(crate) fn escaped(&self) -> String {
        self.0.replace('%', "%25").replace('/', "%2f").replace('#', "%23")
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}
