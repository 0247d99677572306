//! Reading a range of a partition.

use crate::error::{Result, StoreError};
use crate::item::Item;
use crate::key::{Partition, SortKey};
use crate::limits::{PAGE_ITEMS_MAX, SORT_KEY_BYTES_MAX};
use crate::store::Store;

/// Which way a query goes through its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// By rising sort key.
    #[default]
    Forward,
    /// By falling sort key.
    Reverse,
}

/// How fresh a query's answer must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Consistency {
    /// Everything acknowledged before the query is in the answer.
    #[default]
    Strong,
    /// The answer may be a little old, at half the price: right where a stale answer only leads to a conflict.
    Relaxed,
}

/// A half-open range of sort keys: from `start` (in it) to `end` (not in it).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SortRange {
    /// The first key in the range; the partition's first when not given.
    pub start: Option<SortKey>,
    /// The first key behind the range; none when the range has no end.
    pub end: Option<SortKey>,
}

impl SortRange {
    /// The whole partition.
    #[must_use]
    pub const fn all() -> Self {
        Self { start: None, end: None }
    }

    /// From `start` on.
    #[must_use]
    pub const fn from(start: SortKey) -> Self {
        Self { start: Some(start), end: None }
    }

    /// Up to and without `end`.
    #[must_use]
    pub const fn to(end: SortKey) -> Self {
        Self { start: None, end: Some(end) }
    }

    /// From `start` up to and without `end`.
    #[must_use]
    pub const fn between(start: SortKey, end: SortKey) -> Self {
        Self { start: Some(start), end: Some(end) }
    }

    /// All keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: SortKey) -> Self {
        let mut end = prefix.as_bytes().to_vec();
        raise(&mut end);
        Self { start: Some(prefix), end: SortKey::new(end).ok() }
    }

    /// Whether `sort` lies in the range.
    #[must_use]
    pub fn contains(&self, sort: &SortKey) -> bool {
        self.start.as_ref().is_none_or(|start| sort >= start)
            && self.end.as_ref().is_none_or(|end| sort < end)
    }

    /// Whether no key can lie in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!((&self.start, &self.end), (Some(start), Some(end)) if start >= end)
    }
}

/// What to read: a range of one partition, in one direction, up to a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// The partition.
    pub partition: Partition,
    /// The range within it. Default: all of it.
    pub range: SortRange,
    /// The direction. Default: forward.
    pub direction: Direction,
    /// The most items in a page, 1 to [`PAGE_ITEMS_MAX`]. Default: the most allowed.
    pub limit: usize,
    /// How fresh. Default: strong.
    pub consistency: Consistency,
    /// Continue behind this key (in the query's direction).
    pub after: Option<SortKey>,
}

impl Query {
    /// Everything in `partition`, forward, strongly consistent.
    #[must_use]
    pub const fn new(partition: Partition) -> Self {
        Self {
            partition,
            range: SortRange::all(),
            direction: Direction::Forward,
            limit: PAGE_ITEMS_MAX,
            consistency: Consistency::Strong,
            after: None,
        }
    }

    /// Only this range.
    #[must_use]
    pub fn range(self, range: SortRange) -> Self {
        Self { range, ..self }
    }

    /// By falling sort key.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self { direction: Direction::Reverse, ..self }
    }

    /// At most this many items a page.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// A stale answer will do.
    #[must_use]
    pub fn relaxed(self) -> Self {
        Self { consistency: Consistency::Relaxed, ..self }
    }

    /// The same query, continued behind `sort`.
    #[must_use]
    pub fn after(self, sort: SortKey) -> Self {
        Self { after: Some(sort), ..self }
    }

    /// Checks the limit.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when the limit is zero, [`StoreError::TooLarge`] when over the most.
    pub fn check(&self) -> Result<()> {
        if self.limit == 0 {
            return Err(StoreError::invalid("query limit", "is zero"));
        }
        if self.limit > PAGE_ITEMS_MAX {
            let (what, size, unit) = ("query limit", self.limit, "items");
            return Err(StoreError::TooLarge { what, size, unit, limit: PAGE_ITEMS_MAX });
        }
        Ok(())
    }

    /// The range that is left to read: `range`, cut at `after`.
    #[must_use]
    pub fn remaining(&self) -> SortRange {
        let mut range = self.range.clone();
        let Some(after) = &self.after else {
            return range;
        };
        match self.direction {
            Direction::Forward => match successor(after) {
                Some(next) => {
                    if range.start.as_ref().is_none_or(|start| *start < next) {
                        range.start = Some(next);
                    }
                }
                None => range = SortRange::between(after.clone(), after.clone()),
            },
            Direction::Reverse => {
                if range.end.as_ref().is_none_or(|end| after < end) {
                    range.end = Some(after.clone());
                }
            }
        }
        range
    }
}

