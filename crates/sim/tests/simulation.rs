//! The simulator itself: that it repeats itself, and that its worlds are not dull.
#![allow(clippy::unwrap_used, reason = "test code: a broken expectation ends the test")]

use millpond_sim::simulation::{Kind, Options, run, simulate};

const KINDS: [Kind; 4] = [Kind::Loose, Kind::Strict, Kind::Sequencer, Kind::Log];

#[test]
fn the_same_seed_makes_the_same_trace_and_another_one_does_not() {
    for kind in KINDS {
        let (first, _) = simulate(kind, 11, 60).unwrap();
        assert_eq!(first, simulate(kind, 11, 60).unwrap().0, "{kind:?}");
        assert_ne!(first, simulate(kind, 12, 60).unwrap().0, "{kind:?}");
    }
}

#[test]
fn everything_that_can_befall_a_process_does() {
    for kind in KINDS {
        let traces: Vec<String> = (0..6).map(|seed| simulate(kind, seed, 200).unwrap().0).collect();
        for what in ["killed", "pauses", "jumps", "ms pass", "conflict", "throttled", "unknown"] {
            assert!(traces.iter().any(|trace| trace.contains(what)), "{kind:?}: no {what:?}");
        }
    }
}

#[test]
fn kinds_take_turns_and_operations_are_counted() {
    let options = Options { first: 3, seeds: 8, operations: 40, kinds: Vec::new(), twice: 2 };
    let report = run(&options).unwrap();
    assert_eq!((report.seeds, report.same), (8, 2));
    assert!(report.operations >= 8 * 40, "{report}");
}
