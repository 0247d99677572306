//! The same consumer over Millpond's own queue and log.

use std::sync::Arc;
use std::time::Duration;

use millpond_consumer::{LogSource, Message, Outcome, QueueSource, Reason};
use millpond_lanes::Ground;
use millpond_log::{ConsumerOptions, Log, NewRecord, TopicConfig};
use millpond_queue::{Message as Sent, QueueConfig, Queues, Strict};
use millpond_testing::in_virtual_time;

use crate::support::fakes::{Mood, MoodyStore};
use crate::support::{World, is};

fn plan(message: &Message) -> Outcome {
    if is(message, 3) {
        Outcome::reject("bad")
    } else if is(message, 5) && message.attempt() < 3 {
        Outcome::retry("busy")
    } else {
        Outcome::Done
    }
}

fn ground(world: &World) -> Ground {
    Ground::new(Arc::clone(&world.store), &world.environment)
}

#[tokio::test]
async fn a_queue_is_consumed_until_it_is_empty() {
    for strict in [None, Some(Strict::default())] {
        let world = World::new();
        let config = QueueConfig { strict, ..QueueConfig::default() };
        let work = async {
            let queue = Queues::new(&ground(&world)).create("orders", config).await.unwrap();
            let client = queue.client("shop").unwrap();
            for n in 1..=10 {
                let message = Sent::new(format!("{{\"n\":{n}}}")).group(format!("group-{}", n % 2));
                client.send(message).await.unwrap();
            }
            let consumer = world.planned(plan).attempts(5).build().unwrap();
            let source = QueueSource::new(consumer, client.clone());
            let deadline = world.environment.now().plus(Duration::from_secs(600));
            let run = source.run_until(deadline).await.unwrap();
            (run, client.count().await.unwrap())
        };
        let (run, count) = in_virtual_time(&world.clock, &world.watched, work).await;
        assert_eq!((run.finished, run.dead, run.cut_off), (10, 1, false), "{run:?}");
        assert_eq!(count.total(), 0);
        let counts = world.calls.counts("index");
        let expected = |n: u64| if n == 5 { 3 } else { 1 };
        assert!((1..=10).all(|n| counts[&n.to_string()] == expected(n)), "{counts:?}");
        assert_eq!(world.dead()[0].reason, Reason::Rejected);
        assert_eq!(world.dead()[0].source.as_ref().unwrap().arn, "queue/orders/shop");
        if strict.is_some() {
            let odd: Vec<u64> = world
                .calls
                .of("index")
                .iter()
                .map(|n| n.parse().unwrap())
                .filter(|n| n % 2 == 1)
                .collect();
            assert_eq!(
                odd,
                [1, 3, 5, 5, 5, 7, 9],
                "in order, the failing one before those behind it"
            );
        }
    }
}

#[tokio::test]
async fn a_log_is_consumed_and_its_checkpoint_is_the_lowest_unfinished() {
    let world = World::new();
    let work = async {
        let log = Log::new(&ground(&world));
        let topic = log.create("orders", TopicConfig::with_partitions(2)).await.unwrap();
        for n in 1..=20 {
            let record = NewRecord::keyed(format!("key-{}", n % 4), format!("{{\"n\":{n}}}"));
            topic.append(record).await.unwrap();
        }
        let group = topic.consumer("billing", ConsumerOptions::default()).await.unwrap();
        let consumer = world.planned(plan).attempts(5).build().unwrap();
        let source = LogSource::new(consumer, "orders", group).batch(7);
        let deadline = world.environment.now().plus(Duration::from_secs(600));
        source.run_until(deadline).await.unwrap()
    };
    let run = in_virtual_time(&world.clock, &world.watched, work).await;
    assert!(!run.cut_off, "{run:?}");
    let counts = world.calls.counts("index");
    let expected = |n: u64| if n == 5 { 3 } else { 1 };
    assert!((1..=20).all(|n| counts[&n.to_string()] == expected(n)), "{counts:?}");
    assert_eq!(world.dead().len(), 1);
    for key in 0..4 {
        let of_key: Vec<u64> = world
            .calls
            .of("index")
            .iter()
            .map(|n| n.parse().unwrap())
            .filter(|n| n % 4 == key)
            .collect();
        assert!(of_key.is_sorted(), "{of_key:?}");
    }
}

/// A queue with one message, for a handler that takes 100 seconds.
async fn slow(
    world: &World,
    store: Arc<dyn millpond_store::Store>,
) -> (QueueSource, millpond_queue::Client) {
    let ground = Ground::new(store, &world.environment);
    let queue = Queues::new(&ground).create("orders", QueueConfig::default()).await.unwrap();
    let client = queue.client("shop").unwrap();
    client.send(Sent::new("{\"n\":1}")).await.unwrap();
    let (clock, calls) = (Arc::clone(&world.environment.clock), world.calls.clone());
    let handler = move |message: Message| {
        let (clock, calls) = (Arc::clone(&clock), calls.clone());
        async move {
            calls.note("begun", &message);
            clock.sleep(Duration::from_secs(100)).await;
            calls.note("ended", &message);
        }
    };
    let consumer = world.builder().one("index", handler).build().unwrap();
    (QueueSource::new(consumer, client.clone()).time(Duration::from_secs(200)), client)
}

#[tokio::test]
async fn messages_of_a_queue_stay_on_loan_while_they_are_worked_on() {
    let world = World::new();
    let work = async {
        let (source, client) = slow(&world, Arc::clone(&world.store)).await;
        let nosy = async {
            for _ in 0..18 {
                world.environment.clock.sleep(Duration::from_secs(5)).await;
                let got = client.receive(&millpond_queue::Receive::up_to(1)).await.unwrap();
                assert!(got.is_empty(), "another got it");
            }
        };
        let (report, ()) = tokio::join!(source.poll(), nosy);
        (report.unwrap().unwrap(), client.count().await.unwrap())
    };
    let (report, count) = in_virtual_time(&world.clock, &world.watched, work).await;
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((world.calls.of("ended").len(), count.total()), (1, 0));
}

#[tokio::test]
async fn a_message_of_a_queue_that_is_lost_is_given_up() {
    let world = World::new();
    let moody = MoodyStore::new(Arc::clone(&world.store));
    let work = async {
        let (source, client) = slow(&world, Arc::clone(&moody) as _).await;
        let clock = &world.environment.clock;
        let trouble = async {
            clock.sleep(Duration::from_secs(5)).await;
            moody.mood.set(Mood::Fails);
            clock.sleep(Duration::from_secs(26)).await;
            moody.mood.set(Mood::Works);
        };
        let (report, ()) = tokio::join!(source.poll(), trouble);
        // The loan was over at 30 seconds: others get it, and nothing of the first still runs.
        let got = client.receive(&millpond_queue::Receive::up_to(1)).await.unwrap();
        clock.sleep(Duration::from_secs(200)).await;
        (report.unwrap().unwrap(), got.len())
    };
    let (report, got) = in_virtual_time(&world.clock, &world.watched, work).await;
    assert_eq!((report.unfinished, got), (1, 1), "{report:?}");
    assert_eq!(report.tasks["index"].hangs + report.tasks["index"].retried, 0, "no attempt counts");
    assert_eq!((world.calls.of("begun").len(), world.calls.of("ended").len()), (1, 0));
}
