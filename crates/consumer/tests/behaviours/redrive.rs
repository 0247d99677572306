//! Dead letters that are brought back: exactly what died, as it was.

use std::sync::Arc;

use millpond_consumer::redrive::{
    Destination as _, RedriveError, ToConsumer, ToLog, ToQueue, Which, redrive_log, redrive_queue,
};
use millpond_consumer::sink::{LogSink, QueueSink};
use millpond_consumer::{
    Builder, Consumer, DeadLetter, JsonLines, Message, Order, Outcome, Raw, Spill, StoreState,
    Window,
};
use millpond_lanes::Ground;
use millpond_log::{Log, TopicConfig};
use millpond_queue::{QueueConfig, Queues, Receive};
use object_store::memory::InMemory;
use object_store::path::Path;
use serde_json::{Value, json};

use crate::kpl::aggregate;
use crate::support::events::{self, event, kinesis_at, stream, windowed};
use crate::support::fakes::{Mood, MoodyStore};
use crate::support::{INVOCATION, World, is, items};

/// A consumer that rejects everything; letters over 1,000 bytes are spilled.
fn rejecting(
    name: &str,
    world: &World,
    state: StoreState,
    sink: QueueSink,
    spill: &Spill,
) -> Builder {
    Consumer::builder(name)
        .environment(&world.environment)
        .state(state)
        .dead_letters(sink.bytes_max(1_000))
        .spill(spill.clone())
        .extractor(Raw)
        .one("index", |_: Message| async { Outcome::reject("bad") })
}

fn large(sequence: &str) -> String {
    event(vec![kinesis_at(events::STREAM, events::SHARD, sequence, "key", &[7; 3_000])])
}

#[tokio::test]
async fn a_large_letter_that_is_sent_twice_can_be_redriven() {
    let world = World::new();
    let queues = Queues::new(&Ground::new(Arc::clone(&world.store), &world.environment));
    // It keeps the first of two letters with one id.
    let dead = queues.create("dead", QueueConfig::strict()).await.unwrap().main().unwrap();
    let again = queues.create("again", QueueConfig::default()).await.unwrap().main().unwrap();
    let spill = Spill::new(Arc::new(InMemory::new()), Path::from("letters"));
    let moody = MoodyStore::new(Arc::clone(&world.store));
    let state = StoreState::new(Arc::clone(&moody) as _, &world.environment);
    let mood = Arc::clone(&moody);
    let consumer = rejecting("orders", &world, state, QueueSink::new(dead.clone()), &spill)
        // The state breaks while the batch runs: that the letter was sent is forgotten.
        .before_finish(move |_| {
            mood.mood.set(Mood::Fails);
            std::future::ready(())
        })
        .build()
        .unwrap();
    for _ in 0..2 {
        moody.mood.set(Mood::Works);
        world.deliver(&consumer, &large("5")).await;
        world.clock.advance(std::time::Duration::from_secs(1));
    }
    assert_eq!(dead.count().await.unwrap().total(), 1);
    let to = ToQueue(again.clone());
    let redriven = redrive_queue(&dead, &to, &Which::default(), Some(&spill), 10).await.unwrap();
    assert_eq!((redriven.sent, redriven.failed), (1, vec![]));
    assert_eq!(again.receive(&Receive::up_to(1)).await.unwrap()[0].body, vec![7; 3_000]);
}

#[tokio::test]
async fn a_large_letter_of_a_consumer_whose_name_must_be_encoded_can_be_redriven() {
    let world = World::new();
    let queues = Queues::new(&Ground::new(Arc::clone(&world.store), &world.environment));
    let dead = queues.create("dead", QueueConfig::default()).await.unwrap().main().unwrap();
    let spill = Spill::new(Arc::new(InMemory::new()), Path::from("large letters/für uns"));
    let sink = QueueSink::new(dead.clone());
    let consumer = rejecting("bestellungen-für 100%", &world, world.state(), sink, &spill);
    world.deliver(&consumer.build().unwrap(), &large("5")).await;
    let again = queues.create("again", QueueConfig::default()).await.unwrap().main().unwrap();
    let redriven =
        redrive_queue(&dead, &ToQueue(again), &Which::default(), Some(&spill), 10).await.unwrap();
    assert_eq!((redriven.sent, redriven.failed), (1, vec![]));
}

/// Sends letters to a consumer, one by one.
async fn send(world: &World, consumer: &Consumer, letter: &DeadLetter) -> Result<(), RedriveError> {
    let deadline = world.environment.now().plus(INVOCATION);
    let to = ToConsumer { consumer: consumer.clone(), deadline };
    millpond_testing::in_virtual_time(&world.clock, &world.watched, to.send(letter)).await
}

/// A consumer that is mended, under a name of its own.
fn mended(world: &World) -> Builder {
    Consumer::builder("orders-again")
        .environment(&world.environment)
        .state(world.state())
        .dead_letters(world.records.clone())
        .order(Order::None)
}

