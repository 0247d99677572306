//! Receives that wait.

use millpond_queue::{Client, Message, Nack, QueueConfig, Receive};

use super::{elsewhere, open_in, patient, queue, seconds, send, take, take_one, texts};
use crate::subject::{Subject, bounded};

async fn patient_queue(subject: &Subject, config: QueueConfig) -> (Client, Client) {
    let sender = queue(subject, config).await;
    let waiter = open_in(&patient(subject), &sender).await;
    (sender, waiter)
}

fn waiting(client: &Client, ask: Receive) -> tokio::task::JoinHandle<Vec<String>> {
    let client = client.clone();
    tokio::spawn(async move { texts(&client.receive(&ask).await.unwrap()) })
}

/// Waits until so many sleep on the test's clock.
async fn until_asleep(subject: &Subject, count: usize) {
    bounded("a sleeper", async {
        while subject.clock.sleepers() < count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A waiting receive is woken by a send, with no time passing; also by one of another process.
pub async fn a_long_poll_is_woken_by_a_send(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let (sender, waiter) = patient_queue(subject, config).await;
        for round in 0..3 {
            let sleeping = subject.clock.sleepers();
            let answer = waiting(&waiter, Receive::up_to(5).wait(seconds(20)));
            until_asleep(subject, sleeping + 1).await;
            let from = if round == 1 { elsewhere(subject, &sender).await } else { sender.clone() };
            send(&from, &["wake up"]).await;
            assert_eq!(bounded("the waiter", answer).await.unwrap(), ["wake up"]);
            sender.purge().await.unwrap();
            subject.clock.advance(seconds(20));
        }
    }
}

/// The wait ends when it is over, with nothing; with messages there, it does not begin.
pub async fn a_wait_ends_in_time_and_messages_need_none(subject: &Subject) {
    let (sender, waiter) = patient_queue(subject, QueueConfig::default()).await;
    let answer = waiting(&waiter, Receive::up_to(5).wait(seconds(20)));
    until_asleep(subject, 1).await;
    subject.clock.advance(seconds(19));
    tokio::task::yield_now().await;
    assert!(!answer.is_finished());
    bounded("the end of the wait", async {
        while !answer.is_finished() {
            subject.clock.advance(seconds(1));
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(answer.await.unwrap().is_empty());
    send(&sender, &["there"]).await;
    let answer = waiting(&waiter, Receive::up_to(5).wait(seconds(20)));
    assert_eq!(bounded("no wait", answer).await.unwrap(), ["there"]);
}

/// What becomes free while a receive waits is received: a lapsed lease, a delayed message, one given back.
pub async fn a_waiting_receive_gets_what_becomes_free(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let (sender, waiter) = patient_queue(subject, config).await;
        send(&sender, &["x"]).await;
        take_one(&waiter).await;
        let answer = waiting(&waiter, Receive::up_to(5).wait(seconds(60)));
        until_asleep(subject, 1).await;
        subject.clock.advance(seconds(30));
        assert_eq!(bounded("the lapsed lease", answer).await.unwrap(), ["x"]);
        sender.purge().await.unwrap();

        sender.send(Message::new("due").group("g").delay(seconds(10))).await.unwrap();
        let sleeping = subject.clock.sleepers();
        let answer = waiting(&waiter, Receive::up_to(1).wait(seconds(60)));
        until_asleep(subject, sleeping + 1).await;
        subject.clock.advance(seconds(10));
        assert_eq!(bounded("the delayed message", answer).await.unwrap(), ["due"]);
        // It is not done, and free again in half a minute. It is given back early.
        subject.clock.advance(seconds(60));
        let held = take(&waiter, 5).await;
        assert_eq!(held.len(), 1);
        let answer = waiting(&waiter, Receive::up_to(5).wait(seconds(20)));
        until_asleep(subject, 1).await;
        waiter.nack(&held[0].receipt, Nack::default()).await.unwrap();
        assert_eq!(bounded("the one given back", answer).await.unwrap().len(), 1);
    }
}

/// A receive that is dropped while it waits takes nothing with it, and the next one is served.
pub async fn cancelling_ends_a_wait_and_loses_nothing(subject: &Subject) {
    let (sender, waiter) = patient_queue(subject, QueueConfig::default()).await;
    let cancelled = waiting(&waiter, Receive::up_to(5).wait(seconds(3_000)));
    until_asleep(subject, 1).await;
    let behind = waiting(&waiter, Receive::up_to(5).wait(seconds(3_000)));
    until_asleep(subject, 2).await;
    cancelled.abort();
    assert!(bounded("the cancelled one", cancelled).await.unwrap_err().is_cancelled());
    send(&sender, &["x"]).await;
    assert_eq!(bounded("the one behind", behind).await.unwrap(), ["x"]);
}

/// A receive that wants at least 3 waits for them, and hands out what it has when the wait is over.
pub async fn a_wait_for_a_minimum_gathers_messages(subject: &Subject) {
    let (sender, waiter) = patient_queue(subject, QueueConfig::default()).await;
    let ask = Receive { min: 3, ..Receive::up_to(3).wait(seconds(20)) };
    let ask = ask.visibility(seconds(3_600));
    let answer = waiting(&waiter, ask.clone());
    for text in ["1", "2", "3"] {
        send(&sender, &[text]).await;
        subject.clock.advance(std::time::Duration::from_millis(1));
    }
    assert_eq!(bounded("three messages", answer).await.unwrap(), ["1", "2", "3"]);
    sender.purge().await.unwrap();
    send(&sender, &["4"]).await;
    let sleeping = subject.clock.sleepers();
    let answer = waiting(&waiter, ask);
    until_asleep(subject, sleeping + 1).await;
    subject.clock.advance(seconds(20));
    assert_eq!(bounded("the end of the wait", answer).await.unwrap(), ["4"]);
}
