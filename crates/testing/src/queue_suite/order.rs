//! Which message comes first.

use std::time::Duration;

use millpond_queue::{Message, Nack, Order, QueueConfig, Receive};

use super::{
    ack_all, drain, elsewhere, numbered, queue, seconds, send, send_all, take, take_one, texts,
};
use crate::subject::Subject;

fn lifo() -> QueueConfig {
    QueueConfig { order: Order::Lifo, ..QueueConfig::default() }
}

/// One after another: in that order, in LIFO in reverse, whatever a receive asks for.
pub async fn sent_one_after_another_received_in_that_order(subject: &Subject) {
    let sent: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let reversed: Vec<String> = sent.iter().rev().cloned().collect();
    for (config, expected) in [(QueueConfig::default(), &sent), (lifo(), &reversed)] {
        let client = queue(subject, config).await;
        for part in numbered(150).chunks(25) {
            send_all(&client, part.to_vec()).await;
            subject.clock.advance(Duration::from_millis(1));
        }
        let mut received = Vec::new();
        for max in [1, 2, 40, 1, 64, 42] {
            received.extend(texts(&take(&client, max).await));
        }
        assert_eq!(&received, expected);
    }
}

/// A receive may ask for another order than the queue's.
pub async fn the_order_can_be_changed_per_receive(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    for text in ["1", "2", "3", "4", "5", "6"] {
        send(&client, &[text]).await;
        subject.clock.advance(Duration::from_millis(1));
    }
    let newest = Receive::up_to(1).order(Order::Lifo);
    assert_eq!(texts(&client.receive(&newest).await.unwrap()), ["6"]);
    assert_eq!(texts(&take(&client, 1).await), ["1"]);
    assert_eq!(texts(&client.receive(&newest).await.unwrap()), ["5"]);
    let other = elsewhere(subject, &client).await;
    assert_eq!(texts(&other.receive(&newest).await.unwrap()), ["4"]);
    assert_eq!(texts(&take(&other, 2).await), ["2", "3"]);
    // Changed for good, while messages wait.
    let handle = super::process(subject).open(client.queue().as_str()).await.unwrap();
    handle.update_config(lifo()).await.unwrap();
    subject.clock.advance(seconds(11));
    send(&client, &["7"]).await;
    subject.clock.advance(Duration::from_millis(1));
    send(&client, &["8"]).await;
    assert_eq!(texts(&take(&client, 1).await), ["8"]);
}

/// What comes while others wait is taken before them; what is given back keeps its age.
pub async fn lifo_takes_the_newest_and_what_returns_keeps_its_age(subject: &Subject) {
    let client = queue(subject, lifo()).await;
    let other = elsewhere(subject, &client).await;
    for text in ["1", "2", "3"] {
        send(&client, &[text]).await;
        subject.clock.advance(Duration::from_millis(1));
    }
    let three = take_one(&client).await;
    assert_eq!(three.text(), Some("3"));
    send(&other, &["4"]).await;
    let four = take_one(&client).await;
    assert_eq!(four.text(), Some("4"), "another process's newer message comes first");
    client.release(&three.receipt).await.unwrap();
    subject.clock.advance(Duration::from_millis(1));
    send(&client, &["5"]).await;
    client.nack(&four.receipt, Nack::default()).await.unwrap();
    assert_eq!(texts(&take(&client, 5).await), ["5", "4", "3", "2", "1"]);
}

/// Higher first, equal ones by age, and a low one that has waited long enough before them.
pub async fn priority_comes_first_and_age_counts(subject: &Subject) {
    let order = Order::Priority { aging: seconds(60) };
    let config = QueueConfig { order, priorities: 3, ..QueueConfig::default() };
    let client = queue(subject, config).await;
    let at = |text: &str, priority| Message::new(text.to_owned()).priority(priority);
    for message in
        [at("low 1", 0), at("high 1", 2), at("middle", 1), at("high 2", 2), at("low 2", 0)]
    {
        client.send(message).await.unwrap();
        subject.clock.advance(Duration::from_millis(1));
    }
    let mut taken = take(&client, 2).await;
    assert_eq!(texts(&taken), ["high 1", "high 2"]);
    assert_eq!(taken[0].priority, 2);
    taken.extend(take(&client, 3).await);
    assert_eq!(texts(&taken)[2..], ["middle", "low 1", "low 2"]);
    ack_all(&client, &taken).await;

    // New high ones keep coming; the low one is served all the same.
    client.send(at("patient", 0)).await.unwrap();
    for round in 0..10 {
        subject.clock.advance(seconds(30));
        client.send(at("fresh", 2)).await.unwrap();
        let first = take_one(&client).await;
        client.ack(&first.receipt).await.unwrap();
        if first.text() == Some("patient") {
            assert!((3..=5).contains(&round), "served in round {round}");
            return;
        }
    }
    panic!("a low priority starves");
}

/// FIFO while short, LIFO while a backlog stands, FIFO again when it is gone.
pub async fn adaptive_turns_with_a_standing_backlog_and_back(subject: &Subject) {
    let order = Order::Adaptive { target: seconds(5), interval: seconds(10) };
    let client = queue(subject, QueueConfig { order, ..QueueConfig::default() }).await;
    let mut next = 0;
    let mut sends = async |count: usize| {
        for _ in 0..count {
            send(&client, &[&next.to_string()]).await;
            subject.clock.advance(Duration::from_millis(10));
            next += 1;
        }
    };
    sends(4).await;
    assert_eq!(texts(&take(&client, 1).await), ["0"], "short: the oldest");
    subject.clock.advance(seconds(6));
    assert_eq!(texts(&take(&client, 1).await), ["1"], "old, but not for an interval yet");
    subject.clock.advance(seconds(10));
    sends(3).await;
    assert_eq!(texts(&take(&client, 2).await), ["6", "5"], "a standing backlog: the newest");
    subject.clock.advance(seconds(1));
    assert_eq!(texts(&take(&client, 3).await), ["4", "3", "2"]);
    assert!(take(&client, 1).await.is_empty());
    sends(3).await;
    let taken = take(&client, 2).await;
    assert_eq!(texts(&taken), ["7", "8"], "the backlog is gone: the oldest");
    ack_all(&client, &taken).await;
    drain(&client).await;
}
