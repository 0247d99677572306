//! Leases and receipts: who may do what with a message, and until when.

use futures::future::join_all;
use millpond_queue::{
    Client, Message, Nack, QueueConfig, QueueError, Receipt, Receive, Settled, Strict,
};

use super::{
    ack_all, counts, elsewhere, open_in, patient, process, queue, seconds, send, take, take_one,
    texts,
};
use crate::subject::{Subject, bounded};

fn both() -> [QueueConfig; 2] {
    [
        QueueConfig::default(),
        QueueConfig { strict: Some(Strict::default()), ..QueueConfig::default() },
    ]
}

/// Invisible until the timeout, then visible with the same body and one more receive.
pub async fn a_received_message_is_invisible_until_its_timeout(subject: &Subject) {
    for config in both() {
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        send(&client, &["x"]).await;
        let first = take_one(&client).await;
        assert_eq!(first.leased_until, subject.environment.now().plus(seconds(30)));
        for client in [&client, &other] {
            assert!(take(client, 1).await.is_empty());
        }
        subject.clock.advance(seconds(29));
        assert!(take(&other, 1).await.is_empty());
        subject.clock.advance(seconds(1));
        let second = take_one(&other).await;
        assert_eq!((second.id, second.text(), second.receives), (first.id, Some("x"), 2));
        assert_eq!(second.first_received, first.first_received);
        assert_ne!(second.receipt, first.receipt);
        assert!(take(&client, 1).await.is_empty(), "two live leases");
        subject.clock.advance(seconds(30));
        let short = Receive::up_to(1).visibility(seconds(2));
        let third = client.receive(&short).await.unwrap().remove(0);
        assert_eq!(third.receives, 3);
        subject.clock.advance(seconds(2));
        assert_eq!(take_one(&client).await.receives, 4);
    }
}

/// Failed 3 times, delivered a 4th time, gone after its acknowledgement.
pub async fn failed_3_times_delivered_4_times(subject: &Subject) {
    for config in both() {
        let client = queue(subject, config).await;
        send(&client, &["x"]).await;
        for receives in 1..=3 {
            let delivery = take_one(&client).await;
            assert_eq!(delivery.receives, receives);
            client.nack(&delivery.receipt, Nack::default()).await.unwrap();
        }
        let last = take_one(&client).await;
        assert_eq!(last.receives, 4);
        client.ack(&last.receipt).await.unwrap();
        subject.clock.advance(seconds(3_600));
        assert!(take(&client, 1).await.is_empty());
        assert_eq!(counts(&client).await, (0, 0, 0));
    }
}

/// Three acks of one receipt from three processes: one does it, the others find it done.
pub async fn of_3_racing_acks_exactly_one_succeeds(subject: &Subject) {
    for config in both() {
        let client = queue(subject, config).await;
        let processes = [
            elsewhere(subject, &client).await,
            elsewhere(subject, &client).await,
            elsewhere(subject, &client).await,
        ];
        for round in 0..10 {
            send(&client, &["x", "neighbour"]).await;
            let receipt = take_one(&client).await.receipt;
            let racers = processes.iter().map(|client| client.ack(&receipt));
            let outcomes = bounded("the acks", join_all(racers)).await;
            let (mut now, mut already) = (0, 0);
            for outcome in outcomes {
                match outcome.unwrap() {
                    Settled::Now => now += 1,
                    Settled::Already => already += 1,
                }
            }
            assert_eq!((now, already), (1, 2), "round {round}");
            let again = client.ack(&receipt).await.unwrap();
            assert_eq!(again, Settled::Already, "and later too");
            ack_all(&client, &take(&client, 5).await).await;
        }
    }
}

/// Late, but nobody else took it: that succeeds.
pub async fn an_ack_after_the_timeout_succeeds_if_nobody_took_it(subject: &Subject) {
    for config in both() {
        let client = queue(subject, config).await;
        super::send_all(&client, ["late", "later"].map(Message::new)).await;
        let late = take(&client, 2).await;
        subject.clock.advance(seconds(3_600));
        assert_eq!(client.ack(&late[0].receipt).await.unwrap(), Settled::Now);
        let other = elsewhere(subject, &client).await;
        assert_eq!(other.ack(&late[1].receipt).await.unwrap(), Settled::Now);
        assert!(take(&client, 5).await.is_empty());
    }
}

