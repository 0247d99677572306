//! Where a queue begins, how far ahead it accepts, and what it refuses.

use millpond_sequencer::limits::{
    ATTRIBUTES_BYTES_MAX, PAYLOAD_BYTES_MAX, PUT_BATCH_MAX, QUEUE_BYTES_MAX, SEQ_MAX,
};
use millpond_sequencer::{
    Advance, Arrival, Config, Entry, JsonFeed, Message, Sequencer, SequencerError, Start, Window,
};

use super::world::{World, message, only};
use crate::subject::Subject;

/// Other than 0, the first that comes, and what `reset` stored.
pub async fn start_numbers_fixed_first_seen_and_stored(subject: &Subject) {
    let world = World::new(subject);
    let fixed = world.open(Config { start: Start::At(1_000), ..Config::default() });
    assert_eq!(fixed.put("fixed", 1_001, "b").await.unwrap().advanced, None);
    assert_eq!(fixed.put("fixed", 1_000, "a").await.unwrap().advanced, Advance::new(1_000, 1_002));
    let error = fixed.put("fixed", 999, "z").await.unwrap_err();
    assert!(matches!(error, SequencerError::Late { seq: 999, start: 1_000, .. }), "{error}");

    let seen = Config { start: Start::FirstSeen, ..Config::default() };
    assert_eq!(world.open(seen).put("seen", 5, "x").await.unwrap().advanced, Advance::new(5, 6));
    assert_eq!(world.open(seen).put("seen", 7, "x").await.unwrap().advanced, None);
    assert_eq!(world.open(seen).put("seen", 6, "x").await.unwrap().advanced, Advance::new(6, 8));
    for sequencer in [world.open(seen), fixed] {
        let error = sequencer.put("seen", 4, "x").await.unwrap_err();
        assert!(matches!(error, SequencerError::Late { seq: 4, start: 5, next: 8, .. }), "{error}");
    }
    assert_eq!(world.open(seen).read("seen", 5..8).await.unwrap().outputs.len(), 3);

    let stored = world.open(Config { start: Start::Stored, ..Config::default() });
    let error = stored.put("stored", 3, "x").await.unwrap_err();
    assert!(matches!(error, SequencerError::NotStarted { .. }), "{error}");
    assert!(world.rows("q/stored").await.is_empty(), "something was written");
    stored.reset("stored", 3).await.unwrap();
    assert_eq!(stored.put("stored", 3, "x").await.unwrap().advanced, Advance::new(3, 4));
}

/// By span, by count and by bytes; nothing is stored of what is refused, and what is awaited is never refused.
pub async fn the_window_refuses_with_a_clear_error(subject: &Subject) {
    let world = World::new(subject);
    let window = |span, count, bytes| {
        let window = Window { span, count, bytes };
        world.open(Config { window, ..Config::default() })
    };
    let span = window(10, None, None);
    span.put("span", 9, "x").await.unwrap();
    for sequencer in [&span, &window(10, None, None)] {
        let error = sequencer.put("span", 10, "x").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "span: number 10 is outside the window: the queue waits for 0, and 11 numbers of 10 would be ahead of it"
        );
        assert!(error.is_transient());
    }
    assert_eq!(span.pending("span").await.unwrap().runs, only(9..10));
    span.put("span", 0, "x").await.unwrap();
    span.put("span", 10, "x").await.unwrap();

    for (queue, unit, sequencer) in [
        ("count", "messages", window(1_000, Some(3), None)),
        ("bytes", "bytes", window(1_000, None, Some(40))),
    ] {
        for seq in [2, 5, 9] {
            sequencer.put(queue, seq, message(seq, 12)).await.unwrap();
        }
        let error = sequencer.put(queue, 4, message(4, 12)).await.unwrap_err();
        let SequencerError::WindowFull { unit: found, next: 0, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*found, unit);
        let again = sequencer.put(queue, 5, message(5, 12)).await.unwrap();
        assert_eq!(again.arrival, Arrival::Duplicate, "a duplicate fits any window");
        assert_eq!(
            sequencer.put(queue, 0, message(0, 12)).await.unwrap().advanced,
            Advance::new(0, 1)
        );
        sequencer.put(queue, 1, message(1, 12)).await.unwrap();
        sequencer.put(queue, 4, message(4, 12)).await.unwrap();
    }
}

