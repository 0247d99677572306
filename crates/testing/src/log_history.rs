//! What happened to a topic, and whether it may have: no gap, no reuse, no skip, no return within an assignment, and no
//! writer behind the one that replaced it.

use std::collections::{BTreeMap, BTreeSet};

use millpond_log::{Assignment, Record};

/// One event, in the order in which it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An append with this number was acknowledged at this place; `fence` is its token.
    Appended {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// The record's number.
        number: u64,
        /// Its token, if it had one.
        fence: Option<u64>,
    },
    /// An append with this number ended with an unknown outcome.
    Unknown {
        /// The record's number.
        number: u64,
    },
    /// A worker of the group was given a partition, to go on from here.
    Taken {
        /// Its right.
        assignment: Assignment,
        /// Where it begins.
        from: u64,
    },
    /// A worker read these offsets, from the first up to and without the second.
    Read {
        /// Its right.
        assignment: Assignment,
        /// From.
        from: u64,
        /// To.
        to: u64,
    },
    /// A checkpoint was acknowledged.
    Checkpointed {
        /// The worker's right.
        assignment: Assignment,
        /// Everything before this is done.
        next: u64,
    },
}

/// What was observed, in order.
#[derive(Debug, Default)]
pub struct History(pub Vec<Event>);

impl History {
    /// Judges the history, given everything that is in each partition at the end.
    pub fn check(&self, log: &BTreeMap<u32, Vec<Record>>, number: impl Fn(&Record) -> u64) {
        let mut found = BTreeMap::new();
        for (partition, records) in log {
            for (at, record) in (0_u64..).zip(records) {
                assert_eq!(record.offset, at, "a gap in partition {partition}");
                let twice = found.insert(number(record), (*partition, at));
                assert_eq!(twice, None, "record {} is there twice", number(record));
            }
        }
        self.check_appends(&found);
        self.check_fences();
        self.check_reads();
    }

    fn check_appends(&self, found: &BTreeMap<u64, (u32, u64)>) {
        let mut places = BTreeSet::new();
        let mut known = BTreeSet::new();
        for event in &self.0 {
            match event {
                Event::Appended { partition, offset, number, .. } => {
                    assert!(places.insert((*partition, *offset)), "offset {offset} given twice");
                    let place = found.get(number);
                    assert_eq!(place, Some(&(*partition, *offset)), "record {number} was lost");
                    known.insert(*number);
                }
                Event::Unknown { number } => {
                    known.insert(*number);
                }
                _ => {}
            }
        }
        let strange: Vec<_> = found.keys().filter(|number| !known.contains(number)).collect();
        assert!(strange.is_empty(), "records that failed are there: {strange:?}");
    }

    fn check_fences(&self) {
        let mut by_place = BTreeMap::new();
        for event in &self.0 {
            if let Event::Appended { partition, offset, fence: Some(fence), .. } = event {
                by_place.insert((*partition, *offset), *fence);
            }
        }
        let mut greatest: BTreeMap<u32, u64> = BTreeMap::new();
        for ((partition, offset), fence) in by_place {
            let before = greatest.entry(partition).or_default();
            assert!(fence >= *before, "a fenced writer appears at {partition}/{offset}");
            *before = fence;
        }
    }

    fn check_reads(&self) {
        let mut checkpoints: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut places: BTreeMap<Assignment, u64> = BTreeMap::new();
        for event in &self.0 {
            match event {
                Event::Taken { assignment, from } => {
                    let (epoch, done) = checkpoints.entry(assignment.partition).or_default();
                    assert!(assignment.epoch > *epoch, "an epoch was given twice: {assignment:?}");
                    assert!(from >= done, "{assignment:?} returns to {from}, {done} were done");
                    (*epoch, *done) = (assignment.epoch, *from);
                    places.insert(*assignment, *from);
                }
                Event::Read { assignment, from, to } => {
                    let place = places.get_mut(assignment).expect("read without a right");
                    assert_eq!(from, place, "{assignment:?} skips or returns");
                    *place = *to;
                }
                Event::Checkpointed { assignment, next } => {
                    let (epoch, done) = checkpoints.entry(assignment.partition).or_default();
                    assert_eq!(
                        assignment.epoch, *epoch,
                        "{assignment:?} checkpoints after its end"
                    );
                    assert!(next >= done, "a checkpoint went back");
                    assert!(next <= places.get(assignment).expect("a right"), "not read yet");
                    *done = *next;
                }
                Event::Appended { .. } | Event::Unknown { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::Timestamp;

    fn log(numbers: &[u64]) -> BTreeMap<u32, Vec<Record>> {
        let record = |(offset, number): (u64, &u64)| Record {
            partition: 0,
            offset,
            timestamp: Timestamp::default(),
            key: None,
            payload: number.to_be_bytes().to_vec().into(),
            headers: Vec::new(),
        };
        BTreeMap::from([(0, (0..).zip(numbers).map(record).collect())])
    }

    fn check(events: Vec<Event>, numbers: &[u64]) -> std::thread::Result<()> {
        let number =
            |record: &Record| u64::from_be_bytes(record.payload.as_ref().try_into().unwrap());
        std::panic::catch_unwind(|| History(events).check(&log(numbers), number))
    }

    fn appended(offset: u64, number: u64, fence: Option<u64>) -> Event {
        Event::Appended { partition: 0, offset, number, fence }
    }

    #[test]
    fn what_may_not_happen_is_noticed() {
        let at = |epoch| Assignment { partition: 0, epoch };
        let taken = |epoch, from| Event::Taken { assignment: at(epoch), from };
        let read = |epoch, from, to| Event::Read { assignment: at(epoch), from, to };
        let done = |epoch, next| Event::Checkpointed { assignment: at(epoch), next };
        let good = vec![
            appended(0, 7, None),
            appended(1, 8, None),
            taken(1, 0),
            read(1, 0, 2),
            done(1, 1),
            taken(2, 1),
            read(2, 1, 2),
        ];
        check(good, &[7, 8]).expect("a good history");
        for (what, events, numbers) in [
            ("lost", vec![appended(0, 7, None)], &[][..]),
            ("reused", vec![appended(0, 7, None), appended(0, 8, None)], &[8]),
            ("doubled", vec![Event::Unknown { number: 7 }], &[7, 7]),
            ("revived", vec![], &[7]),
            ("fenced", vec![appended(0, 7, Some(2)), appended(1, 8, Some(1))], &[7, 8]),
            ("skipped", vec![taken(1, 0), read(1, 1, 2)], &[]),
            ("returned", vec![taken(1, 0), read(1, 0, 2), read(1, 1, 2)], &[]),
            ("stale", vec![taken(1, 0), read(1, 0, 2), taken(2, 0), done(1, 2)], &[]),
            ("undone", vec![taken(1, 0), read(1, 0, 2), done(1, 2), taken(2, 1)], &[]),
            ("same epoch", vec![taken(1, 0), taken(1, 0)], &[]),
        ] {
            assert!(check(events, numbers).is_err(), "{what} was not noticed");
        }
    }
}
