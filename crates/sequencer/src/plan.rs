//! How far a cursor may go, given which messages and gap records are there. Pure: no store, no time.

use std::collections::BTreeSet;

use crate::gap::{Gap, StoredGap};
use crate::limits::GAP_WRITES_MAX;

/// What was found at and behind a cursor.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Numbers whose messages are stored.
    pub(crate) items: BTreeSet<u64>,
    /// Numbers below this and not in `items` had no message when it was looked.
    pub(crate) complete_to: u64,
    /// Declared gaps that are not passed yet, by rising number; all that begin below `gaps_to`.
    pub(crate) gaps: Vec<StoredGap>,
    /// Numbers from here on may be in gaps that were not read.
    pub(crate) gaps_to: u64,
}

/// A step of a cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// The number that will be waited for.
    pub(crate) next: u64,
    /// Gap records that are to be replaced …
    pub(crate) replaced: Vec<StoredGap>,
    /// … by these.
    pub(crate) made: Vec<Gap>,
    /// How many gaps will be ahead no more.
    pub(crate) passed: u64,
}

/// The step from `next` on: messages without a break, and declared gaps as far as no message lies in them. A gap
/// counts as one of the batch.
pub(crate) fn plan(next: u64, found: &Found, batch: usize) -> Step {
    let mut at = next;
    let mut runs: Vec<Gap> = Vec::new();
    for _ in 0..batch {
        if at >= found.gaps_to || runs.len() >= GAP_WRITES_MAX / 2 {
            break;
        }
        if found.items.contains(&at) {
            at += 1;
            continue;
        }
        let Some(gap) = found.gaps.iter().map(|stored| stored.gap).find(|gap| gap.covers(at))
        else {
            break;
        };
        let item = found.items.range(at..).next().copied().unwrap_or(u64::MAX);
        let end = gap.end.min(item).min(found.complete_to);
        if end <= at {
            break;
        }
        runs.push(Gap { first: at, end, ..gap });
        at = end;
    }
    let mut step = Step { next: at, ..Step::default() };
    for stored in found.gaps.iter().filter(|stored| stored.gap.first < at) {
        let gap = stored.gap;
        let mut kept: Vec<Gap> = runs.iter().filter(|run| gap.covers(run.first)).copied().collect();
        if gap.end > at {
            kept.push(Gap { first: at, ..gap });
        } else {
            step.passed += 1;
        }
        if kept != [gap] {
            step.replaced.push(*stored);
            step.made.extend(kept);
        }
    }
    step
}

/// The parts of `first..end` in which there is neither a message nor a gap.
pub(crate) fn uncovered(
    first: u64,
    end: u64,
    items: &BTreeSet<u64>,
    gaps: &[StoredGap],
) -> Vec<(u64, u64)> {
    let mut taken: Vec<(u64, u64)> = items.range(first..end).map(|seq| (*seq, seq + 1)).collect();
    taken.extend(gaps.iter().map(|stored| (stored.gap.first, stored.gap.end)));
    taken.sort_unstable();
    let mut at = first;
    let mut free = Vec::new();
    for (from, to) in taken.into_iter().chain([(end, end)]) {
        let from = from.min(end);
        if at < from {
            free.push((at, from));
        }
        at = at.max(to);
    }
    free
}

#[cfg(test)]
mod tests {
    use millpond_store::{Timestamp, Version};
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::proptest;

    use super::*;
    use crate::gap::GapReason;

    fn gap(first: u64, end: u64) -> StoredGap {
        let at = Timestamp::from_millis(1);
        let gap = Gap { first, end, reason: GapReason::Declared, at };
        StoredGap { gap, version: Version::from_u64(first) }
    }

    fn found(items: &[u64], gaps: Vec<StoredGap>) -> Found {
        let items = items.iter().copied().collect();
        Found { items, complete_to: u64::MAX, gaps, gaps_to: u64::MAX }
    }