async fn refuses_all(client: &Client, receipt: &Receipt) {
    let refused = [
        client.ack(receipt).await,
        client.succeed(receipt, "done").await,
        client.fail(receipt, "failed").await,
        client.extend(receipt, seconds(600)).await,
        client.release(receipt).await,
        client.nack(receipt, Nack { delay: seconds(600), error: "x".into() }).await,
    ];
    for outcome in refused {
        let error = outcome.unwrap_err();
        assert!(matches!(error, QueueError::LeaseLost { .. }), "{error:?}");
    }
}

/// Another has it, or it was given back: a typed error, and nothing changes.
pub async fn a_stale_holder_is_refused_and_changes_nothing(subject: &Subject) {
    for config in both() {
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        send(&client, &["x"]).await;
        let stale = take_one(&client).await;
        subject.clock.advance(seconds(30));
        let held = take_one(&other).await;
        let before = other.peek(1).await.unwrap();
        refuses_all(&client, &stale.receipt).await;
        refuses_all(&other, &stale.receipt).await;
        assert_eq!(other.peek(1).await.unwrap(), before, "a stale holder changed something");
        other.release(&held.receipt).await.unwrap();
        refuses_all(&client, &stale.receipt).await;
        let refused = other.ack(&held.receipt).await.unwrap_err();
        assert!(matches!(refused, QueueError::LeaseLost { .. }), "given back: {refused:?}");
        let again = other.release(&held.receipt).await.unwrap();
        assert_eq!(again, Settled::Already, "giving back twice is giving back once");
        let last = take_one(&other).await;
        assert_eq!(last.receives, 3);
        other.ack(&last.receipt).await.unwrap();
        for receipt in [&stale.receipt, &last.receipt] {
            let late = client.extend(receipt, seconds(5)).await.unwrap_err();
            assert!(matches!(late, QueueError::LeaseLost { .. }), "{late:?}");
        }
        assert_eq!(counts(&client).await, (0, 0, 0));
    }
}

/// Extend moves the end, release and a nack without delay free at once, a nack with delay later.
pub async fn extend_release_and_nack_move_the_timeout(subject: &Subject) {
    for config in both() {
        let client = queue(subject, config).await;
        send(&client, &["x"]).await;
        let held = take_one(&client).await;
        subject.clock.advance(seconds(29));
        client.extend(&held.receipt, seconds(100)).await.unwrap();
        subject.clock.advance(seconds(99));
        assert!(take(&client, 1).await.is_empty(), "extended");
        client.extend(&held.receipt, seconds(5)).await.unwrap();
        subject.clock.advance(seconds(5));
        let held = take_one(&client).await;
        assert_eq!(held.receives, 2, "shortened");
        client.release(&held.receipt).await.unwrap();
        let held = take_one(&client).await;
        assert_eq!(held.receives, 3, "released");
        client.nack(&held.receipt, Nack::default()).await.unwrap();
        let held = take_one(&client).await;
        assert_eq!(held.receives, 4, "nacked with no delay");
        let later = Nack { delay: seconds(50), error: "busy".into() };
        client.nack(&held.receipt, later).await.unwrap();
        assert_eq!(counts(&client).await, (0, 0, 1));
        subject.clock.advance(seconds(49));
        assert!(take(&client, 1).await.is_empty());
        subject.clock.advance(seconds(1));
        let held = take_one(&client).await;
        let (all, other) = ([held.receipt.clone()], Receipt::from_text("x"));
        let outcomes = client.extend_batch(&[all[0].clone(), other], seconds(9)).await.unwrap();
        assert!(outcomes[0].is_ok() && outcomes[1].is_err());
        subject.clock.advance(seconds(9));
        assert_eq!(take_one(&client).await.receives, 6);
    }
}

