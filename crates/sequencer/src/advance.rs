//! What a cursor passed.

use std::fmt;
use std::ops::Range;

/// The numbers `first`, `first + 1` … up to and without `next`: what a cursor passed, in order and for the first
/// time in its epoch. Written `(old, new]`, as a cursor's stream records have it: `old` and `new` are the last
/// numbers before and after, and −1 stands for the place before number 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Advance {
    /// The first number passed.
    pub first: u64,
    /// The number behind the last one passed: what the queue waits for now.
    pub next: u64,
}

impl Advance {
    /// From `first` up to and without `next`; nothing when that is nothing.
    #[must_use]
    pub const fn new(first: u64, next: u64) -> Option<Self> {
        if first < next { Some(Self { first, next }) } else { None }
    }

    /// The last number before.
    #[must_use]
    pub fn old(&self) -> i64 {
        position(self.first)
    }

    /// The last number now.
    #[must_use]
    pub fn new_position(&self) -> i64 {
        position(self.next)
    }

    /// The numbers, as a half-open range.
    #[must_use]
    pub const fn numbers(&self) -> Range<u64> {
        self.first..self.next
    }

    /// How many.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.next - self.first
    }

    /// This and what follows right behind it.
    pub(crate) fn join(earlier: Option<Self>, later: Self) -> Self {
        let first = earlier.map_or(later.first, |earlier| earlier.first);
        Self { first, next: later.next }
    }
}

/// The last number before `next`, −1 when there is none.
pub(crate) fn position(next: u64) -> i64 {
    i64::try_from(next).unwrap_or(i64::MAX) - 1
}

impl fmt::Debug for Advance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}]", self.old(), self.new_position())
    }
}

impl fmt::Display for Advance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
