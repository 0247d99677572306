//! Numbers that do not come, and those that come too late.

use std::time::Duration;

use millpond_sequencer::{
    Advance, Arrival, Config, Event, From, GapPolicy, GapReason, LatePolicy, Output, Sequencer,
    SequencerError, Start,
};

use super::world::{World, message};
use crate::subject::{Subject, bounded};

const T: Duration = Duration::from_secs(60);

async fn put_all(sequencer: &Sequencer, numbers: impl IntoIterator<Item = u64>) {
    for seq in numbers {
        sequencer.put("q", seq, message(seq, 10)).await.unwrap();
    }
}

/// What a range holds: `(number, 1)` for a message, `(first, count)` for a gap, and why.
async fn outputs(
    sequencer: &Sequencer,
    first: u64,
    next: u64,
) -> Vec<(u64, u64, Option<GapReason>)> {
    let read = sequencer.read("q", first..next).await.unwrap();
    assert_eq!(read.next, next);
    read.outputs
        .iter()
        .map(|output| match output {
            Output::Message(found) => {
                assert_eq!(found.message, message(found.seq, 10));
                (found.seq, 1, None)
            }
            Output::Gap(gap) => (gap.first, gap.end - gap.first, Some(gap.reason)),
        })
        .collect()
}

/// However long, and `missing` says what for.
pub async fn a_gap_waits_and_missing_ranges_are_listed(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    put_all(&sequencer, [0, 1, 3, 4, 8]).await;
    subject.clock.advance(T * 10_000);
    let swept = sequencer.sweep().await.unwrap();
    assert!(swept.skipped.is_empty() && swept.parked.is_empty());
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, 2);
    assert_eq!(sequencer.missing("q").await.unwrap(), [2..3, 5..8]);
    let error = sequencer.declare_gap("q", 2..3).await.unwrap_err();
    assert!(matches!(error, SequencerError::NotAllowed { .. }), "{error}");
    let passed = sequencer.skip("q", 3).await.unwrap();
    assert_eq!(passed, Advance::new(2, 5));
    let expected = [(2, 1, Some(GapReason::Skipped)), (3, 1, None), (4, 1, None)];
    assert_eq!(outputs(&sequencer, 2, 5).await, expected);
    put_all(&sequencer, [5, 7]).await;
    assert_eq!(sequencer.skip("q", 9).await.unwrap(), Advance::new(6, 9));
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, 9);
    world.check("q", &[], 1, "skips").await;
}

/// The time counts from when the gap was first seen, each gap for itself.
pub async fn a_gap_is_skipped_after_its_time_from_first_sight(subject: &Subject) {
    let world = World::new(subject);
    let config = Config { gaps: GapPolicy::SkipAfter(T), ..Config::default() };
    let sequencer = world.open(config);
    put_all(&sequencer, [0, 2]).await;
    subject.clock.advance(T / 2);
    // Another process sees the gap again, which does not begin its time anew.
    put_all(&world.open(config), [3, 6]).await;
    subject.clock.advance(T / 2 - Duration::from_millis(1));
    assert!(world.open(config).sweep().await.unwrap().skipped.is_empty(), "too early");
    subject.clock.advance(Duration::from_millis(1));
    let swept = world.open(config).sweep().await.unwrap();
    assert_eq!(swept.skipped.len(), 1, "{swept:?}");
    assert_eq!(swept.advanced[0].1, Advance::new(1, 4).unwrap());
    // The gap before 6 is seen as such only now.
    assert!(sequencer.sweep().await.unwrap().skipped.is_empty());
    subject.clock.advance(T - Duration::from_millis(1));
    assert!(sequencer.sweep().await.unwrap().skipped.is_empty());
    subject.clock.advance(Duration::from_millis(1));
    assert_eq!(sequencer.sweep().await.unwrap().skipped.len(), 1);
    let expected = [
        (0, 1, None),
        (1, 1, Some(GapReason::Timeout)),
        (2, 1, None),
        (3, 1, None),
        (4, 2, Some(GapReason::Timeout)),
        (6, 1, None),
    ];
    assert_eq!(outputs(&sequencer, 0, 7).await, expected);
    assert_eq!(outputs(&sequencer, 5, 7).await, [(5, 1, Some(GapReason::Timeout)), (6, 1, None)]);
    assert_eq!(outputs(&sequencer, 4, 5).await, [(4, 1, Some(GapReason::Timeout))]);
    // A number that comes in time is not skipped.
    put_all(&sequencer, [8]).await;
    subject.clock.advance(T / 2);
    put_all(&sequencer, [7]).await;
    subject.clock.advance(T);
    assert!(sequencer.sweep().await.unwrap().skipped.is_empty());
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, 9);
    world.check("q", &[], 1, "timers").await;
}

