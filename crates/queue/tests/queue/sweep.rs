//! Objects of sends that never came to be are found and removed; those of messages stay.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_queue::{Message, QueueConfig, Queues, Receive};
use millpond_store::{Environment, Fault, FaultPlan, Faulty, MemoryStore, VirtualClock};
use object_store::memory::InMemory;

#[tokio::test]
async fn orphans_of_loose_and_strict_queues_are_swept_and_messages_stay() {
    let clock = VirtualClock::automatic(Environment::system().now());
    let environment = Environment::simulated(clock.clone(), 3);
    let faulty = Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let objects = Objects::new(Arc::new(InMemory::new()), "cargo".into());
    let queues = Queues::new(&Ground::new(faulty.clone(), &environment).with_objects(objects));
    for (name, config) in [("loose", QueueConfig::default()), ("strict", QueueConfig::strict())] {
        let client = queues.create(name, config).await.unwrap().client("c").unwrap();
        client.send(Message::new(vec![1; 20_000])).await.unwrap();
        faulty.follow(FaultPlan::Script((0..8).map(|at| (at, Fault::Definite)).collect()));
        client.send(Message::new(vec![2; 20_000])).await.unwrap_err();
        faulty.follow(FaultPlan::None);

        clock.advance(Duration::from_secs(2 * 60 * 60));
        let found = client.sweep(true).await.unwrap();
        assert_eq!((found.named, found.orphans, found.removed), (1, 1, 0), "{name}");
        let swept = client.sweep(false).await.unwrap();
        assert_eq!((swept.orphans, swept.removed), (1, 1), "{name}");
        assert_eq!(client.sweep(false).await.unwrap().orphans, 0, "{name}");
        let left = client.receive(&Receive::up_to(10)).await.unwrap();
        assert_eq!(left.len(), 1, "{name}");
        assert_eq!(left[0].body, vec![1; 20_000], "{name}");
    }
}
