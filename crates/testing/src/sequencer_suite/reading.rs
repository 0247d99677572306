//! Reading, readers, subscriptions and stream records.

use millpond_sequencer::limits::READ_BYTES_MAX;
use millpond_sequencer::{Advance, Config, Event, From, Sequencer, SequencerError, streams};

use super::world::{World, message, shuffled};
use crate::subject::{Subject, bounded};

async fn filled(world: &World, count: u64, bytes: usize) -> Sequencer {
    let sequencer = world.open(Config::default());
    for seq in shuffled(0..count, count) {
        sequencer.put("q", seq, message(seq, bytes)).await.unwrap();
    }
    sequencer
}

/// Whole, in part, empty; and in several answers when there is much.
pub async fn a_range_returns_its_payloads_in_order(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = filled(&world, 30, 50).await;
    for range in [0..30, 7..9, 29..30, 30..30, 0..0] {
        let read = sequencer.read("q", range.clone()).await.unwrap();
        assert!(read.messages().map(|found| found.seq).eq(range.clone()), "{range:?}");
        assert!(read.messages().all(|found| found.message == message(found.seq, 50)));
        assert_eq!(read.next, range.end);
    }
    let error = sequencer.read("q", 10..31).await.unwrap_err();
    let expected = "q: range end 31 is outside what is there: 0 up to and without 30";
    assert_eq!(error.to_string(), expected);

    let world = World::new(subject);
    let bytes = 300_000;
    let count = (READ_BYTES_MAX / bytes) as u64 + 5;
    let sequencer = filled(&world, count, bytes).await;
    let mut at = 0;
    let mut answers = 0;
    while at < count {
        let read = sequencer.read("q", at..count).await.unwrap();
        assert!(read.messages().map(|found| found.seq).eq(at..read.next));
        at = read.next;
        answers += 1;
    }
    assert_eq!(answers, 2);
}

/// Each has its own place, which only goes back when told to.
pub async fn readers_of_one_queue_are_independent(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = filled(&world, 20, 5).await;
    sequencer.put("q", 25, message(25, 5)).await.unwrap();
    let (slow, fast) =
        (sequencer.reader("q", "slow").unwrap(), sequencer.reader("q", "fast").unwrap());
    let numbers = async |reader: &millpond_sequencer::Reader, max| -> Vec<u64> {
        reader.read(max).await.unwrap().messages().map(|found| found.seq).collect()
    };
    assert_eq!(numbers(&fast, 100).await, (0..20).collect::<Vec<_>>());
    fast.commit(20).await.unwrap();
    assert_eq!(numbers(&slow, 3).await, [0, 1, 2]);
    assert_eq!(slow.commit(2).await.unwrap(), 2);
    assert_eq!(slow.commit(1).await.unwrap(), 2, "a commit went back");
    // Another process, with the same names.
    let other = world.open(Config::default());
    assert_eq!(numbers(&other.reader("q", "slow").unwrap(), 2).await, [2, 3]);
    assert!(numbers(&other.reader("q", "fast").unwrap(), 2).await.is_empty());
    let known = other.readers("q").await.unwrap();
    assert_eq!(known, [("fast".to_owned(), 20), ("slow".to_owned(), 2)]);
    assert_eq!(fast.seek(18).await.unwrap(), 18);
    assert_eq!(numbers(&fast, 9).await, [18, 19]);
    sequencer.trim("q", 10).await.unwrap();
    let error = slow.read(5).await.unwrap_err();
    assert!(matches!(error, SequencerError::OutOfRange { first: 10, .. }), "{error}");
    slow.seek(10).await.unwrap();
    assert_eq!(numbers(&slow, 1).await, [10]);
}

/// A subscriber that dies begins again where its reader is; ranges join without gap or repeat.
pub async fn subscriptions_tell_every_range_once_in_order(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    let mut all = sequencer.subscribe_all().unwrap();
    let mut early = world.open(Config::default()).subscribe("q", From::Now).await.unwrap();
    let writer = world.open(Config::default());
    let writing = tokio::spawn(async move {
        for seq in shuffled(0..40, 5) {
            writer.put("q", seq, message(seq, 5)).await.unwrap();
        }
    });
    let mut at = 0;
    while at < 40 {
        let told = bounded("a range", early.next()).await.unwrap();
        let Event::Advanced(passed) = told.event else { panic!("{told:?}") };
        assert_eq!((told.queue.as_str(), told.epoch, passed.first), ("q", 0, at));
        at = passed.next;
    }
    bounded("the writer", writing).await.unwrap();
    let reader = sequencer.reader("q", "r").unwrap();
    reader.commit(15).await.unwrap();
    let from = From::Reader("r".into());
    for _ in 0..2 {
        let mut resumed = sequencer.subscribe("q", from.clone()).await.unwrap();
        let told = bounded("the rest", resumed.next()).await.unwrap();
        assert_eq!(told.event, Event::Advanced(Advance::new(15, 40).unwrap()));
    }
    let mut numbered = sequencer.subscribe("q", From::Number(39)).await.unwrap();
    let told = bounded("the last", numbered.next()).await.unwrap();
    assert_eq!(told.event, Event::Advanced(Advance::new(39, 40).unwrap()));
    let error = sequencer.subscribe("q", From::Number(41)).await.unwrap_err();
    assert!(matches!(error, SequencerError::OutOfRange { .. }), "{error}");

    // All queues of this process: what was not asked for yet is joined.
    for seq in [1, 0, 2] {
        sequencer.put("x", seq, "x").await.unwrap();
        sequencer.clone().put("y", seq, "y").await.unwrap();
    }
    for queue in ["x", "y"] {
        let told = bounded("a range of any queue", all.next()).await.unwrap();
        assert_eq!(told.queue.as_str(), queue);
        assert_eq!(told.event, Event::Advanced(Advance::new(0, 3).unwrap()));
    }
}

/// What Lambda gets from the table's stream, made of the items as they were written.
pub async fn cursor_records_become_ranges(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config { batch: 4, ..Config::default() });
    let mut returned = Vec::new();
    for seq in shuffled(0..25, 9) {
        returned.extend(sequencer.put("q", seq, message(seq, 5)).await.unwrap().advanced);
    }
    sequencer.trim("q", 5).await.unwrap();
    let records: Vec<String> = world
        .recorder
        .changes(&world.name, "q")
        .iter()
        .map(|change| {
            let numbers: Vec<String> = ["old", "new", "epoch", "floor"]
                .iter()
                .map(|name| format!(r#""{name}":{{"N":"{}"}}"#, change.item.attributes.number(name).unwrap()))
                .collect();
            format!(
                r#"{{"eventID":"1","eventSource":"aws:dynamodb","dynamodb":{{"Keys":{{"pk":{{"S":"{}"}},"sk":{{"B":"Yw=="}}}},"NewImage":{{{}}}}}}}"#,
                change.partition,
                numbers.join(",")
            )
        })
        .collect();
    let event = format!(r#"{{"Records":[{}]}}"#, records.join(","));
    let told = streams::ranges(event.as_bytes(), &world.name).unwrap();
    let mut at = 0;
    for announcement in &told {
        let Event::Advanced(passed) = announcement.event else { panic!("{announcement:?}") };
        assert_eq!((announcement.queue.as_str(), passed.first), ("q", at));
        assert!(passed.count() <= 4);
        at = passed.next;
    }
    assert_eq!(at, 25);
    assert_eq!(returned.iter().map(Advance::count).sum::<u64>(), 25);
}
