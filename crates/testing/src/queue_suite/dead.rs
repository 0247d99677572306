//! Dead letters and the way back.

use std::time::Duration;

use millpond_queue::{
    AttributeValue, Ended, Event, GroupPoison, Message, MoveReason, Nack, QueueConfig, QueueError,
    Redrive, Strict,
};

use super::{
    ack_all, counts, drain, elsewhere, queue, seconds, send, send_all, take, take_one, texts,
    with_dead_letters,
};
use crate::subject::Subject;

fn failed(error: &str) -> Nack {
    Nack { error: error.to_owned(), ..Nack::default() }
}

/// At the limit, not before, with the last error, the history and where it came from.
pub async fn dead_lettered_exactly_at_the_limit_with_its_history(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let (client, dead) = with_dead_letters(subject, 3, config).await;
        let sent_at = subject.environment.now();
        let message = Message::new("poison")
            .group("g")
            .attribute("kind", AttributeValue::String("invoice".into()));
        let id = client.send(message.clone()).await.unwrap().id;
        let first = take_one(&client).await;
        client.nack(&first.receipt, failed("first")).await.unwrap();
        take_one(&client).await;
        subject.clock.advance(seconds(30));
        assert_eq!(counts(&dead).await, (0, 0, 0), "not before the limit");
        let third = take_one(&client).await;
        assert_eq!(third.receives, 3);
        client.nack(&third.receipt, failed("last")).await.unwrap();
        assert!(take(&client, 5).await.is_empty(), "received more often than the limit");
        assert_eq!((counts(&client).await, counts(&dead).await), ((0, 0, 0), (1, 0, 0)));

        let letter = take_one(&dead).await;
        assert_eq!((letter.text(), letter.receives), (Some("poison"), 1));
        assert_eq!((&letter.attributes, &letter.group), (&message.attributes, &message.group));
        let origin = letter.origin.unwrap();
        assert_eq!((origin.queue.as_str(), origin.id), (client.queue().as_str(), id.to_string()));
        assert_eq!((origin.client.as_str(), origin.reason), ("", MoveReason::ReceiveLimit));
        assert_eq!((origin.receives, origin.error.as_deref()), (3, Some("last")));
        assert_eq!(origin.sent_ms, sent_at.as_millis());
        assert_eq!(origin.moved_ms, subject.environment.now().as_millis());
        let ended: Vec<Ended> = origin.attempts.iter().map(|attempt| attempt.ended).collect();
        assert_eq!(ended, [Ended::Failed, Ended::Lapsed, Ended::Failed]);
        assert_eq!(client.totals().await.unwrap().of(Event::DeadLettered), 1);
    }
}

/// Nobody says that it failed: its leases run out, and the limit holds all the same.
pub async fn a_lapsed_lease_counts_towards_the_limit(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let (client, dead) = with_dead_letters(subject, 2, config).await;
        send(&client, &["poison"]).await;
        for _ in 0..2 {
            take_one(&client).await;
            subject.clock.advance(seconds(30));
        }
        let other = elsewhere(subject, &client).await;
        assert!(take(&other, 5).await.is_empty());
        assert_eq!(texts(&drain(&dead).await), ["poison"]);
        // Given back early is not failed; but received is received.
        send(&client, &["released"]).await;
        for _ in 0..2 {
            let held = take_one(&client).await;
            client.release(&held.receipt).await.unwrap();
        }
        assert!(take(&client, 5).await.is_empty());
        assert_eq!(texts(&drain(&dead).await), ["released"]);
    }
}

/// A message that fails again and again at the head lets those behind it through.
pub async fn a_poison_head_does_not_starve_what_is_behind_it(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let (client, dead) = with_dead_letters(subject, 3, config).await;
        let poison = Message::new("poison").group("bad");
        client.send(poison).await.unwrap();
        send_all(&client, (0..10).map(|n| Message::new(n.to_string()).group("good"))).await;
        let mut served = Vec::new();
        for _ in 0..20 {
            let taken = take(&client, 1).await;
            let Some(delivery) = taken.first() else { break };
            if delivery.text() == Some("poison") {
                client.nack(&delivery.receipt, failed("no")).await.unwrap();
            } else {
                ack_all(&client, &taken).await;
                served.extend(texts(&taken));
            }
        }
        let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(served, expected);
        assert_eq!(texts(&drain(&dead).await), ["poison"]);
    }
}

/// Redrive brings each dead letter back, once, to where it came from or where it is told.
pub async fn redrive_brings_a_dead_letter_back_once(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let (client, dead) = with_dead_letters(subject, 1, config.clone()).await;
        let names: Vec<String> = (0..25).map(|number| format!("m{number:02}")).collect();
        for name in &names {
            let message = Message::new(name.clone()).group(format!("g{}", name.len()));
            client.send(message).await.unwrap();
            let held = take_one(&client).await;
            client.nack(&held.receipt, failed("no")).await.unwrap();
            subject.clock.advance(Duration::from_millis(1));
        }
        assert_eq!((counts(&client).await, counts(&dead).await), ((0, 0, 0), (25, 0, 0)));
        let done = dead.redrive(&Redrive { max: Some(5), ..Redrive::default() }).await.unwrap();
        assert_eq!((done.moved, done.homeless), (5, 0));
        assert_eq!((counts(&client).await.0, counts(&dead).await.0), (5, 20));
        let done = dead.redrive(&Redrive::default()).await.unwrap();
        assert_eq!(done.moved, 20);
        assert_eq!(dead.redrive(&Redrive::default()).await.unwrap().moved, 0, "once");
        let mut back = drain(&client).await;
        back.sort_by_key(|delivery| delivery.body.clone());
        assert_eq!(texts(&back), names, "{config:?}");
        assert!(back.iter().all(|delivery| delivery.receives == 1 && delivery.origin.is_none()));
        assert_eq!(dead.totals().await.unwrap().of(Event::Redriven), 25);

        // What was sent to the dead letters directly has no home, stays, and can be told to go elsewhere.
        send(&dead, &["stray"]).await;
        let done = dead.redrive(&Redrive::default()).await.unwrap();
        assert_eq!((done.moved, done.homeless), (0, 1));
        subject.clock.advance(seconds(31));
        let to = Some(client.queue().as_str().to_owned());
        assert_eq!(dead.redrive(&Redrive { to, ..Redrive::default() }).await.unwrap().moved, 1);
        // It was looked at before: processes that have read on see it within a minute.
        subject.clock.advance(seconds(61));
        assert_eq!(texts(&drain(&client).await), ["stray"]);
        let nowhere = Redrive { to: Some("no-such-queue".into()), ..Redrive::default() };
        assert!(matches!(dead.redrive(&nowhere).await, Err(QueueError::NotFound { .. })));
        let still = Redrive { rate: Some(0.0), ..Redrive::default() };
        assert!(matches!(dead.redrive(&still).await, Err(QueueError::Invalid { .. })));
    }
}

