//! Unique ids that sort by the time they were made.

use std::fmt;

use crate::hex;
use crate::time::Timestamp;

/// Sixteen bytes: 48 bits of milliseconds since 1970, then 80 random bits. Ids sort by time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UniqueId([u8; 16]);

impl UniqueId {
    /// The id's length in bytes.
    pub const LEN: usize = 16;

    /// An id of this time and this randomness (the low 80 bits count).
    #[must_use]
    pub fn from_parts(time: Timestamp, random: u128) -> Self {
        let time = u128::from(time.as_millis() & 0xffff_ffff_ffff);
        Self(((time << 80) | (random & ((1 << 80) - 1))).to_be_bytes())
    }

    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The id's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// This id, or the one right after `last` where that is greater: so ids made one after another sort in that order,
    /// also within a millisecond and when the clock goes back.
    #[must_use]
    pub fn or_after(self, last: Self) -> Self {
        let next = u128::from_be_bytes(last.0).saturating_add(1);
        self.max(Self(next.to_be_bytes()))
    }

    /// When the id was made, by its maker's clock.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        let millis = u128::from_be_bytes(self.0) >> 80;
        Timestamp::from_millis(u64::try_from(millis).expect("48 bits fit 64"))
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::of(&self.0))
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_first() {
        let early = UniqueId::from_parts(Timestamp::from_millis(5), u128::MAX);
        let late = UniqueId::from_parts(Timestamp::from_millis(6), 0);
        assert!(early < late);
        assert_eq!(early.time(), Timestamp::from_millis(5));
        assert_eq!(late.or_after(early), late);
        let after = early.or_after(late);
        assert!(after > late && after.time() == late.time());
    }
}