/// Typed errors that name the limit or say what is there; nothing is written.
pub async fn bad_input_is_refused_and_nothing_is_written(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    sequencer.put("q", 0, Message::new(vec![1; PAYLOAD_BYTES_MAX])).await.unwrap();
    let before = world.rows("q/q").await;
    let error = sequencer.put("q", 1, vec![1; PAYLOAD_BYTES_MAX + 1]).await.unwrap_err();
    assert_eq!(error.to_string(), "payload is too large: 358401 bytes, the limit is 358400");
    let attributes = Message::new("x").with("long", "y".repeat(ATTRIBUTES_BYTES_MAX));
    let error = sequencer.put("q", 1, attributes).await.unwrap_err();
    assert!(matches!(error, SequencerError::TooLarge { what: "attributes", .. }), "{error}");
    for absurd in [SEQ_MAX + 1, u64::MAX] {
        let error = sequencer.put("q", absurd, "x").await.unwrap_err();
        assert!(error.to_string().starts_with("sequence number"), "{error}");
        assert!(sequencer.reset("q", absurd).await.is_err());
    }
    let error = sequencer.put("q", SEQ_MAX, "x").await.unwrap_err();
    assert!(matches!(error, SequencerError::WindowFull { .. }), "{error}");
    for queue in ["", &"n".repeat(QUEUE_BYTES_MAX + 1)] {
        assert!(sequencer.put(queue, 0, "x").await.is_err());
        assert!(sequencer.cursor(queue).await.is_err());
        assert!(sequencer.subscribe(queue, millpond_sequencer::From::Now).await.is_err());
    }
    assert!(sequencer.reader("q", "").is_err());
    assert!(sequencer.reader("q", &"r".repeat(129)).is_err());
    let outside = [
        sequencer.read("q", 0..2).await.unwrap_err(),
        sequencer.rewind("q", 2).await.unwrap_err(),
        sequencer.trim("q", 2).await.unwrap_err(),
        sequencer.skip("q", 1).await.unwrap_err(),
        sequencer.reader("q", "r").unwrap().seek(2).await.unwrap_err(),
        sequencer.reader("q", "r").unwrap().commit(2).await.unwrap_err(),
    ];
    for error in outside {
        assert!(matches!(error, SequencerError::OutOfRange { .. }), "{error}");
        assert!(error.to_string().contains("is outside what is there"), "{error}");
    }
    let too_many = vec![Entry::new("q", 1, "x").unwrap(); PUT_BATCH_MAX + 1];
    assert!(sequencer.put_batch(too_many).await.is_err());
    let open = |config| {
        Sequencer::open(world.faulty.clone(), &world.subject.environment, "n", config).unwrap_err()
    };
    assert!(open(Config { batch: 0, ..Config::default() }).to_string().starts_with("batch"));
    assert!(
        open(Config { start: Start::At(u64::MAX), ..Config::default() })
            .to_string()
            .starts_with("start")
    );
    let none = Window { span: 0, ..Window::default() };
    assert!(open(Config { window: none, ..Config::default() }).to_string().starts_with("window"));
    assert_eq!(world.rows("q/q").await, before, "something was written");
}

/// Several queues in one call, with duplicates and mistakes among them.
pub async fn a_batch_is_reported_per_entry(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config::default());
    let entry = |queue, seq, text: &'static str| Entry::new(queue, seq, text).unwrap();
    let large = Entry::new("b", 1, vec![0; PAYLOAD_BYTES_MAX + 1]).unwrap();
    let batch = vec![
        entry("a", 1, "one"),
        entry("b", 0, "zero"),
        entry("a", 0, "zero"),
        entry("a", 1, "one"),
        entry("a", 0, "other"),
        large,
        entry("a", 3, "three"),
    ];
    let result = sequencer.put_batch(batch).await.unwrap();
    let said: Vec<String> = result
        .arrivals
        .iter()
        .map(|arrival| match arrival {
            Ok(arrival) => format!("{arrival:?}"),
            Err(SequencerError::Conflict { .. }) => "conflict".into(),
            Err(SequencerError::TooLarge { .. }) => "too large".into(),
            Err(error) => error.to_string(),
        })
        .collect();
    assert_eq!(
        said,
        ["Stored", "Stored", "Stored", "Duplicate", "conflict", "too large", "Stored"]
    );
    let advanced: Vec<_> =
        result.advanced.iter().map(|(queue, passed)| (queue.as_str(), *passed)).collect();
    assert_eq!(advanced, [("a", Advance::new(0, 2).unwrap()), ("b", Advance::new(0, 1).unwrap())]);
    let empty = sequencer.put_batch(Vec::new()).await.unwrap();
    assert!(empty.arrivals.is_empty() && empty.advanced.is_empty());
    let read = sequencer.read("a", 0..2).await.unwrap();
    let texts: Vec<_> = read.messages().map(|found| found.message.payload.clone()).collect();
    assert_eq!(texts, ["zero", "one"]);
}

/// As a Lambda would be fed.
pub async fn json_is_put_by_its_properties(subject: &Subject) {
    let world = World::new(subject);
    let sequencer = world.open(Config { start: Start::At(1), ..Config::default() });
    let feed = JsonFeed::new("customer", "version");
    let events = [r#"{"customer":"c7","version":2}"#, r#"{"customer":"c7","version":1,"x":null}"#];
    let entries = events.map(|json| feed.entry(json).unwrap()).to_vec();
    let result = sequencer.put_batch(entries).await.unwrap();
    assert_eq!(result.advanced[0].1, Advance::new(1, 3).unwrap());
    let read = sequencer.read("c7", 1..3).await.unwrap();
    let found: Vec<_> = read.messages().map(|found| found.message.payload.clone()).collect();
    assert_eq!(found, [events[1], events[0]]);
    let negative = feed.entry(r#"{"customer":"c7","version":-1}"#).unwrap_err();
    assert!(negative.to_string().contains("\"version\" is -1"), "{negative}");
}