/// For as long as the guard lives, nobody else gets the message; it tells when the lease is lost.
pub async fn a_heartbeat_keeps_a_lease_until_it_is_dropped(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    let beating = open_in(&patient(subject), &client).await;
    send(&client, &["x"]).await;
    let held = take_one(&beating).await;
    let heartbeat = beating.heartbeat(&held.receipt, seconds(30)).unwrap();
    for _ in 0..12 {
        until_asleep(subject).await;
        subject.clock.advance(seconds(10));
        until_asleep(subject).await;
        assert!(take(&client, 1).await.is_empty(), "taken in spite of a heartbeat");
        assert!(heartbeat.lost().is_none());
    }
    drop(heartbeat);
    subject.clock.advance(seconds(30));
    let taken = take_one(&client).await;
    assert_eq!(taken.receives, 2);
    let mut lost = beating.heartbeat(&held.receipt, seconds(3)).unwrap();
    until_asleep(subject).await;
    subject.clock.advance(seconds(1));
    let error = bounded("the loss", lost.until_lost()).await;
    assert!(matches!(error, QueueError::LeaseLost { .. }), "{error:?}");
    client.ack(&taken.receipt).await.unwrap();
}

/// Waits until somebody sleeps on the test's clock.
async fn until_asleep(subject: &Subject) {
    bounded("a sleeper", async {
        while subject.clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// What is not exactly a receipt of this queue and client is refused.
pub async fn tampered_and_foreign_receipts_are_refused(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    let foreign = queue(subject, QueueConfig::default()).await;
    send(&client, &["x"]).await;
    send(&foreign, &["x"]).await;
    let good = take_one(&client).await.receipt;
    let neighbour = super::process(subject).open(client.queue().as_str()).await.unwrap();
    let neighbour = neighbour.client("other").unwrap();
    neighbour.send(Message::new("x")).await.unwrap();
    let mut bad = vec![
        String::new(),
        "nonsense".into(),
        "x".repeat(100_000),
        take_one(&foreign).await.receipt.as_str().to_owned(),
        take_one(&neighbour).await.receipt.as_str().to_owned(),
        format!("{good}A"),
    ];
    let text = good.as_str();
    bad.extend((1..text.len()).step_by(5).map(|cut| text[..cut].to_owned()));
    for at in 0..text.len() {
        let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
        bad.push(format!("{}{other}{}", &text[..at], &text[at + 1..]));
    }
    for text in bad {
        let receipt = Receipt::from_text(text);
        for outcome in [client.ack(&receipt).await, client.extend(&receipt, seconds(1)).await] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, QueueError::ReceiptInvalid { .. }), "{receipt}: {error:?}");
        }
    }
    assert_eq!(counts(&client).await, (0, 1, 0));
    let elsewhere = elsewhere(subject, &client).await;
    let kept_as_text = Receipt::from_text(good.as_str());
    assert_eq!(elsewhere.ack(&kept_as_text).await.unwrap(), Settled::Now);
}

/// Two stores have two keys: what one signed, the other refuses, though queue and client are called the same.
pub async fn there_is_no_default_signing_secret(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    send(&client, &["x"]).await;
    let receipt = take_one(&client).await.receipt;
    let secret = millpond_store::Key::new("millpond", &b"receipt-key"[..]).unwrap();
    let item = subject.get(&secret).await.expect("the key is made at first use");
    let key = item.attributes.bytes("key").unwrap().clone();
    assert_eq!(key.len(), 32);
    let distinct: std::collections::BTreeSet<u8> = key.iter().copied().collect();
    assert!(distinct.len() > 8, "not a random key: {key:?}");

    // The same queue under another key: as on another store.
    let other: Vec<u8> = key.iter().map(|byte| byte ^ 1).collect();
    let attributes = millpond_store::Attributes::new().with("key", other);
    subject.must_put(&secret, attributes, millpond_store::Expect::Any).await;
    let other = open_in(&process(subject), &client).await;
    let error = other.ack(&receipt).await.unwrap_err();
    assert!(matches!(error, QueueError::ReceiptInvalid { .. }), "{error:?}");
    subject.must_put(&secret, item.attributes, millpond_store::Expect::Any).await;
    assert_eq!(
        texts(&client.peek(1).await.unwrap().into_iter().map(|p| p.message).collect::<Vec<_>>()),
        ["x"]
    );
}
