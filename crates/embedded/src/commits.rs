//! Commit numbers: how recovery knows that nothing acknowledged is missing.
//!
//! Each commit also writes a row under `number modulo COMMITS_KEPT` with its number. An engine that meets a
//! broken place in a journal drops what lies behind it without a word, at the end (a lost tail) or, where a later
//! journal is intact, in the middle (a hole). A lost tail shows against the number in the file `acked`; a hole
//! shows as a row of the last commits that is not what it must be.
//!
//! ```text
//! commits  key: slot (u32) · value: checksum (u32) · number (u64) · floor (u64)
//! ```
//! The floor is where the view before the commit stood in the engine's own order: all that the commit writes comes
//! behind it, and all of the commits before it come before.

use bytes::{Buf, Bytes};
use millpond_store::StoreError;

use crate::engine::{RowChange, Table};
use crate::limits::COMMITS_KEPT;
use crate::record::{damaged, seal, unseal};

/// What the row of a commit says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CommitRow {
    /// The commit's number, from 1.
    pub number: u64,
    /// Where the view before it stood.
    pub floor: u64,
}

/// The row that a commit leaves.
pub(crate) fn row(commit: CommitRow) -> RowChange {
    let key = slot_key(commit.number % COMMITS_KEPT);
    let content = (u128::from(commit.number) << 64) | u128::from(commit.floor);
    let value = seal(&key, &content.to_be_bytes());
    RowChange { table: Table::Commits, key, value: Some(value) }
}

fn slot_key(slot: u64) -> Bytes {
    let slot = u32::try_from(slot).expect("the number of commits kept fits");
    Bytes::copy_from_slice(&slot.to_be_bytes())
}

/// What a row says; nothing when it is damaged.
pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<CommitRow> {
    let mut content = unseal(Table::Commits, key, Bytes::copy_from_slice(value)).ok()?;
    let number = content.try_get_u64().ok()?;
    let floor = content.try_get_u64().ok()?;
    content.is_empty().then_some(CommitRow { number, floor })
}

/// Gathers the rows that were found, and judges them.
#[derive(Default)]
pub(crate) struct Found {
    numbers: Vec<(u64, u64)>,
}

impl Found {
    /// Takes in one row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the row is damaged.
    pub(crate) fn add(&mut self, key: &Bytes, value: &Bytes) -> Result<(), StoreError> {
        let slot = key.clone().try_get_u32();
        let (Ok(slot), Some(commit)) = (slot, decode(key, value)) else {
            return Err(damaged(Table::Commits, key, "it is no row of a commit"));
        };
        self.numbers.push((u64::from(slot), commit.number));
        Ok(())
    }

    /// The number of the last commit, 0 when there was none; or what is missing.
    ///
    /// # Errors
    /// A text that says which commit was not found.
    pub(crate) fn last(&self) -> Result<u64, String> {
        let last = self.numbers.iter().map(|(_, number)| *number).max().unwrap_or(0);
        let first = last.saturating_sub(COMMITS_KEPT - 1).max(1);
        for (slot, number) in &self.numbers {
            // The latest commit up to `last` that belongs into this slot.
            let due = last - (last.wrapping_sub(*slot) % COMMITS_KEPT).min(last);
            if *number != due {
                return Err(format!("commit {due} is missing; {number} is in its place"));
            }
        }
        let due = if last == 0 { 0 } else { last - first + 1 };
        if self.numbers.len() as u64 != due {
            let found = self.numbers.len();
            return Err(format!("of the last {due} commits up to {last} only {found} are there"));
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows after commits 1 to `last`, without those that `lost` names.
    fn after(last: u64, lost: impl Fn(u64) -> bool) -> Found {
        let mut rows = std::collections::BTreeMap::new();
        for change in (1..=last)
            .filter(|number| !lost(*number))
            .map(|number| row(CommitRow { number, floor: 9 }))
        {
            rows.insert(change.key, change.value.unwrap());
        }
        let mut found = Found::default();
        rows.into_iter().for_each(|(key, value)| found.add(&key, &value).unwrap());
        found
    }

    #[test]
    fn whole_histories_are_accepted() {
        for last in [0, 1, 2, COMMITS_KEPT - 1, COMMITS_KEPT, COMMITS_KEPT + 1, 2 * COMMITS_KEPT] {
            assert_eq!(after(last, |_| false).last(), Ok(last));
        }
    }

    #[test]
    fn holes_are_noticed() {
        for last in [5, COMMITS_KEPT - 1, COMMITS_KEPT + 3, 2 * COMMITS_KEPT + 9] {
            for lost in [last - 1, last - 3] {
                assert!(after(last, |number| number == lost).last().is_err(), "{lost} of {last}");
            }
            let oldest = last.saturating_sub(COMMITS_KEPT - 1).max(1);
            assert!(after(last, |number| number == oldest).last().is_err(), "oldest of {last}");
        }
    }
}