#[tokio::test]
async fn user_records_of_one_aggregate_are_redriven_apart() {
    let world = World::new();
    let bad = |message: &Message| match is(message, 3) || is(message, 5) {
        true => Outcome::reject("bad"),
        false => Outcome::Done,
    };
    let consumer = world.planned(bad).build().unwrap();
    let data = aggregate(8).to_bytes();
    let record = kinesis_at(events::STREAM, events::SHARD, "100", "a", &data);
    world.deliver(&consumer, &event(vec![record])).await;
    let letters = world.dead();
    assert_eq!(letters.iter().map(|letter| letter.sub).collect::<Vec<_>>(), [3, 5]);
    world.calls.take();

    let first = |message: &Message| match message.attempt() {
        1 => Outcome::retry("not yet"),
        _ => Outcome::Done,
    };
    let tasks = mended(&world)
        .one("a", world.calls.handler("a", |_| Outcome::Done))
        .one("b", world.calls.handler("b", first))
        .build()
        .unwrap();
    for letter in &letters {
        let refused = send(&world, &tasks, letter).await.unwrap_err();
        assert!(refused.to_string().contains("not finished"), "{refused}");
    }
    for letter in &letters {
        send(&world, &tasks, letter).await.unwrap();
    }
    assert_eq!(world.calls.of("a"), ["3", "5"], "once for each");
    assert_eq!(world.calls.of("b"), ["3", "5", "3", "5"]);

    // When they die once more, their letters are two.
    let worse = mended(&world).one("c", |_: Message| async { Outcome::reject("still") });
    let worse = worse.build().unwrap();
    for letter in &letters {
        send(&world, &worse, letter).await.unwrap();
    }
    let again = world.records.letters();
    assert_eq!(again.iter().map(|letter| letter.sub).collect::<Vec<_>>(), [3, 5]);
    assert_ne!(again[0].dedupe_id, again[1].dedupe_id);
}

#[tokio::test]
async fn of_a_record_with_many_messages_only_the_dead_one_is_redriven() {
    let world = World::new();
    let bad = |message: &Message| match is(message, 2) {
        true => Outcome::reject("bad"),
        false => Outcome::Done,
    };
    let lines = b"{\"n\":1}\n{\"n\":2}\n{\"n\":3}";
    let record = kinesis_at(events::STREAM, events::SHARD, "100", "a", lines);
    let consumer = world.planned(bad).extractor(JsonLines).build().unwrap();
    world.deliver(&consumer, &event(vec![record])).await;
    let letter = &world.dead()[0];
    assert_eq!(letter.part, 1);
    world.calls.take();
    let handler = world.calls.handler("index", |_| Outcome::Done);
    let lines = mended(&world).one("index", handler).extractor(JsonLines).build().unwrap();
    send(&world, &lines, letter).await.unwrap();
    assert_eq!(world.calls.of("index"), ["2"]);
    // One that takes a record apart in another way has no such message.
    let handler = world.calls.handler("index", |_| Outcome::Done);
    let whole = mended(&world).one("index", handler).extractor(Raw).build().unwrap();
    let refused = send(&world, &whole, letter).await.unwrap_err();
    assert!(refused.to_string().contains("finds no message 1"), "{refused}");
    assert_eq!(world.calls.of("index"), ["2"]);
}

#[tokio::test]
async fn a_user_record_that_could_not_be_read_is_redriven_with_all_that_is_in_it() {
    let world = World::new();
    let mut data = aggregate(3);
    data.records[1].data = "{\"n\":7}\n{\"n\":8}".into();
    let record = kinesis_at(events::STREAM, events::SHARD, "100", "a", &data.to_bytes());
    let consumer = world.planned(|_| Outcome::Done).build().unwrap();
    world.deliver(&consumer, &event(vec![record])).await;
    let letter = world.records.letters().remove(0);
    world.calls.take();
    let handler = world.calls.handler("index", |_| Outcome::Done);
    let lines = mended(&world).one("index", handler).extractor(JsonLines).build().unwrap();
    send(&world, &lines, &letter).await.unwrap();
    assert_eq!(world.calls.of("index"), ["7", "8"]);
    // Where it still cannot be read, it is dead under its own place.
    let handler = world.calls.handler("other", |_| Outcome::Done);
    let unmended = world.builder().one("other", handler).build().unwrap();
    world.clock.advance(std::time::Duration::from_secs(30 * 24 * 60 * 60));
    send(&world, &unmended, &letter).await.unwrap();
    let again = &world.records.letters()[1];
    assert_eq!((again.sub, &again.dedupe_id), (1, &letter.dedupe_id));
}

