//! Limits as receivers see them, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use millpond_queue::{Limits, Message, QueueConfig, Rate, Receive};
use millpond_store::MemoryStore;
use millpond_testing::Subject;
use millpond_testing::queue_worker_suite::{World, send};

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn capped(running: u32) -> Limits {
    Limits { running: Some(running), ..Limits::default() }
}

#[tokio::test]
async fn a_message_that_was_purged_while_in_work_frees_its_permit_when_settled() {
    let subject = memory().await;
    let world = World::new(&subject);
    let config = QueueConfig { limits: capped(1), ..QueueConfig::default() };
    world
        .run(async {
            let client = world.process(&config).await;
            send(&client, 1).await;
            let got = client.receive(&Receive::up_to(1)).await.unwrap();
            client.purge().await.unwrap();
            send(&client, 1).await;
            assert!(client.receive(&Receive::up_to(1)).await.unwrap().is_empty(), "it runs still");
            client.ack(&got[0].receipt).await.unwrap();
            assert_eq!(client.receive(&Receive::up_to(1)).await.unwrap().len(), 1);
        })
        .await;
}

#[tokio::test]
async fn a_repeated_attempt_holds_its_permit_for_as_long_as_its_messages() {
    let subject = memory().await;
    let world = World::new(&subject);
    let config = QueueConfig { limits: capped(1), ..QueueConfig::strict() };
    world
        .run(async {
            let client = world.process(&config).await;
            for group in ["a", "b"] {
                client.send(Message::new(group).group(group)).await.unwrap();
            }
            let attempt = Receive::up_to(1).visibility(secs(10));
            let attempt = Receive { attempt: Some("once".into()), ..attempt };
            let first = client.receive(&attempt).await.unwrap();
            world.sleep(secs(8)).await;
            let again = client.receive(&attempt).await.unwrap();
            assert_eq!(first[0].id, again[0].id);
            world.sleep(secs(4)).await;
            assert!(client.receive(&Receive::up_to(1)).await.unwrap().is_empty(), "one runs still");
            client.ack(&again[0].receipt).await.unwrap();
            assert_eq!(client.receive(&Receive::up_to(1)).await.unwrap().len(), 1);
        })
        .await;
}

#[tokio::test]
async fn a_permit_that_comes_free_wakes_who_waits_for_it() {
    let subject = memory().await;
    let world = World::new(&subject);
    let config = QueueConfig { limits: capped(1), ..QueueConfig::default() };
    world
        .run(async {
            let client = world.process(&config).await;
            send(&client, 2).await;
            let got = client.receive(&Receive::up_to(2)).await.unwrap();
            assert_eq!(got.len(), 1);
            let ack = async {
                world.sleep(Duration::from_millis(3_333)).await;
                client.ack(&got[0].receipt).await.unwrap();
            };
            let before = world.now();
            let ask = Receive::up_to(2).wait(secs(20));
            let (next, ()) = tokio::join!(client.receive(&ask), ack);
            assert_eq!(next.unwrap().len(), 1);
            assert_eq!(world.now().since(before), Duration::from_millis(3_333));
        })
        .await;
}

#[tokio::test]
async fn waiting_on_an_empty_limited_queue_costs_no_more_than_on_another() {
    let mut requests = Vec::new();
    let rate = Some(Rate { per_second: 100.0, burst: 1 });
    for limits in [Limits::default(), Limits { rate, ..Limits::default() }] {
        let subject = memory().await;
        let world = World::new(&subject);
        let config = QueueConfig { limits, ..QueueConfig::default() };
        world
            .run(async {
                let client = world.process(&config).await;
                let before = world.faulty.requests();
                assert!(client.receive(&Receive::up_to(1).wait(secs(5))).await.unwrap().is_empty());
                requests.push(world.faulty.requests() - before);
            })
            .await;
    }
    assert!(requests[1] <= requests[0] + 6, "{requests:?}");
}
