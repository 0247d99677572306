//! Dead letters: receipts, spilling, redriving.

use std::sync::Arc;

use base64::Engine as _;
use millpond_consumer::redrive::{
    ToConsumer, ToLog, ToQueue, Which, list_log, list_queue, redrive_log, redrive_queue,
};
use millpond_consumer::sink::{LogSink, QueueSink};
use millpond_consumer::{Builder, Consumer, MemorySink, Message, Outcome, Raw, Reason, Spill};
use millpond_lanes::Ground;
use millpond_log::{Log, TopicConfig};
use millpond_queue::{Client, QueueConfig, Queues, Receive};
use millpond_store::Timestamp;
use object_store::path::Path;

use crate::support::events::{self, event, kinesis_at, stream};
use crate::support::fakes::{Mood, MoodySink, MoodyStore};
use crate::support::{INVOCATION, World, is, items};

fn bare(world: &World) -> Builder {
    Consumer::builder("orders").environment(&world.environment).state(world.state())
}

fn rejects(message: &Message) -> Outcome {
    if is(message, 2) { Outcome::reject("bad") } else { Outcome::Done }
}

#[tokio::test]
async fn a_sink_that_fails_for_ever_never_drops_a_message_and_the_batch_says_so() {
    let world = World::new();
    let sink = MoodySink::default();
    sink.mood.set(Mood::Fails);
    let consumer = bare(&world)
        .dead_letters(sink.clone())
        .one("index", world.calls.handler("index", rejects))
        .build()
        .unwrap();
    for _ in 0..20 {
        let (response, report) = world.deliver(&consumer, &stream(1..=3)).await;
        assert_eq!(items(&response), ["2"]);
        assert_eq!(report.problems, ["the sink cannot be reached: out of order"]);
    }
    assert_eq!(
        world.calls.counts("index")["2"],
        1,
        "rejected once; only the letter is tried again"
    );
    sink.mood.set(Mood::Works);
    let (response, report) = world.deliver(&consumer, &stream(2..=3)).await;
    assert!(items(&response).is_empty() && report.dead[&Reason::Rejected] == 1);
    assert_eq!(sink.inner.letters().len(), 1);
}

#[tokio::test]
async fn when_the_sink_has_it_and_the_state_is_not_saved_the_dedupe_id_is_the_same() {
    let world = World::new();
    let moody = MoodyStore::new(Arc::clone(&world.store));
    let state = millpond_consumer::StoreState::new(Arc::clone(&moody) as _, &world.environment);
    let mood = Arc::clone(&moody);
    let consumer = Consumer::builder("orders")
        .environment(&world.environment)
        .state(state)
        .dead_letters(world.messages.clone())
        .one(
            "index",
            world.calls.handler("index", |message| match is(message, 1) {
                true => Outcome::retry("so that all comes again"),
                false => Outcome::reject("bad"),
            }),
        )
        // The store breaks while the batch runs.
        .before_finish(move |_| {
            mood.mood.set(Mood::Fails);
            std::future::ready(())
        })
        .build()
        .unwrap();
    for _ in 0..2 {
        moody.mood.set(Mood::Works);
        let (response, report) = world.deliver(&consumer, &stream(1..=2)).await;
        assert_eq!(items(&response), ["1"]);
        assert!(
            report.problems.iter().any(|problem| problem.contains("out of order")),
            "{report:?}"
        );
    }
    let ids: Vec<_> = world.messages.raw().into_iter().map(|letter| letter.dedupe_id).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ids[0].len(), 64);
}