fn strict(poison: GroupPoison) -> QueueConfig {
    let strict = Strict { poison, ..Strict::default() };
    QueueConfig { strict: Some(strict), ..QueueConfig::default() }
}

async fn three_and_one(client: &millpond_queue::Client) {
    let grouped = |text: &str, group: &str| Message::new(text.to_owned()).group(group);
    let all = [grouped("a1", "a"), grouped("a2", "a"), grouped("a3", "a"), grouped("b1", "b")];
    send_all(client, all).await;
}

/// Fails the first message of group `a` so many times, and finishes those of others.
async fn fail_a1(client: &millpond_queue::Client, times: usize) {
    let mut failures = 0;
    while failures < times {
        let delivery = take_one(client).await;
        if delivery.text() == Some("a1") {
            client.nack(&delivery.receipt, failed("no")).await.unwrap();
            failures += 1;
        } else {
            client.ack(&delivery.receipt).await.unwrap();
        }
    }
    let _ = drain(client).await;
}

/// Skip: the dead one goes, and the group goes on behind it.
pub async fn a_dead_letter_of_a_group_is_skipped(subject: &Subject) {
    let (client, dead) = with_dead_letters(subject, 2, strict(GroupPoison::Skip)).await;
    send_all(&client, ["a1", "a2", "a3"].map(|text| Message::new(text).group("a"))).await;
    for _ in 0..2 {
        let first = take_one(&client).await;
        assert_eq!(first.text(), Some("a1"));
        client.nack(&first.receipt, failed("no")).await.unwrap();
    }
    assert_eq!(texts(&drain(&client).await), ["a2", "a3"]);
    assert_eq!(texts(&drain(&dead).await), ["a1"]);
}

/// Block: the group waits for `unblock`, which every process notices; the others go on.
pub async fn a_dead_letter_of_a_group_blocks_it_until_unblocked(subject: &Subject) {
    let (client, dead) = with_dead_letters(subject, 2, strict(GroupPoison::Block)).await;
    three_and_one(&client).await;
    fail_a1(&client, 2).await;
    let other = elsewhere(subject, &client).await;
    for _ in 0..3 {
        assert!(take(&client, 10).await.is_empty() && take(&other, 10).await.is_empty());
        subject.clock.advance(seconds(100));
    }
    let count = client.count().await.unwrap();
    assert_eq!((count.held, counts(&dead).await), (1, (0, 0, 0)));
    assert_eq!(client.unblock("b").await.unwrap(), 0);
    assert_eq!(client.unblock("a").await.unwrap(), 1);
    let taken = take(&other, 10).await;
    assert_eq!(texts(&taken), ["a1", "a2", "a3"], "the other process does not notice");
    assert_eq!(taken[0].receives, 1);
    ack_all(&other, &taken).await;
    assert_eq!(counts(&client).await, (0, 0, 0));
}

/// Park: the dead one and those behind it go to the dead letters, in order (within one segment).
pub async fn a_dead_letter_of_a_group_parks_those_behind_it(subject: &Subject) {
    let (client, dead) = with_dead_letters(subject, 2, strict(GroupPoison::Park)).await;
    three_and_one(&client).await;
    fail_a1(&client, 2).await;
    assert!(take(&client, 10).await.is_empty());
    let letters = drain(&dead).await;
    assert_eq!(texts(&letters), ["a1", "a2", "a3"]);
    let reasons: Vec<_> = letters.iter().map(|l| l.origin.as_ref().unwrap().reason).collect();
    assert_eq!(reasons, [MoveReason::ReceiveLimit, MoveReason::Parked, MoveReason::Parked]);
    assert_eq!(counts(&client).await, (0, 0, 0));
}

/// An error longer than what is kept is cut, at a character; a full segment of them can be given back.
pub async fn long_errors_are_cut_and_many_fit(subject: &Subject) {
    let config = QueueConfig { status: None, ..QueueConfig::default() };
    let client = queue(subject, config).await;
    send_all(&client, super::numbered(64)).await;
    let error = "ä".repeat(10_000);
    for _ in 0..9 {
        for held in take(&client, 64).await {
            client.nack(&held.receipt, failed(&error)).await.unwrap();
        }
    }
    assert_eq!(counts(&client).await, (64, 0, 0));
    let (client, dead) = with_dead_letters(subject, 1, QueueConfig::default()).await;
    send(&client, &["x"]).await;
    client.nack(&take_one(&client).await.receipt, failed(&error)).await.unwrap();
    let kept = take_one(&dead).await.origin.unwrap().error.unwrap();
    assert_eq!(kept, "ä".repeat(256));
}
