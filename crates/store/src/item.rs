//! What a store holds.

use std::fmt;
use std::num::ParseIntError;

use crate::attributes::Attributes;
use crate::key::Key;
use crate::time::Timestamp;

/// The version of an item: the nonce of the write that made it.
///
/// A writer draws it at random before it writes. So a version never comes back after other writes, not even
/// when the item was removed in between, and a writer that does not know how its write ended finds out by
/// looking for its own version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(u64);

impl Version {
    /// The version with this number.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{self}")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Version {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// When an item ends, in whole seconds since 1970 (DynamoDB's granularity).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Expiry(u64);

impl Expiry {
    /// The first whole second at or after `time`: an item never ends early.
    #[must_use]
    pub const fn at(time: Timestamp) -> Self {
        Self(time.as_millis().div_ceil(1_000))
    }

    /// This many seconds after 1970.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// Whether it is reached at `now`: the item is then absent.
    #[must_use]
    pub const fn is_past(self, now: Timestamp) -> bool {
        now.as_millis() / 1_000 >= self.0
    }
}

/// A stored item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Where it lives.
    pub key: Key,
    /// What it says.
    pub attributes: Attributes,
    /// Which write made it.
    pub version: Version,
    /// When it ends, if ever.
    pub expiry: Option<Expiry>,
}

impl Item {
    /// Whether the item is there at `now`.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        !self.expiry.is_some_and(|expiry| expiry.is_past(now))
    }

    /// The item's size by DynamoDB's rules.
    #[must_use]
    pub fn size(&self) -> usize {
        item_size(&self.key, &self.attributes, self.expiry)
    }
}

/// The size of an item with these parts, by DynamoDB's rules: names (`pk`, `sk`, `ver`, `exp`) and values. The
/// version counts with its most digits, so that the size does not depend on chance.
pub(crate) fn item_size(key: &Key, attributes: &Attributes, expiry: Option<Expiry>) -> usize {
    const VERSION: usize = 3 + 11;
    const EXPIRY: usize = 3 + 6;
    let keys = 2 + key.partition.as_str().len() + 2 + key.sort.as_bytes().len();
    keys + VERSION + attributes.size() + expiry.map_or(0, |_| EXPIRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_exact_and_never_early() {
        let expiry = Expiry::at(Timestamp::from_millis(1_500));
        assert_eq!(expiry.as_secs(), 2);
        assert!(!expiry.is_past(Timestamp::from_millis(1_999)));
        assert!(expiry.is_past(Timestamp::from_millis(2_000)));
        assert_eq!(Expiry::at(Timestamp::from_millis(2_000)), expiry);
    }
}