/// At the cursor at once, further ahead when the cursor gets there, also across many pieces.
pub async fn a_declared_gap_is_skipped(subject: &Subject) {
    let world = World::new(subject);
    let config = Config { gaps: GapPolicy::WhenDeclared, ..Config::default() };
    let sequencer = world.open(config);
    put_all(&sequencer, [0, 3]).await;
    assert_eq!(sequencer.declare_gap("q", 1..3).await.unwrap(), Advance::new(1, 4));
    assert_eq!(sequencer.declare_gap("q", 5..8).await.unwrap(), None);
    assert_eq!(sequencer.declare_gap("q", 6..10).await.unwrap(), None);
    put_all(&sequencer, [11]).await;
    assert_eq!(sequencer.missing("q").await.unwrap(), [4..5, 10..11]);
    let put = world.open(config).put("q", 4, message(4, 10)).await.unwrap();
    assert_eq!(put.advanced, Advance::new(4, 10));
    let put = world.open(config).put("q", 10, message(10, 10)).await.unwrap();
    assert_eq!(put.advanced, Advance::new(10, 12));
    let declared = Some(GapReason::Declared);
    let expected = [
        (0, 1, None),
        (1, 2, declared),
        (3, 1, None),
        (4, 1, None),
        (5, 3, declared),
        (8, 2, declared),
        (10, 1, None),
        (11, 1, None),
    ];
    assert_eq!(outputs(&sequencer, 0, 12).await, expected);
    let error = sequencer.declare_gap("q", 3..5).await.unwrap_err();
    assert!(matches!(error, SequencerError::OutOfRange { .. }), "{error}");
    assert!(sequencer.declare_gap("q", 20..20).await.is_err());
    // Before a queue began, too.
    assert_eq!(sequencer.declare_gap("new", 0..5).await.unwrap(), Advance::new(0, 5));
    assert_eq!(sequencer.put("new", 5, "x").await.unwrap().advanced, Advance::new(5, 6));
    world.check("q", &[], 1, "declared").await;
}

/// A producer that declares a gap and puts into it all the same loses nothing.
pub async fn messages_in_a_declared_gap_are_delivered(subject: &Subject) {
    let world = World::new(subject);
    let config = Config { gaps: GapPolicy::WhenDeclared, batch: 3, ..Config::default() };
    let sequencer = world.open(config);
    put_all(&sequencer, [4]).await;
    sequencer.declare_gap("q", 1..12).await.unwrap();
    put_all(&sequencer, [1, 6, 7, 11]).await;
    put_all(&world.open(config), [0]).await;
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, 12);
    let declared = Some(GapReason::Declared);
    let expected = [
        (0, 1, None),
        (1, 1, None),
        (2, 2, declared),
        (4, 1, None),
        (5, 1, declared),
        (6, 1, None),
        (7, 1, None),
        (8, 3, declared),
        (11, 1, None),
    ];
    assert_eq!(outputs(&sequencer, 0, 12).await, expected);
    let cursor = sequencer.cursor("q").await.unwrap().unwrap();
    assert_eq!((cursor.gaps, cursor.gaps_ahead), (3, 0));
    world.check("q", &[], 1, "in a gap").await;
}

