//! What an operator does to a queue.

use std::time::Duration;

use millpond_sequencer::limits::TRIM_LAG;
use millpond_sequencer::{
    Advance, Arrival, Config, Event, From, GapPolicy, Output, Retention, SequencerError,
};

use super::world::{World, message};
use crate::subject::{Subject, bounded};

/// Both begin a new epoch; nothing else ever sets a cursor back.
pub async fn rewind_and_reset_are_explicit(subject: &Subject) {
    let world = World::new(subject);
    let config = Config { gaps: GapPolicy::WhenDeclared, ..Config::default() };
    let sequencer = world.open(config);
    for seq in [0, 1, 2, 6, 7, 9] {
        sequencer.put("q", seq, message(seq, 8)).await.unwrap();
    }
    sequencer.declare_gap("q", 3..6).await.unwrap();
    let mut subscription = sequencer.subscribe("q", From::Start).await.unwrap();
    let told = bounded("the first range", subscription.next()).await.unwrap();
    assert_eq!((told.epoch, told.event), (0, Event::Advanced(Advance::new(0, 8).unwrap())));
    // Into the gap means to its beginning, and the gap is passed again as it was.
    assert_eq!(sequencer.rewind("q", 4).await.unwrap(), Advance::new(3, 8));
    let told = bounded("the range again", subscription.next()).await.unwrap();
    assert_eq!((told.epoch, told.event), (1, Event::Advanced(Advance::new(3, 8).unwrap())));
    assert_eq!(world.open(config).rewind("q", 0).await.unwrap(), Advance::new(0, 8));
    let cursor = sequencer.cursor("q").await.unwrap().unwrap();
    assert_eq!((cursor.epoch, cursor.base, cursor.gaps, cursor.gaps_ahead), (2, 0, 1, 0));
    let error = sequencer.rewind("q", 9).await.unwrap_err();
    assert!(matches!(error, SequencerError::OutOfRange { first: 0, next: 8, .. }), "{error}");
    assert_eq!(sequencer.put("q", 8, message(8, 8)).await.unwrap().advanced, Advance::new(8, 10));

    // A reset forgets everything, for handles that remember too.
    sequencer.reader("q", "r").unwrap().commit(5).await.unwrap();
    world.open(config).reset("q", 1).await.unwrap();
    let cursor = sequencer.cursor("q").await.unwrap().unwrap();
    assert_eq!((cursor.next, cursor.start, cursor.epoch, cursor.life), (1, 1, 3, 1));
    assert_eq!(sequencer.pending("q").await.unwrap().count, 0);
    assert!(sequencer.readers("q").await.unwrap().is_empty());
    let put = sequencer.put("q", 1, "anew").await.unwrap();
    assert_eq!((put.arrival, put.advanced), (Arrival::Stored, Advance::new(1, 2)));
    assert_eq!(sequencer.put("q", 3, "anew").await.unwrap().advanced, None);
    let error = sequencer.put("q", 0, "old").await.unwrap_err();
    assert!(matches!(error, SequencerError::Late { .. }), "{error}");
    let read = sequencer.read("q", 1..2).await.unwrap();
    assert!(
        matches!(&read.outputs[..], [Output::Message(found)] if found.message.payload == "anew")
    );
}

/// What is trimmed cannot be read or gone back to, and the error says what can.
pub async fn trim_and_retention_remove_only_a_delivered_prefix(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    for seq in [0, 1, 2, 3, 4, 6] {
        sequencer.put("q", seq, message(seq, 8)).await.unwrap();
    }
    assert!(sequencer.trim("q", 6).await.is_err(), "5 is missing");
    let trimmed = sequencer.trim("q", 3).await.unwrap();
    assert_eq!((trimmed.floor, trimmed.removed, trimmed.more), (3, 3, false));
    assert_eq!(sequencer.read("q", 3..5).await.unwrap().outputs.len(), 2);
    for error in
        [sequencer.read("q", 2..5).await.unwrap_err(), sequencer.rewind("q", 2).await.unwrap_err()]
    {
        assert!(matches!(error, SequencerError::OutOfRange { first: 3, next: 5, .. }), "{error}");
    }
    let rows = world.rows("q/q").await.len();
    for handle in [&sequencer, &world.open(Config::default())] {
        let put = handle.put("q", 1, message(1, 8)).await.unwrap();
        assert_eq!((put.arrival, put.advanced), (Arrival::Passed, None));
    }
    assert_eq!(world.rows("q/q").await.len(), rows, "something stayed below the floor");
    assert_eq!(sequencer.put("q", 5, message(5, 8)).await.unwrap().advanced, Advance::new(5, 7));

    let last = world.open(Config { retention: Retention::Last(10), ..Config::default() });
    let aged = Config { retention: Retention::For(Duration::from_secs(100)), ..Config::default() };
    let aged = world.open(aged);
    let count = 3 * TRIM_LAG;
    for seq in (0..count).filter(|seq| *seq != count - 20) {
        subject.clock.advance(Duration::from_secs(1));
        last.put("last", seq, message(seq, 4)).await.unwrap();
        aged.put("aged", seq, message(seq, 4)).await.unwrap();
    }
    for (sequencer, queue, kept) in [(&last, "last", 10), (&aged, "aged", 90)] {
        let cursor = sequencer.cursor(queue).await.unwrap().unwrap();
        assert_eq!(cursor.next, count - 20, "{queue}");
        let left = cursor.next - cursor.floor;
        assert!((kept..=kept + 2 * TRIM_LAG).contains(&left), "{queue}: {left} are kept");
        assert_eq!(sequencer.pending(queue).await.unwrap().count, 19, "what waits was removed");
        let range = cursor.floor..cursor.next;
        assert_eq!(sequencer.read(queue, range).await.unwrap().outputs.len() as u64, left);
    }
}
