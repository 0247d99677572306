//! Deduplication in strict queues.

use std::collections::BTreeSet;

use futures::future::join_all;
use millpond_queue::{Dedup, DedupScope, Event, Message, QueueConfig, Strict};

use super::{counts, drain, elsewhere, queue, seconds, texts};
use crate::subject::{Subject, bounded};

fn config(dedup: Dedup, dedup_scope: DedupScope) -> QueueConfig {
    let strict = Strict { dedup, dedup_scope, ..Strict::default() };
    QueueConfig { strict: Some(strict), ..QueueConfig::default() }
}

/// By id: in the window, after a restart, across processes, also when it was received and done meanwhile.
pub async fn dedup_by_id_holds_after_restart_and_across_processes(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let message = |text: &str, id: &str| Message::new(text.to_owned()).group("g").dedup_id(id);
    let first = client.send(message("x", "1")).await.unwrap();
    assert!(!first.duplicate);
    let other = elsewhere(subject, &client).await;
    subject.clock.advance(seconds(299));
    for process in [&client, &other] {
        let again = process.send(message("another body", "1")).await.unwrap();
        assert!(again.duplicate);
        assert_eq!((again.id, again.sequence), (first.id, first.sequence));
    }
    assert!(!client.send(message("x", "2")).await.unwrap().duplicate, "another id");
    assert!(!client.send(Message::new("x").group("g")).await.unwrap().duplicate, "no id");
    assert_eq!(texts(&drain(&client).await), ["x", "x", "x"]);
    assert!(other.send(message("x", "1")).await.unwrap().duplicate, "done, but known");
    let totals = client.totals().await.unwrap();
    assert_eq!(totals.of(Event::Duplicate), 1);
    // Marks are kept in whole seconds, and never end early.
    subject.clock.advance(seconds(2));
    for process in [elsewhere(subject, &client).await, other] {
        let sent = process.send(message("x", "1")).await.unwrap();
        assert_ne!(sent.sequence, first.sequence, "after the window it is new");
    }
    assert_eq!(counts(&client).await, (1, 0, 0), "new, once");
}

/// By content: the same body without an id is the same message, with one it goes by the id.
pub async fn dedup_by_content_goes_by_the_body(subject: &Subject) {
    let client = queue(subject, config(Dedup::ByContent, DedupScope::Queue)).await;
    let send = async |message: Message| client.send(message).await.unwrap().duplicate;
    assert!(!send(Message::new("x").group("a")).await);
    assert!(send(Message::new("x").group("b")).await);
    assert!(!send(Message::new("y").group("b")).await);
    assert!(!send(Message::new("x").group("a").dedup_id("1")).await);
    assert!(send(Message::new("z").group("a").dedup_id("1")).await);
    let other = elsewhere(subject, &client).await;
    assert!(other.send(Message::new("y").group("a")).await.unwrap().duplicate);
    subject.clock.advance(seconds(301));
    assert!(!send(Message::new("x").group("a")).await);
    assert_eq!(texts(&drain(&client).await).len(), 4);
}

/// Within a group: the same id in another group is another message.
pub async fn dedup_can_be_scoped_to_the_group(subject: &Subject) {
    for dedup in [Dedup::ById, Dedup::ByContent] {
        let client = queue(subject, config(dedup, DedupScope::Group)).await;
        let message = |group: &str| Message::new("x").group(group).dedup_id("1");
        assert!(!client.send(message("a")).await.unwrap().duplicate);
        assert!(!client.send(message("b")).await.unwrap().duplicate);
        assert!(client.send(message("a")).await.unwrap().duplicate);
        assert!(!client.send(Message::new("x").dedup_id("1")).await.unwrap().duplicate);
        assert_eq!(drain(&client).await.len(), 3);
    }
}

/// Duplicates within a batch and of what was sent before: the neighbours are sent, in order.
pub async fn duplicates_do_not_lose_their_neighbours(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let message = |n: usize| Message::new(n.to_string()).group("g").dedup_id(format!("id {n}"));
    for known in [3, 70, 5] {
        client.send(message(known)).await.unwrap();
    }
    let numbers = (0..100).chain([3, 99, 0, 100, 70, 100, 101]);
    let outcomes = client.send_batch(numbers.clone().map(message).collect()).await.unwrap();
    let sent: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    let mut seen = BTreeSet::from([3, 70, 5]);
    for (number, sent) in numbers.clone().zip(&sent) {
        assert_eq!(sent.duplicate, !seen.insert(number), "message {number}");
    }
    for (at, number) in numbers.clone().enumerate() {
        let first = numbers.clone().position(|other| other == number).unwrap();
        assert_eq!(sent[at].id, sent[first].id, "a duplicate names the first");
    }
    let expected = [3, 70, 5].into_iter().chain((0..100).filter(|n| ![3, 5, 70].contains(n)));
    let expected: Vec<String> = expected.chain([100, 101]).map(|n| n.to_string()).collect();
    assert_eq!(texts(&drain(&client).await), expected);
}

/// The same message from eight senders in four processes at once: it is there once, and all hear of the same.
pub async fn racing_duplicates_are_sent_once(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(elsewhere(subject, &client).await);
    }
    for round in 0..5 {
        let senders = (0..8).map(|number| {
            let own = Message::new(format!("{round} own {number}"));
            let same = Message::new(format!("{round}")).dedup_id(format!("r{round}"));
            let client = processes[number % 4].clone();
            tokio::spawn(async move { client.send_batch(vec![own.clone(), same, own]).await })
        });
        let mut ids = BTreeSet::new();
        let mut new = 0;
        for outcome in bounded("the senders", join_all(senders)).await {
            let outcomes = outcome.unwrap().unwrap();
            let same = outcomes[1].as_ref().unwrap();
            ids.insert(same.id);
            new += usize::from(!same.duplicate);
        }
        assert_eq!((ids.len(), new), (1, 1), "round {round}");
    }
    let received = texts(&drain(&client).await);
    assert_eq!(received.len(), 5 * 17);
}