/// The cursor says so, the sweep says so once, subscribers are told, and the missing message ends it.
pub async fn a_parked_queue_says_so_and_goes_on(subject: &Subject) {
    let world = World::new(subject);
    let config = Config { gaps: GapPolicy::ParkAfter(T), ..Config::default() };
    let sequencer = world.open(config);
    put_all(&sequencer, [0, 2]).await;
    let mut subscription = sequencer.subscribe("q", From::Now).await.unwrap();
    assert!(sequencer.sweep().await.unwrap().parked.is_empty());
    subject.clock.advance(T);
    let swept = sequencer.sweep().await.unwrap();
    assert_eq!(swept.parked.iter().map(|(_, seq)| *seq).collect::<Vec<_>>(), [1]);
    assert!(sequencer.sweep().await.unwrap().parked.is_empty(), "said twice");
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().parked, Some(1));
    let told = bounded("the alert", subscription.next()).await.unwrap();
    assert_eq!(told.event, Event::Parked(1));
    let put = world.open(config).put("q", 1, message(1, 10)).await.unwrap();
    assert_eq!(put.advanced, Advance::new(1, 3));
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().parked, None);
    put_all(&sequencer, [4]).await;
    subject.clock.advance(T);
    sequencer.sweep().await.unwrap();
    assert_eq!(sequencer.skip("q", 4).await.unwrap(), Advance::new(3, 5));
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().parked, None);
}

/// Rejected, kept aside, or told to subscribers; through a handle that knows and one that does not.
pub async fn late_arrivals_follow_their_policy(subject: &Subject) {
    for late in [LatePolicy::Reject, LatePolicy::SideQueue, LatePolicy::Deliver] {
        let world = World::new(subject);
        let config = Config { late, start: Start::At(1), ..Config::default() };
        let sequencer = world.open(config);
        put_all(&sequencer, [1, 9]).await;
        let mut subscription = sequencer.subscribe("q", From::Now).await.unwrap();
        sequencer.skip("q", 9).await.unwrap();
        let told = bounded("the skip", subscription.next()).await.unwrap();
        assert_eq!(told.event, Event::Advanced(Advance::new(2, 10).unwrap()));
        let before = outputs(&sequencer, 1, 10).await;
        let rows = world.rows("q/q").await.len();
        let mut expected = Vec::new();
        for (seq, handle) in [(4, &sequencer), (3, &world.open(config)), (0, &world.open(config))] {
            for round in 0..2 {
                let put = handle.put("q", seq, message(seq, 10)).await;
                match (late, round, put.as_ref().map(|put| put.arrival)) {
                    (
                        LatePolicy::Reject,
                        _,
                        Err(SequencerError::Late { seq: named, next: 10, .. }),
                    ) => {
                        assert_eq!(*named, seq);
                    }
                    (LatePolicy::SideQueue, 0, Ok(Arrival::KeptAside))
                    | (LatePolicy::Deliver, 0, Ok(Arrival::DeliveredLate)) => expected.push(seq),
                    (LatePolicy::SideQueue | LatePolicy::Deliver, 1, Ok(Arrival::Duplicate)) => {}
                    _ => panic!("{late:?}, number {seq}, round {round}: {put:?}"),
                }
            }
        }
        assert_eq!(outputs(&sequencer, 1, 10).await, before, "the past was changed");
        assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, 10);
        let kept: Vec<u64> =
            sequencer.late("q", 0).await.unwrap().iter().map(|found| found.seq).collect();
        assert_eq!(kept, expected);
        if late == LatePolicy::Reject {
            assert_eq!(world.rows("q/q").await.len(), rows, "something stayed");
        } else {
            let other = sequencer.put("q", 4, message(4, 11)).await.unwrap_err();
            assert!(matches!(other, SequencerError::Conflict { .. }), "{other}");
        }
        if late == LatePolicy::Deliver {
            for seq in expected {
                let told = bounded("a late arrival", subscription.next()).await.unwrap();
                let Event::Late(found) = told.event else { panic!("{told:?}") };
                assert_eq!((found.seq, found.message), (seq, message(seq, 10)));
            }
        }
        world.check("q", &[], 1, "late").await;
    }
}
