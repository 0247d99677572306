//! Dead letters that are brought back: exactly what died, as it was.

use std::sync::Arc;

use millpond_consumer::redrive::{ToQueue, Which, redrive_queue};
use millpond_consumer::sink::QueueSink;
use millpond_consumer::{Builder, Consumer, Message, Outcome, Raw, Spill, StoreState};
use millpond_lanes::Ground;
use millpond_queue::{QueueConfig, Queues, Receive};
use object_store::memory::InMemory;
use object_store::path::Path;

use crate::support::World;
use crate::support::events::{self, event, kinesis_at};
use crate::support::fakes::{Mood, MoodyStore};

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