/// The smallest key greater than `sort` in byte order; none behind the greatest key of all.
fn successor(sort: &SortKey) -> Option<SortKey> {
    let mut bytes = sort.as_bytes().to_vec();
    if bytes.len() < SORT_KEY_BYTES_MAX {
        bytes.push(0);
    } else {
        raise(&mut bytes);
    }
    SortKey::new(bytes).ok()
}

/// Turns a prefix into the first key behind all keys that begin with it: its last byte that can be raised,
/// raised. Empty when there is none.
fn raise(prefix: &mut Vec<u8>) {
    while let Some(last) = prefix.pop() {
        if let Some(raised) = last.checked_add(1) {
            prefix.push(raised);
            break;
        }
    }
}

/// Part of a query's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The items, in the query's order.
    pub items: Vec<Item>,
    /// The query that reads on; nothing when the range is exhausted. The next page may turn out empty.
    pub next: Option<Query>,
}

/// Reads all pages of `query`, up to `items_max` items.
///
/// # Errors
/// As [`Store::query`], and [`StoreError::TooLarge`] when the range holds more than `items_max` items: an answer
/// is never cut short silently.
pub async fn collect(store: &dyn Store, query: Query, items_max: usize) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut next = Some(query);
    while let Some(query) = next {
        let page = store.query(query).await?;
        items.extend(page.items);
        next = page.next;
        if items.len() > items_max {
            let (what, size, unit) = ("query answer", items.len(), "items");
            return Err(StoreError::TooLarge { what, size, unit, limit: items_max });
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(bytes: &[u8]) -> SortKey {
        SortKey::new(bytes.to_vec()).unwrap()
    }

    #[test]
    fn prefix_ranges_hold_exactly_the_keys_with_the_prefix() {
        let range = SortRange::prefix(sort(b"a\xff"));
        assert!(range.contains(&sort(b"a\xff")) && range.contains(&sort(b"a\xff\xff\xff")));
        assert!(!range.contains(&sort(b"a\xfe")) && !range.contains(&sort(b"b")));
        let open = SortRange::prefix(sort(b"\xff"));
        assert!(open.contains(&sort(b"\xff\xff")) && !open.contains(&sort(b"\xfe")));
        assert_eq!(open.end, None);
    }

    #[test]
    fn remaining_cuts_behind_the_last_key_in_either_direction() {
        let partition = Partition::new("p").unwrap();
        let query = Query::new(partition).range(SortRange::between(sort(b"b"), sort(b"f")));
        let forward = query.clone().after(sort(b"c")).remaining();
        assert!(!forward.contains(&sort(b"c")) && forward.contains(&sort(b"c\0")));
        assert!(!forward.contains(&sort(b"f")));
        let reverse = query.reverse().after(sort(b"c")).remaining();
        assert!(!reverse.contains(&sort(b"c")) && reverse.contains(&sort(b"b")));
    }

    #[test]
    fn nothing_remains_behind_the_greatest_key() {
        let greatest = sort(&[0xff; SORT_KEY_BYTES_MAX]);
        let query = Query::new(Partition::new("p").unwrap());
        assert!(query.clone().after(greatest).remaining().is_empty());
        let mut full = vec![7; SORT_KEY_BYTES_MAX];
        full[SORT_KEY_BYTES_MAX - 1] = 0xff;
        let rest = query.after(sort(&full)).remaining();
        assert!(!rest.contains(&sort(&full)) && rest.contains(&sort(&[8])));
    }
}
