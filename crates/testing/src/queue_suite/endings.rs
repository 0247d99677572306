//! Expiry, purge and delay.

use std::collections::BTreeSet;
use std::time::Duration;

use millpond_queue::{Event, Message, MessageState, Order, QueueConfig, Receive};

use super::{
    ack_all, counts, drain, elsewhere, numbered, process, queue, seconds, send, send_all, take,
    take_one, texts,
};
use crate::subject::Subject;

/// A message past its end is never delivered, though it is still stored.
pub async fn an_expired_message_is_never_delivered(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let config = QueueConfig { retention: seconds(1_000), ..config };
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        let short = Message::new("short").group("a").ttl(seconds(10));
        let (id, _) = (client.send(short).await.unwrap().id, send(&client, &["kept"]).await);
        subject.clock.advance(Duration::from_millis(9_999));
        assert_eq!(client.get(&id).await.unwrap().unwrap().state, MessageState::Available);
        assert_eq!(counts(&client).await, (2, 0, 0));
        subject.clock.advance(Duration::from_millis(1));
        assert_eq!(client.get(&id).await.unwrap().unwrap().state, MessageState::Expired);
        assert_eq!(counts(&client).await, (1, 0, 0), "an expired message is counted");
        assert_eq!(texts(&take(&client, 10).await), ["kept"]);
        // The queue's own end holds for the rest, and for what is on loan once that ends.
        subject.clock.advance(seconds(989));
        assert_eq!(texts(&take(&other, 10).await), ["kept"]);
        subject.clock.advance(seconds(31));
        assert!(take(&client, 10).await.is_empty());
        assert!(take(&other, 10).await.is_empty());
        assert_eq!(counts(&client).await, (0, 0, 0));
        client.maintain().await.unwrap();
        other.maintain().await.unwrap();
        let totals = client.totals().await.unwrap();
        assert_eq!(totals.of(Event::Expired), 2, "{totals:?}");
        assert!(client.peek(5).await.unwrap().is_empty(), "maintenance removes what has ended");
    }
}

/// A message that ends while on loan belongs to its holder, who may still finish it.
pub async fn a_message_on_loan_is_its_holders_beyond_its_end(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    client.send(Message::new("x").ttl(seconds(10))).await.unwrap();
    let held = take_one(&client).await;
    subject.clock.advance(seconds(20));
    client.maintain().await.unwrap();
    client.ack(&held.receipt).await.unwrap();
    let totals = client.totals().await.unwrap();
    assert_eq!((totals.of(Event::Acked), totals.of(Event::Expired)), (1, 0));
    client.send(Message::new("y").ttl(seconds(10))).await.unwrap();
    let held = take_one(&client).await;
    subject.clock.advance(seconds(5));
    client.release(&held.receipt).await.unwrap();
    subject.clock.advance(seconds(5));
    assert!(take(&client, 1).await.is_empty(), "given back, and expired");
}

/// Purge removes what is there, on loan or not, in this queue and client only, and counts it.
pub async fn a_purge_leaves_other_queues_alone_and_is_counted(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let handle = process(subject).create(&super::name(), config.clone()).await.unwrap();
        let (client, neighbour) = (handle.client("a").unwrap(), handle.client("b").unwrap());
        let other = queue(subject, config).await;
        for client in [&client, &neighbour, &other] {
            send_all(client, numbered(100)).await;
        }
        let held = take(&client, 10).await;
        client.send(Message::new("later").delay(seconds(100))).await.unwrap();
        assert_eq!(client.purge().await.unwrap(), 101);
        assert_eq!(counts(&client).await, (0, 0, 0));
        assert!(take(&client, 10).await.is_empty());
        subject.clock.advance(seconds(200));
        assert!(take(&client, 10).await.is_empty());
        assert!(client.extend(&held[0].receipt, seconds(10)).await.is_err());
        assert_eq!(client.totals().await.unwrap().of(Event::Purged), 101);
        for client in [&neighbour, &other] {
            assert_eq!(counts(client).await, (100, 0, 0));
        }
        send(&client, &["new"]).await;
        assert_eq!(texts(&drain(&client).await), ["new"]);
        assert_eq!(client.purge().await.unwrap(), 0);
    }
}

/// Of messages that are sent while a purge runs, each is removed, or stays whole.
pub async fn sends_racing_a_purge_are_before_or_after_it(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, config).await;
        send_all(&client, numbered(200)).await;
        let (sender, purger) =
            (elsewhere(subject, &client).await, elsewhere(subject, &client).await);
        let sends = tokio::spawn(async move {
            for number in 0..60 {
                sender.send(Message::new(format!("r{number}"))).await.unwrap();
            }
        });
        let purged = purger.purge().await.unwrap();
        sends.await.unwrap();
        let rest: BTreeSet<String> = texts(&drain(&client).await).into_iter().collect();
        assert!(rest.iter().all(|text| text.starts_with('r')), "what was there before stays");
        assert_eq!(purged + rest.len(), 260);
        assert_eq!(counts(&client).await, (0, 0, 0));
    }
}

/// A sent message is known again by its id although a purge ran beside it: it is there once.
pub async fn a_purge_forgets_what_it_removed_and_no_more(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let message = Message::new("x").group("g").dedup_id("1");
    client.send(message.clone()).await.unwrap();
    assert!(client.send(message.clone()).await.unwrap().duplicate);
    client.purge().await.unwrap();
    assert!(!client.send(message.clone()).await.unwrap().duplicate, "removed, so it is new");
    assert_eq!(texts(&drain(&client).await), ["x"]);
}

/// What was received and done before a purge is forgotten with the rest: sent again, it is new.
pub async fn a_purge_forgets_what_was_done_before_it(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let message = |id: &str| Message::new("x").group("g").dedup_id(id);
    for id in ["1", "2"] {
        client.send(message(id)).await.unwrap();
        assert_eq!(drain(&client).await.len(), 1);
    }
    assert_eq!(client.purge().await.unwrap(), 0);
    for id in ["1", "2"] {
        assert!(!client.send(message(id)).await.unwrap().duplicate, "{id}");
    }
    assert_eq!(drain(&client).await.len(), 2);
}

/// Invisible until due, by its own delay or the queue's; the others pass.
pub async fn a_delayed_message_is_invisible_until_due(subject: &Subject) {
    for order in [Order::Fifo, Order::Lifo] {
        let config = QueueConfig { delay: seconds(5), order, ..QueueConfig::default() };
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        send(&client, &["as the queue says"]).await;
        client.send(Message::new("at once").delay(Duration::ZERO)).await.unwrap();
        client.send(Message::new("much later").delay(seconds(600))).await.unwrap();
        assert_eq!(counts(&client).await, (1, 0, 2));
        assert_eq!(texts(&take(&client, 5).await), ["at once"]);
        subject.clock.advance(Duration::from_millis(4_999));
        assert!(take(&client, 5).await.is_empty() && take(&other, 5).await.is_empty());
        subject.clock.advance(Duration::from_millis(1));
        assert_eq!(texts(&take(&other, 5).await), ["as the queue says"]);
        subject.clock.advance(seconds(595));
        let ask = Receive::up_to(5).visibility(seconds(60));
        let due = client.receive(&ask).await.unwrap();
        assert!(texts(&due).contains(&"much later".to_owned()), "{due:?}");
        ack_all(&client, &due).await;
    }
}
