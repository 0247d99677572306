//! Where an item lives: a partition, and a sort key in byte order within it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Result, StoreError};
use crate::limits::{PARTITION_BYTES_MAX, SORT_KEY_BYTES_MAX};

/// The name of a partition: text of 1 to [`PARTITION_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(Arc<str>);

impl Partition {
    /// Checks and wraps a partition name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when empty, [`StoreError::TooLarge`] when too long.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() {
            return Err(StoreError::invalid("partition", "is empty"));
        }
        StoreError::check_size("partition", name.len(), PARTITION_BYTES_MAX)?;
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sort key: 1 to [`SORT_KEY_BYTES_MAX`] bytes, ordered byte by byte.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SortKey(Bytes);

impl SortKey {
    /// Checks and wraps a sort key.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when empty, [`StoreError::TooLarge`] when too long.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(StoreError::invalid("sort key", "is empty"));
        }
        StoreError::check_size("sort key", bytes.len(), SORT_KEY_BYTES_MAX)?;
        Ok(Self(bytes))
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key's bytes, shared.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }
}

impl fmt::Debug for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// The full address of an item.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The partition.
    pub partition: Partition,
    /// The place within the partition.
    pub sort: SortKey,
}

impl Key {
    /// Checks and joins a partition and a sort key.
    ///
    /// # Errors
    /// As [`Partition::new`] and [`SortKey::new`].
    pub fn new(partition: impl Into<Arc<str>>, sort: impl Into<Bytes>) -> Result<Self> {
        Ok(Self { partition: Partition::new(partition)?, sort: SortKey::new(sort)? })
    }

    /// Joins two parts that were checked before.
    #[must_use]
    pub const fn of(partition: Partition, sort: SortKey) -> Self {
        Self { partition, sort }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.partition, self.sort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_named() {
        assert!(Partition::new("p".repeat(PARTITION_BYTES_MAX)).is_ok());
        let error = Partition::new("p".repeat(PARTITION_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "partition is too large: 2049 bytes, the limit is 2048");
        assert!(SortKey::new(vec![0; SORT_KEY_BYTES_MAX]).is_ok());
        let error = SortKey::new(vec![0; SORT_KEY_BYTES_MAX + 1]).unwrap_err();
        assert_eq!(error.to_string(), "sort key is too large: 1025 bytes, the limit is 1024");
        assert_eq!(Partition::new("").unwrap_err().to_string(), "partition is empty");
        assert_eq!(SortKey::new(Bytes::new()).unwrap_err().to_string(), "sort key is empty");
    }
}
