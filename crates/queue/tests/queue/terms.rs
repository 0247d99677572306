//! Leases under terms, messages that keep their names and ages, and groups that come behind others.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{
    Client, DeadLetters, Extension, Lost, Message, QueueConfig, QueueError, Queues, Receive,
    Redrive, Result, Settled,
};
use millpond_store::{Environment, MemoryStore, Timestamp, VirtualClock};

fn queues() -> (VirtualClock, Queues) {
    let clock = VirtualClock::new(Timestamp::from_millis(1_800_000_000_000));
    let environment = Environment::simulated(clock.clone(), 3);
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    (clock, Queues::new(&ground))
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn lost(outcome: &Result<Settled>) -> Lost {
    match outcome {
        Err(QueueError::LeaseLost { reason, .. }) => *reason,
        other => panic!("expected a lost lease, got {other:?}"),
    }
}

async fn one(client: &Client) -> millpond_queue::Delivery {
    let mut got = client.receive(&Receive::default()).await.unwrap();
    assert_eq!(got.len(), 1);
    got.remove(0)
}

#[tokio::test]
async fn a_lease_of_no_time_ends_at_once_and_its_holder_can_still_acknowledge() {
    let (_, queues) = queues();
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    client.send(Message::new("x")).await.unwrap();
    let held = one(&client).await;
    let each = [(held.receipt.clone(), Duration::ZERO)];
    client.extend_each(&each, Extension::default()).await.unwrap().remove(0).unwrap();
    assert_eq!(client.count().await.unwrap().available, 1);
    assert_eq!(client.ack(&held.receipt).await.unwrap(), Settled::Now);
    assert_eq!(client.count().await.unwrap().total(), 0);
    let late = client.extend_each(&each, Extension::default()).await.unwrap().remove(0);
    assert_eq!(lost(&late), Lost::Finished);
}

#[tokio::test]
async fn a_call_that_is_to_be_in_time_is_refused_when_it_is_late() {
    let (clock, queues) = queues();
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    client.send(Message::new("x")).await.unwrap();
    let held = one(&client).await;
    let terms = Extension { in_time: true, total_max: Some(seconds(100)) };
    let each = [(held.receipt.clone(), seconds(60))];
    clock.advance(seconds(29));
    client.extend_each(&each, terms).await.unwrap().remove(0).unwrap();
    clock.advance(seconds(59));
    let long = client.extend_each(&each, terms).await.unwrap().remove(0);
    assert_eq!(lost(&long), Lost::TooLong);
    clock.advance(seconds(1));
    let late = client.ack_batch_in_time(std::slice::from_ref(&held.receipt)).await.unwrap();
    assert_eq!(lost(&late[0]), Lost::RunOut);
    let late = client.extend_each(&each, terms).await.unwrap().remove(0);
    assert_eq!(lost(&late), Lost::RunOut);
    assert_eq!(client.count().await.unwrap().available, 1);
    let again = one(&client).await;
    let stale = client.ack_batch(std::slice::from_ref(&held.receipt)).await.unwrap();
    assert_eq!(lost(&stale[0]), Lost::Taken);
    client.ack_batch_in_time(&[again.receipt]).await.unwrap().remove(0).unwrap();
}

#[tokio::test]
async fn a_returned_message_counts_as_never_received() {
    let (_, queues) = queues();
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    client.send(Message::new("x")).await.unwrap();
    let held = one(&client).await;
    assert_eq!(client.message_of(&held.receipt).unwrap(), held.id);
    client.return_batch(&[held.receipt]).await.unwrap().remove(0).unwrap();
    assert_eq!(one(&client).await.receives, 1);
}

#[tokio::test]
async fn a_wait_that_is_stopped_returns_what_it_has() {
    let (_, queues) = queues();
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    let ask = Receive::up_to(1).wait(seconds(20));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let call = client.receive_until(&ask, async { drop(stopped.await) });
    let both = futures::future::join(call, async { drop(stop) }).await;
    assert_eq!(both.0.unwrap().len(), 0);
}

#[tokio::test]
async fn a_message_keeps_its_name_and_age_among_the_dead_letters() {
    let (clock, queues) = queues();
    let keeps = QueueConfig { keeps_age: true, retention: seconds(600), ..QueueConfig::default() };
    for (name, dead) in [("last", None), ("dead", Some("last")), ("q", Some("dead"))] {
        let dead = dead.map(|queue| DeadLetters { queue: queue.to_owned(), receives_max: 1 });
        let config = QueueConfig { dead_letters: dead, ..keeps.clone() };
        queues.create(name, config).await.unwrap();
    }
    let client = |name: &'static str| {
        let queues = queues.clone();
        async move { queues.open(name).await.unwrap().main().unwrap() }
    };
    let (q, dead, last) = (client("q").await, client("dead").await, client("last").await);
    let sent = q.send(Message::new("x")).await.unwrap();
    let began = one(&q).await;
    assert_eq!(began.identity, q.identity(&sent.id));
    for (from, to) in [(&q, &dead), (&dead, &last)] {
        clock.advance(seconds(31));
        assert!(from.receive(&Receive::default()).await.unwrap().is_empty());
        let moved = one(to).await;
        assert_eq!(moved.identity, began.identity);
        assert_eq!(moved.origin.unwrap().sent(), began.sent);
    }
    clock.advance(seconds(600 - 62));
    assert_eq!(last.count().await.unwrap().total(), 0, "it ends when it would have ended");
}