    #[test]
    fn runs_end_at_the_first_number_that_is_missing_and_at_the_batch() {
        assert_eq!(plan(3, &found(&[3, 4, 5, 7], vec![]), 10).next, 6);
        assert_eq!(plan(3, &found(&[3, 4, 5, 7], vec![]), 2).next, 5);
        assert_eq!(plan(2, &found(&[3], vec![]), 2).next, 2);
    }

    #[test]
    fn a_gap_is_passed_whole_and_cut_where_messages_lie_in_it() {
        let whole = plan(0, &found(&[0, 5], vec![gap(1, 5)]), 10);
        assert_eq!((whole.next, whole.passed, whole.made.len()), (6, 1, 0));
        let cut = plan(0, &found(&[0, 3], vec![gap(1, 6)]), 10);
        let made: Vec<_> = cut.made.iter().map(|gap| (gap.first, gap.end)).collect();
        assert_eq!((cut.next, cut.passed, made), (6, 1, vec![(1, 3), (4, 6)]));
        let filled = plan(0, &found(&[0, 1], vec![gap(1, 2)]), 10);
        assert_eq!((filled.next, filled.replaced.len(), filled.made.len()), (2, 1, 0));
        let halfway = plan(0, &found(&[0, 3], vec![gap(1, 6)]), 3);
        let made: Vec<_> = halfway.made.iter().map(|gap| (gap.first, gap.end)).collect();
        assert_eq!((halfway.next, halfway.passed, made), (4, 0, vec![(1, 3), (4, 6)]));
    }

    #[test]
    fn nothing_is_passed_that_was_not_looked_at() {
        let mut seen = found(&[0], vec![gap(1, 100)]);
        seen.complete_to = 1;
        assert_eq!(plan(0, &seen, 10).next, 1);
        seen.complete_to = 50;
        let step = plan(0, &seen, 10);
        assert_eq!((step.next, step.passed, step.made.len()), (50, 0, 2));
        seen.gaps_to = 0;
        assert_eq!(plan(0, &seen, 10).next, 0);
    }

    proptest! {
        #[test]
        fn every_number_passed_is_a_message_or_in_exactly_one_gap(
            items in btree_set(0..60_u64, 0..40),
            lengths in vec((0..6_u64, 1..8_u64), 0..6),
            batch in 1..40_usize,
            complete_to in 0..80_u64,
        ) {
            let mut gaps = Vec::new();
            let mut at = 0;
            for (pause, length) in lengths {
                gaps.push(gap(at + pause, at + pause + length));
                at += pause + length;
            }
            let before: BTreeSet<u64> =
                gaps.iter().flat_map(|stored| stored.gap.first..stored.gap.end).collect();
            let found = Found { items: items.clone(), complete_to, gaps, gaps_to: u64::MAX };
            let step = plan(0, &found, batch);
            let mut after: Vec<Gap> = found.gaps.iter()
                .filter(|stored| !step.replaced.contains(stored))
                .map(|stored| stored.gap).collect();
            after.extend(&step.made);
            for seq in 0..80 {
                let covering = after.iter().filter(|gap| gap.covers(seq)).count();
                if seq < step.next {
                    assert_eq!(covering, usize::from(!items.contains(&seq)), "number {seq}");
                    assert!(items.contains(&seq) || seq < complete_to);
                } else {
                    assert_eq!(covering, usize::from(before.contains(&seq)), "number {seq}");
                }
            }
            let ahead = after.iter().filter(|gap| gap.first >= step.next).count() as u64;
            assert_eq!(ahead + step.passed, found.gaps.len() as u64);
            let free = uncovered(0, 80, &items, &found.gaps);
            for seq in 0..80 {
                let is_free = free.iter().any(|(first, end)| (*first..*end).contains(&seq));
                assert_eq!(is_free, !items.contains(&seq) && !before.contains(&seq));
            }
        }
    }
}
