//! Ranges of keys known to hold no row.
//!
//! The engine is log-structured: deleted rows stay in the way of a scan until a compaction removes them, so the
//! first row of a queue could lie behind a million deleted ones. What one scan had to step over, the next one
//! skips.
//!
//! A gap must never hide a row. The rules that make it so, all under one lock (`Shared::state`):
//! - the writer publishes a new view together with [`Gaps::note_puts`], which takes the put rows out of all gaps;
//!   so at every moment the gaps hold for the view that is current then;
//! - a scan takes its view and its gaps in one step, [`Gaps::begin`];
//! - what a scan learns holds for its own view, which may be old by then. Until [`Gaps::finish`] the writer notes
//!   for each running scan the lowest and the highest key put since, and nothing between them is learned.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use millpond_store::Direction;

use crate::limits::{GAPS_MAX, GAPS_PER_SCAN_MAX};
use crate::rowkey::successor;

/// A half-open range of keys.
pub(crate) type KeyRange = (Bytes, Bytes);

/// The known gaps of one table.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Start to end; disjoint and not touching.
    known: BTreeMap<Bytes, Bytes>,
    running: BTreeMap<u64, Running>,
    begun: u64,
}

#[derive(Debug)]
struct Running {
    range: KeyRange,
    /// Lowest and highest key put since the scan began.
    put: Option<(Bytes, Bytes)>,
}

/// A scan that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub id: u64,
    /// What is left to read, in the scan's direction.
    pub spans: Vec<KeyRange>,
}

impl Gaps {
    /// Begins a scan of the current view.
    pub(crate) fn begin(&mut self, range: KeyRange, direction: Direction) -> Begun {
        let spans = match direction {
            Direction::Forward => self.spans_forward(&range),
            Direction::Reverse => self.spans_reverse(&range),
        };
        self.begun += 1;
        self.running.insert(self.begun, Running { range, put: None });
        Begun { id: self.begun, spans }
    }

    fn spans_forward(&self, (start, end): &KeyRange) -> Vec<KeyRange> {
        let mut spans = Vec::new();
        let mut at = start.clone();
        if let Some((_, gap_end)) = self.known.range(..=start.clone()).next_back()
            && *gap_end > at
        {
            at = gap_end.clone();
        }
        let behind = (Bound::Excluded(start.clone()), Bound::Excluded(end.clone()));
        if start < end {
            for (gap_start, gap_end) in self.known.range(behind).take(GAPS_PER_SCAN_MAX) {
                spans.push((at, gap_start.clone()));
                at = gap_end.clone();
            }
        }
        spans.push((at, end.clone()));
        spans.retain(|(start, end)| start < end);
        spans
    }

    fn spans_reverse(&self, (start, end): &KeyRange) -> Vec<KeyRange> {
        let mut spans = Vec::new();
        let mut at = end.clone();
        for (gap_start, gap_end) in self.known.range(..end.clone()).rev().take(GAPS_PER_SCAN_MAX) {
            if gap_end <= start {
                break;
            }
            spans.push((gap_end.clone().min(at.clone()), at));
            at = gap_start.clone();
        }
        spans.push((start.clone(), at));
        spans.retain(|(start, end)| start < end);
        spans
    }

    /// Ends a scan and takes in what it learned.
    pub(crate) fn finish(&mut self, id: u64, learned: Vec<KeyRange>) {
        let put = self.running.remove(&id).and_then(|running| running.put);
        for (start, end) in learned {
            match &put {
                Some((lowest, highest)) if start <= *highest && *lowest < end => {
                    self.learn(start, lowest.clone());
                    self.learn(successor(highest), end);
                }
                _ => self.learn(start, end),
            }
        }
    }

