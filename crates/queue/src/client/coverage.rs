//! Which spans of a lane have been read.

use millpond_lanes::Place;

use crate::limits::COVERED_SPANS_MAX;

/// A place as a number, so that spans have ends.
pub const fn point(place: Place) -> u128 {
    match place {
        Place::Id(id) => u128::from_be_bytes(*id.as_bytes()),
        Place::Number(number) => number as u128,
    }
}

/// The spans of a lane that have been read: disjoint, in order, half-open. Behind the last row a lane is never
/// covered, since rows come there.
#[derive(Debug, Default)]
pub struct Coverage {
    spans: Vec<(u128, u128)>,
}

impl Coverage {
    /// Notes that everything from `start` up to `end` was read.
    pub fn cover(&mut self, start: u128, end: u128) {
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        self.spans.retain(|&(from, to)| {
            let apart = to < start || end < from;
            if !apart {
                start = start.min(from);
                end = end.max(to);
            }
            apart
        });
        let at = self.spans.partition_point(|&(from, _)| from < start);
        self.spans.insert(at, (start, end));
        if self.spans.len() > COVERED_SPANS_MAX {
            self.spans.remove(COVERED_SPANS_MAX / 2);
        }
    }

    /// Notes that something in a span is to be read again.
    pub fn uncover(&mut self, start: u128, end: u128) {
        if start >= end {
            return;
        }
        let mut kept = Vec::with_capacity(self.spans.len() + 1);
        for &(from, to) in &self.spans {
            if to <= start || end <= from {
                kept.push((from, to));
                continue;
            }
            if from < start {
                kept.push((from, start));
            }
            if end < to {
                kept.push((end, to));
            }
        }
        self.spans = kept;
    }

    /// The end of what is covered from the beginning on.
    pub fn front(&self) -> u128 {
        self.spans.first().filter(|(from, _)| *from == 0).map_or(0, |(_, to)| *to)
    }

    /// The first span that is not covered; its end is nothing when it is open.
    pub fn first_gap(&self) -> (u128, Option<u128>) {
        let front = self.front();
        (front, self.spans.iter().map(|(from, _)| *from).find(|from| *from > front))
    }

    /// Where the last row that was read ends.
    pub fn end(&self) -> u128 {
        self.spans.last().map_or(0, |(_, to)| *to)
    }

    /// The start of what is covered up to the end.
    pub fn back(&self) -> u128 {
        self.spans.last().map_or(u128::MAX, |(from, _)| *from)
    }

    /// The last span before the end that is not covered.
    pub fn last_gap(&self) -> Option<(u128, u128)> {
        let back = self.spans.last().map(|(from, _)| *from).filter(|from| *from > 0)?;
        let below = self.spans.len().checked_sub(2).and_then(|at| self.spans.get(at));
        Some((below.map_or(0, |(_, to)| *to), back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn gaps_are_found_from_both_ends() {
        let mut coverage = Coverage::default();
        assert_eq!((coverage.first_gap(), coverage.last_gap()), ((0, None), None));
        coverage.cover(0, 10);
        coverage.cover(50, 60);
        assert_eq!(coverage.first_gap(), (10, Some(50)));
        assert_eq!(coverage.last_gap(), Some((10, 50)));
        assert_eq!((coverage.front(), coverage.back(), coverage.end()), (10, 50, 60));
        coverage.cover(10, 50);
        assert_eq!((coverage.first_gap(), coverage.last_gap()), ((60, None), None));
        coverage.uncover(20, 21);
        assert_eq!(coverage.first_gap(), (20, Some(21)));
    }

    proptest! {
        #[test]
        fn spans_are_sets(steps in vec((any::<bool>(), 0..40_u128, 0..40_u128), 0..30)) {
            let (mut coverage, mut model) = (Coverage::default(), [false; 40]);
            for (cover, a, b) in steps {
                let (from, to) = (a.min(b), a.max(b));
                if cover { coverage.cover(from, to) } else { coverage.uncover(from, to) }
                model[from as usize..to as usize].fill(cover);
            }
            let front = model.iter().take_while(|covered| **covered).count();
            prop_assert_eq!(coverage.front(), front as u128);
            let end = model.iter().rposition(|covered| *covered).map_or(0, |at| at + 1);
            prop_assert_eq!(coverage.end(), end as u128);
        }
    }
}
