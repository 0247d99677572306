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

#[tokio::test]
async fn a_topic_that_is_made_anew_inherits_no_state() {
    let world = World::new();
    let work = async {
        let log = Log::new(&ground(&world));
        for round in 0..2 {
            let topic = log.create("orders", TopicConfig::with_partitions(1)).await.unwrap();
            for n in 1..=3 {
                let n = round * 10 + n;
                topic.append(NewRecord::new(format!("{{\"n\":{n}}}"))).await.unwrap();
            }
            let group = topic.consumer("billing", ConsumerOptions::default()).await.unwrap();
            // The first fails, so that the others leave rows.
            let plan = |message: &Message| {
                if is(message, 1) { Outcome::retry("no") } else { Outcome::Done }
            };
            let consumer = world.planned(plan).build().unwrap();
            LogSource::new(consumer, "orders", group.clone()).pass().await.unwrap();
            group.leave().await.unwrap();
            log.delete("orders").await.unwrap();
        }
    };
    in_virtual_time(&world.clock, &world.watched, work).await;
    let mut called = world.calls.of("index");
    called.sort();
    assert_eq!(called, ["1", "11", "12", "13", "2", "3"]);
}

#[tokio::test]
async fn a_queue_that_is_made_anew_inherits_no_state() {
    let world = World::new();
    let work = async {
        let config = QueueConfig { strict: Some(Strict::default()), ..QueueConfig::default() };
        let queues = Queues::new(&ground(&world));
        for round in 0..2 {
            let queue = queues.create("orders", config.clone()).await.unwrap();
            let client = queue.client("shop").unwrap();
            client.send(Sent::new(format!("{{\"n\":{}}}", round + 1)).group("g")).await.unwrap();
            // Each fails once: of the first it leaves a row, of the second its row is asked for.
            let plan = |message: &Message| {
                if message.attempt() == 1 { Outcome::retry("no") } else { Outcome::Done }
            };
            let consumer = world.planned(plan).build().unwrap();
            let source = QueueSource::new(consumer, client);
            let deadline = world.environment.now().plus(Duration::from_secs(600));
            source.run_until(deadline).await.unwrap();
            queue.delete().await.unwrap();
        }
    };
    in_virtual_time(&world.clock, &world.watched, work).await;
    assert_eq!(world.calls.of("index"), ["1", "1", "2", "2"]);
}

/// A consumer whose handler takes 100 seconds.
fn slow_consumer(world: &World) -> millpond_consumer::Consumer {
    let (clock, calls) = (Arc::clone(&world.environment.clock), world.calls.clone());
    let handler = move |message: Message| {
        let (clock, calls) = (Arc::clone(&clock), calls.clone());
        async move {
            calls.note("begun", &message);
            clock.sleep(Duration::from_secs(100)).await;
            calls.note("ended", &message);
        }
    };
    world.builder().one("index", handler).build().unwrap()
}

/// Handles a topic of one record with it, while requests of the log go wrong from the fifth second on, for so long.
async fn slow_log(world: &World, mood: Mood, seconds: u64) -> millpond_consumer::Report {
    let moody = MoodyStore::new(Arc::clone(&world.store));
    let work = async {
        let log = Log::new(&Ground::new(Arc::clone(&moody) as _, &world.environment));
        let topic = log.create("orders", TopicConfig::with_partitions(1)).await.unwrap();
        topic.append(NewRecord::new("{\"n\":1}")).await.unwrap();
        let group = topic.consumer("billing", ConsumerOptions::default()).await.unwrap();
        let source = LogSource::new(slow_consumer(world), "orders", group);
        let source = source.time(Duration::from_secs(200));
        let clock = &world.environment.clock;
        let trouble = async {
            clock.sleep(Duration::from_secs(5)).await;
            moody.mood.set(mood);
            clock.sleep(Duration::from_secs(seconds)).await;
            moody.mood.set(Mood::Works);
        };
        let (reports, ()) = tokio::join!(source.pass(), trouble);
        clock.sleep(Duration::from_secs(200)).await;
        reports.unwrap().remove(0)
    };
    in_virtual_time(&world.clock, &world.watched, work).await
}

#[tokio::test]
async fn a_heartbeat_that_fails_or_hangs_does_not_stop_the_work() {
    for mood in [Mood::Fails, Mood::Hangs] {
        let world = World::new();
        let report = slow_log(&world, mood, 10).await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!((world.calls.of("begun").len(), world.calls.of("ended").len()), (1, 1));
    }
}

#[tokio::test]
async fn a_partition_that_is_lost_is_given_up() {
    for mood in [Mood::Fails, Mood::Hangs] {
        let world = World::new();
        let report = slow_log(&world, mood, 40).await;
        assert_eq!(report.unfinished, 1, "{report:?}");
        let counts = &report.tasks["index"];
        assert_eq!(counts.hangs + counts.retried, 0, "no attempt counts");
        assert!(report.took < Duration::from_secs(30), "others may have it then: {report:?}");
        assert_eq!((world.calls.of("begun").len(), world.calls.of("ended").len()), (1, 0));
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
    (QueueSource::new(slow_consumer(world), client.clone()).time(Duration::from_secs(200)), client)
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