    /// Takes put rows out of all gaps. The writer calls it in the step that makes the rows visible.
    pub(crate) fn note_puts<'a>(&mut self, keys: impl Iterator<Item = &'a Bytes>) {
        for key in keys {
            self.cut(key);
            for running in self.running.values_mut() {
                let (start, end) = &running.range;
                if start <= key && key < end {
                    let (lowest, highest) = running.put.get_or_insert((key.clone(), key.clone()));
                    if key < lowest {
                        *lowest = key.clone();
                    }
                    if key > highest {
                        *highest = key.clone();
                    }
                }
            }
        }
    }

    fn cut(&mut self, key: &Bytes) {
        let Some((start, end)) = self.known.range(..=key.clone()).next_back() else {
            return;
        };
        if end <= key {
            return;
        }
        let (start, end) = (start.clone(), end.clone());
        self.known.remove(&start);
        if start < *key {
            self.known.insert(start, key.clone());
        }
        let behind = successor(key);
        if behind < end {
            self.known.insert(behind, end);
        }
    }

    fn learn(&mut self, mut start: Bytes, mut end: Bytes) {
        if start >= end {
            return;
        }
        if let Some((before, before_end)) = self.known.range(..=start.clone()).next_back()
            && *before_end >= start
        {
            start = before.clone();
        }
        let touching = (Bound::Included(start.clone()), Bound::Included(end.clone()));
        let merged: Vec<Bytes> =
            self.known.range(touching).map(|(start, _)| start.clone()).collect();
        for gap in merged {
            end = self.known.remove(&gap).map_or(end.clone(), |gap_end| gap_end.max(end));
        }
        self.known.insert(start, end);
        if self.known.len() > GAPS_MAX {
            // Any gap may be forgotten at any time: it only costs the next scan its steps.
            self.known.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(n: u8) -> Bytes {
        Bytes::copy_from_slice(&[n])
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8),
        Delete(u8),
        Begin(u8, u8, bool),
        Finish(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any::<u8>().prop_map(Step::Put),
            any::<u8>().prop_map(Step::Delete),
            (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(a, b, r)| Step::Begin(a, b, r)),
            any::<prop::sample::Index>().prop_map(Step::Finish),
        ]
    }

    proptest! {
        /// Scans read the view of their beginning through the spans they were given, and learn every gap they
        /// saw, however late they finish.
        #[test]
        fn a_gap_never_hides_a_row(steps in prop::collection::vec(step(), 1..200)) {
            let mut gaps = Gaps::default();
            let mut rows = BTreeSet::new();
            let mut running: Vec<(u64, Vec<KeyRange>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Put(n) => {
                        rows.insert(key(n));
                        gaps.note_puts([key(n)].iter());
                    }
                    Step::Delete(n) => {
                        rows.remove(&key(n));
                    }
                    Step::Begin(a, b, reverse) => {
                        let range = (key(a.min(b)), key(a.max(b)));
                        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
                        let begun = gaps.begin(range.clone(), direction);
                        let mut seen = BTreeSet::new();
                        let mut learned = Vec::new();
                        for (start, end) in begun.spans {
                            let mut at = start;
                            for row in rows.range(at.clone()..end.clone()) {
                                learned.push((at, row.clone()));
                                at = successor(row);
                                prop_assert!(seen.insert(row.clone()), "seen twice");
                            }
                            learned.push((at, end));
                        }
                        let all = rows.range(range.0..range.1).cloned().collect();
                        prop_assert_eq!(seen, all);
                        running.push((begun.id, learned));
                    }
                    Step::Finish(which) => {
                        if !running.is_empty() {
                            let (id, learned) = running.remove(which.index(running.len()));
                            gaps.finish(id, learned);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn gaps_are_bounded_and_join() {
        let mut gaps = Gaps::default();
        for n in 0..=255u8 {
            let id = gaps.begin((key(0), key(255)), Direction::Forward).id;
            gaps.finish(id, vec![(key(n), key(n.saturating_add(1)))]);
        }
        assert_eq!(gaps.known.len(), 1, "touching gaps join");
        for n in 0..2 * GAPS_MAX as u64 {
            let start = Bytes::copy_from_slice(&(n * 2).to_be_bytes());
            gaps.learn(start.clone(), successor(&start));
        }
        assert!(gaps.known.len() <= GAPS_MAX);
    }
}