/// Every byte value, in the largest record that Kinesis takes.
fn largest() -> Vec<u8> {
    (0..10 * 1_024 * 1_024_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

#[tokio::test]
async fn a_message_of_the_largest_source_size_is_dead_lettered_and_redriven_byte_identical() {
    let world = World::new();
    let ground = Ground::new(Arc::clone(&world.store), &world.environment);
    let queues = Queues::new(&ground);
    let dead = queues.create("dead", QueueConfig::default()).await.unwrap().main().unwrap();
    let large = QueueConfig {
        message_bytes_max: millpond_queue::limits::MESSAGE_BYTES_MAX,
        ..QueueConfig::default()
    };
    let again = queues.create("again", large).await.unwrap().main().unwrap();
    let objects = Arc::new(object_store::memory::InMemory::new());
    let spill = Spill::new(objects, Path::from("letters"));
    let consumer = |spill: Option<Spill>| {
        let builder = bare(&world)
            .dead_letters(QueueSink::new(dead.clone()).bytes_max(200_000))
            .extractor(Raw)
            .one("index", |_: Message| async { Outcome::reject("too large for us") });
        spill.into_iter().fold(builder, Builder::spill).build().unwrap()
    };
    let payload = largest();
    let event = event(vec![kinesis_at(events::STREAM, events::SHARD, "5", "key", &payload)]);
    // Without an object store it is kept, and the report says what is missing.
    let (response, report) = world.deliver(&consumer(None), &event).await;
    assert_eq!(items(&response), ["5"]);
    assert!(report.problems[0].contains("nothing is set to spill to"), "{:?}", report.problems);
    let (response, _) = world.deliver(&consumer(Some(spill.clone())), &event).await;
    assert!(items(&response).is_empty());
    let letters = list_queue(&dead, &Which::default(), 10).await.unwrap();
    let letter = letters[0].as_ref().unwrap();
    assert!(letter.spilled.is_some() && letter.payload().is_err());

    let to = ToQueue(again.clone());
    let without = redrive_queue(&dead, &to, &Which::default(), None, 10).await.unwrap();
    assert_eq!((without.sent, without.failed.len()), (0, 1));
    assert!(without.failed[0].contains("none is given"));
    let done = redrive_queue(&dead, &to, &Which::default(), Some(&spill), 10).await.unwrap();
    assert_eq!((done.sent, done.failed.len()), (1, 0));
    let back = again.receive(&Receive::up_to(1)).await.unwrap();
    assert_eq!(back[0].body, payload, "byte for byte");
    assert_eq!(dead.count().await.unwrap().total(), 0);
}

async fn with_dead_letters(world: &World) -> (Client, Queues) {
    let ground = Ground::new(Arc::clone(&world.store), &world.environment);
    let queues = Queues::new(&ground);
    let dead = queues.create("dead", QueueConfig::default()).await.unwrap().main().unwrap();
    let plan = |message: &Message| match message.value().unwrap()["n"].as_u64().unwrap() % 3 {
        0 => Outcome::reject("bad"),
        1 => Outcome::retry("no"),
        _ => Outcome::Done,
    };
    let consumer = bare(world)
        .dead_letters(QueueSink::new(dead.clone()))
        .one("index", world.calls.handler("index", plan))
        .attempts(1)
        .build()
        .unwrap();
    let mut records: Vec<_> =
        (1..=6).map(|n| events::kinesis(n, "k", &serde_json::json!({"n": n}))).collect();
    records.push(kinesis_at(events::STREAM, events::SHARD, "7", "k", b"{broken"));
    let (response, report) = world.deliver(&consumer, &event(records)).await;
    assert!(items(&response).is_empty(), "{report:?}");
    (dead, queues)
}

#[tokio::test]
async fn dead_letters_are_listed_and_redriven_by_reason() {
    let world = World::new();
    let (dead, queues) = with_dead_letters(&world).await;
    let listed = list_queue(&dead, &Which::default(), 100).await.unwrap();
    let mut reasons: Vec<_> = listed.iter().map(|letter| letter.as_ref().unwrap().reason).collect();
    reasons.sort();
    let expected = [
        Reason::Unusable,
        Reason::Rejected,
        Reason::Rejected,
        Reason::Exhausted,
        Reason::Exhausted,
    ];
    assert_eq!(reasons, expected);
    let only = Which { reasons: vec![Reason::Exhausted], ..Which::default() };
    assert_eq!(list_queue(&dead, &only, 100).await.unwrap().len(), 2);
    let again = queues.create("again", QueueConfig::default()).await.unwrap().main().unwrap();
    let redriven = redrive_queue(&dead, &ToQueue(again.clone()), &only, None, 100).await.unwrap();
    assert_eq!((redriven.sent, redriven.skipped), (2, 3));
    assert_eq!(dead.count().await.unwrap().total(), 3, "what was not meant stays");
    let bodies = again.receive(&Receive::up_to(10)).await.unwrap();
    let mut bodies: Vec<_> =
        bodies.iter().map(|delivery| delivery.text_lossy().into_owned()).collect();
    bodies.sort();
    assert_eq!(bodies, [r#"{"n":1}"#, r#"{"n":4}"#]);
}

#[tokio::test]
async fn records_are_redriven_straight_to_a_mended_consumer() {
    let world = World::new();
    let (dead, _) = with_dead_letters(&world).await;
    world.calls.take();
    let mended = Consumer::builder("orders-redrive")
        .environment(&world.environment)
        .state(world.state())
        .dead_letters(MemorySink::new())
        .one("index", world.calls.handler("index", |_| Outcome::Done))
        .extractor(Raw)
        .build()
        .unwrap();
    let deadline: Timestamp = world.environment.now().plus(INVOCATION);
    let to = ToConsumer { consumer: mended, deadline };
    let all = Which::default();
    let redrive = redrive_queue(&dead, &to, &all, None, 100);
    let redriven =
        millpond_testing::in_virtual_time(&world.clock, &world.watched, redrive).await.unwrap();
    assert_eq!((redriven.sent, redriven.failed), (5, vec![]));
    assert!(world.calls.of("index").contains(&"{broken".to_owned()));
}

#[tokio::test]
async fn a_log_takes_dead_letters_and_gives_them_back() {
    let world = World::new();
    let ground = Ground::new(Arc::clone(&world.store), &world.environment);
    let log = Log::new(&ground);
    let dead = log.create("dead", TopicConfig::with_partitions(1)).await.unwrap();
    let back = log.create("back", TopicConfig::with_partitions(1)).await.unwrap();
    let consumer = bare(&world)
        .dead_letters(LogSink::new(dead.clone()))
        .one("index", world.calls.handler("index", rejects))
        .build()
        .unwrap();
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(report.is_complete(), "{report:?}");
    let listed = list_log(&dead, 0, 0, &Which::default(), 10).await.unwrap();
    let (offset, letter) = &listed[0];
    assert_eq!((*offset, letter.as_ref().unwrap().detail.as_str()), (0, "index: bad"));
    let (redriven, next) =
        redrive_log(&dead, (0, 0), &ToLog(back.clone()), &Which::default(), None, 10)
            .await
            .unwrap();
    assert_eq!((redriven.sent, next), (1, 1));
    let records = back.read(0, 0, 10).await.unwrap().records;
    assert_eq!(
        (records[0].payload.as_ref(), records[0].key.as_deref()),
        (&br#"{"n":2}"#[..], Some(&b"key-2"[..]))
    );
}

#[tokio::test]
async fn a_letter_tells_everything_that_is_known() {
    let world = World::new();
    let handler = |message: Message| async move {
        message.step("first", async { Ok::<_, String>(()) }).await.unwrap();
        Outcome::reject("no such customer")
    };
    let consumer =
        world.planned(|_| Outcome::Done).one("charge", handler).keys(["n"]).build().unwrap();
    world.deliver(&consumer, &stream([5])).await;
    let letter = world.dead()[0].clone();
    let source = letter.source.clone().unwrap();
    assert_eq!(
        (source.kind.as_str(), source.arn.as_str(), source.shard.as_str()),
        ("kinesis", events::STREAM, events::SHARD)
    );
    assert_eq!((letter.record.as_deref(), letter.key.as_deref()), (Some("5"), Some("[5]")));
    assert_eq!(letter.partition_key.as_deref(), Some("key-5"));
    assert_eq!((letter.arrived_ms, letter.died_ms), (Some(1_699_999_990_500), 1_700_000_000_000));
    assert_eq!(letter.tasks["charge"].steps, ["first"]);
    assert_eq!(letter.tasks["index"].status, millpond_consumer::state::Status::Done);
    let raw: serde_json::Value =
        serde_json::from_slice(&letter.raw.unwrap().bytes().unwrap()).unwrap();
    let data =
        base64::engine::general_purpose::STANDARD.decode(raw["kinesis"]["data"].as_str().unwrap());
    assert_eq!(data.unwrap(), br#"{"n":5}"#);
}