#[tokio::test]
async fn a_message_that_is_brought_back_has_another_name() {
    let (clock, queues) = queues();
    queues.create("dead", QueueConfig::default()).await.unwrap();
    let dead_letters = Some(DeadLetters { queue: "dead".into(), receives_max: 1 });
    let config = QueueConfig { dead_letters, ..QueueConfig::default() };
    let q = queues.create("q", config).await.unwrap().main().unwrap();
    let dead = queues.open("dead").await.unwrap().main().unwrap();
    q.send(Message::new("x")).await.unwrap();
    let first = one(&q).await;
    clock.advance(seconds(31));
    assert!(q.receive(&Receive::default()).await.unwrap().is_empty());
    assert_eq!(dead.redrive(&Redrive::default()).await.unwrap().moved, 1);
    let again = one(&q).await;
    assert_eq!(again.body, first.body);
    assert_ne!(again.identity, first.identity);
}

#[tokio::test]
async fn the_rest_of_a_configuration_can_change_when_the_dead_letters_are_gone() {
    let (_, queues) = queues();
    let dead = queues.create("dead", QueueConfig::default()).await.unwrap();
    let dead_letters = Some(DeadLetters { queue: "dead".into(), receives_max: 1 });
    let config = QueueConfig { dead_letters, ..QueueConfig::default() };
    let q = queues.create("q", config.clone()).await.unwrap();
    dead.delete().await.unwrap();
    q.update_config(QueueConfig { visibility: seconds(9), ..config }).await.unwrap();
    let other = Some(DeadLetters { queue: "gone".into(), receives_max: 1 });
    let refused = q.update_config(QueueConfig { dead_letters: other, ..QueueConfig::default() });
    assert!(matches!(refused.await, Err(QueueError::Invalid { .. })));
}

#[tokio::test]
async fn groups_that_come_behind_others_are_received_when_nothing_else_waits() {
    let (_, queues) = queues();
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    for n in 0..500 {
        client.send(Message::new(format!("loud {n}")).group("loud")).await.unwrap();
    }
    let batch = |n: u32| {
        let group = if n.is_multiple_of(3) { "quiet" } else { "loud" };
        Message::new(format!("{group} mixed {n}")).group(group)
    };
    client.send_batch((0..30).map(batch).collect()).await.unwrap();
    client.send(Message::new("alone")).await.unwrap();
    let ask = Receive { behind: vec!["loud".to_owned()], ..Receive::up_to(8) };
    let mut groups = Vec::new();
    for _ in 0..2 {
        let got = client.receive(&ask).await.unwrap();
        assert_eq!(got.len(), 8);
        groups.extend(got.into_iter().map(|message| message.group));
    }
    let loud = |group: &Option<String>| group.as_deref() == Some("loud");
    assert_eq!(groups.iter().position(loud), Some(11), "{groups:?}");
    assert!(groups[11..].iter().all(loud));
    // Nothing is lost or delivered twice.
    let mut rest = 0;
    loop {
        let got = client.receive(&Receive { max: 100, ..ask.clone() }).await.unwrap().len();
        rest += got;
        if got == 0 {
            break;
        }
    }
    assert_eq!(rest, 531 - 16);
}