#[tokio::test]
async fn a_dead_record_goes_to_a_queue_or_a_log_as_its_data() {
    let world = World::new();
    let ground = Ground::new(Arc::clone(&world.store), &world.environment);
    let (queues, log) = (Queues::new(&ground), Log::new(&ground));
    let dead = log.create("dead", TopicConfig::with_partitions(1)).await.unwrap();
    let consumer = Consumer::builder("orders")
        .environment(&world.environment)
        .state(world.state())
        .dead_letters(LogSink::new(dead.clone()))
        .one("index", |_: Message| async {})
        .build()
        .unwrap();
    let kinesis = kinesis_at(events::STREAM, events::SHARD, "7", "customer", b"{broken");
    world.deliver(&consumer, &event(vec![kinesis])).await;
    world.deliver(&consumer, &event(vec![events::sqs("id", 1, "[broken")])).await;

    let all = Which::default();
    let back = log.create("back", TopicConfig::with_partitions(1)).await.unwrap();
    let again = queues.create("again", QueueConfig::default()).await.unwrap().main().unwrap();
    let (redriven, _) =
        redrive_log(&dead, (0, 0), &ToLog(back.clone()), &all, None, 10).await.unwrap();
    assert_eq!((redriven.sent, redriven.failed), (2, vec![]));
    let records = back.read(0, 0, 10).await.unwrap().records;
    let seen: Vec<_> = records.iter().map(|one| (&*one.payload, one.key.as_deref())).collect();
    assert_eq!(seen, [(&b"{broken"[..], Some(&b"customer"[..])), (b"[broken", None)]);
    let to = ToQueue(again.clone());
    redrive_log(&dead, (0, 0), &to, &all, None, 10).await.unwrap();
    let bodies = again.receive(&Receive::up_to(10)).await.unwrap();
    let mut bodies: Vec<_> = bodies.iter().map(|one| one.text_lossy().into_owned()).collect();
    bodies.sort();
    assert_eq!(bodies, ["[broken", "{broken"]);
}

#[tokio::test]
async fn a_letter_names_the_place_of_its_message_and_record_in_every_source() {
    let world = World::new();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let positions = Arc::clone(&seen);
    let reject = move |message: &Message| {
        positions.lock().unwrap().push(message.position().clone());
        Outcome::reject("bad")
    };
    let consumer = world.planned(reject).build().unwrap();
    let table = |data| events::dynamodb("7", "INSERT", json!({"id": {"N": "1"}}), data);
    let good =
        [event(vec![table(json!({}))]), stream([5]), event(vec![events::sqs("id", 1, "{}")])];
    for good in &good {
        world.deliver(&consumer, good).await;
    }
    let found: Vec<_> = world.dead().iter().map(|letter| letter.position().unwrap()).collect();
    assert_eq!(found, *seen.lock().unwrap());
    // A record that cannot be read stands where it would stand if it could.
    let broken = event(vec![table(json!({"n": {"N": "ten"}}))]);
    world.clock.advance(std::time::Duration::from_secs(30 * 24 * 60 * 60));
    world.deliver(&consumer, &broken).await;
    assert_eq!(world.records.letters()[0].position().unwrap(), found[0]);
}

/// The letter about a window whose end was rejected.
async fn window_letter(world: &World) -> DeadLetter {
    let consumer = world
        .planned(|_| Outcome::Done)
        .window(|sum: &mut Value, _: &Message| *sum = json!({"seen": 1}))
        .window_end(|_: Window, _: Value| async { Outcome::reject("no ledger") })
        .build()
        .unwrap();
    let last = windowed(&stream([1]), "{}", true);
    let (response, report) = world.deliver(&consumer, &last).await;
    assert!(items(&response).is_empty(), "{report:?}");
    world.records.letters().remove(0)
}

#[tokio::test]
async fn a_letter_about_a_window_is_no_message_for_a_queue_or_a_log() {
    let world = World::new();
    let letter = window_letter(&world).await;
    let ground = Ground::new(Arc::clone(&world.store), &world.environment);
    let again = Queues::new(&ground).create("again", QueueConfig::default()).await.unwrap();
    let (queue, log) = (again.main().unwrap(), Log::new(&ground));
    let topic = log.create("back", TopicConfig::with_partitions(1)).await.unwrap();
    let refused = [
        ToQueue(queue.clone()).send(&letter).await.unwrap_err(),
        ToLog(topic.clone()).send(&letter).await.unwrap_err(),
    ];
    for refused in refused {
        assert!(matches!(&refused, RedriveError::Window(id) if *id == letter.dedupe_id));
        assert!(refused.to_string().contains("the end of a tumbling window"), "{refused}");
    }
    assert_eq!(queue.count().await.unwrap().total(), 0);
    assert!(topic.read(0, 0, 10).await.unwrap().records.is_empty());
}

#[tokio::test]
async fn the_end_of_a_window_is_redriven_to_a_consumer_that_ends_windows() {
    let world = World::new();
    let letter = window_letter(&world).await;
    let without = mended(&world).one("index", |_: Message| async {}).build().unwrap();
    let refused = send(&world, &without, &letter).await.unwrap_err();
    assert!(refused.to_string().contains("does nothing at the end of a window"), "{refused}");
    let ended = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&ended);
    let ends = mended(&world)
        .one("index", |_: Message| async {})
        .window(|_: &mut Value, _: &Message| {})
        .window_end(move |window: Window, sum: Value| {
            seen.lock().unwrap().push((window.start, sum));
            async { Outcome::Done }
        })
        .build()
        .unwrap();
    send(&world, &ends, &letter).await.unwrap();
    let expected = ("2024-01-01T00:00:00Z".to_owned(), json!({"seen": 1}));
    assert_eq!(*ended.lock().unwrap(), [expected]);
}
