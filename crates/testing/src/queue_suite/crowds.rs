//! Many writers and many consumers at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use millpond_queue::{Client, Message, QueueConfig, Receive};

use super::{ack_all, counts, drain, elsewhere, numbered, queue, seconds, send_all, take, texts};
use crate::subject::{Subject, bounded};

/// 5 writers × 20, each a process of its own, lose nothing.
pub async fn five_writers_of_20_lose_nothing(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, config).await;
        let mut writers = Vec::new();
        for writer in 0..5 {
            let client = elsewhere(subject, &client).await;
            writers.push(tokio::spawn(async move {
                for number in 0..20 {
                    let text = format!("{writer}:{number:02}");
                    client.send(Message::new(text)).await.unwrap();
                }
            }));
        }
        for writer in bounded("the writers", join_all(writers)).await {
            writer.unwrap();
        }
        assert_eq!(counts(&client).await, (100, 0, 0));
        let mut received = texts(&drain(&client).await);
        received.sort();
        let sent: Vec<String> =
            (0..5).flat_map(|w| (0..20).map(move |n| format!("{w}:{n:02}"))).collect();
        assert_eq!(received, sent);
    }
}

/// 20 consumers in 4 processes on 2,000 messages: each message to exactly one.
pub async fn twenty_consumers_share_2000_messages(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    for part in numbered(2_000).chunks(250) {
        send_all(&client, part.to_vec()).await;
    }
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(elsewhere(subject, &client).await);
    }
    let seen = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let consumers = (0..20).map(|number| {
        let (client, seen) = (processes[number % 4].clone(), Arc::clone(&seen));
        tokio::spawn(async move { consume(&client, 10, &seen).await })
    });
    for consumer in bounded("the consumers", join_all(consumers)).await {
        consumer.unwrap();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.len(), 2_000);
    assert!(seen.values().all(|count| *count == 1), "a message went to two consumers");
    assert_eq!(counts(&client).await, (0, 0, 0));
}

async fn consume(client: &Client, max: usize, seen: &Mutex<BTreeMap<String, usize>>) {
    loop {
        let taken = client.receive(&Receive::up_to(max)).await.unwrap();
        if taken.is_empty() {
            // Others may still hold messages; they are theirs.
            return;
        }
        for text in texts(&taken) {
            *seen.lock().unwrap().entry(text).or_default() += 1;
        }
        ack_all(client, &taken).await;
    }
}

/// A consumer dies with messages: all of them come again, to another process.
pub async fn what_a_dead_consumer_held_is_redelivered(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let strict = config.strict.is_some();
        let client = queue(subject, config).await;
        send_all(&client, numbered(100)).await;
        let doomed = elsewhere(subject, &client).await;
        let mut held = take(&doomed, 64).await;
        held.extend(take(&doomed, 6).await);
        let lost = held.len();
        assert!(lost == 70 || (strict && lost == 64), "{lost} messages");
        drop(doomed);
        let survivor = elsewhere(subject, &client).await;
        subject.clock.advance(seconds(29));
        let free = take(&survivor, 100).await;
        assert!(free.len() + lost <= 100, "messages on loan were handed out");
        ack_all(&survivor, &free).await;
        subject.clock.advance(seconds(1));
        let mut again = Vec::new();
        for _ in 0..5 {
            let taken = take(&survivor, 100).await;
            ack_all(&survivor, &taken).await;
            again.extend(taken);
        }
        let mut received = texts(&again);
        received.extend(texts(&free));
        received.sort_by_key(|text| text.parse::<u32>().unwrap());
        assert_eq!(received, texts_of(100), "lost, or delivered twice");
        let counted = again.iter().filter(|delivery| delivery.receives == 2).count();
        assert_eq!(counted, lost, "each of them once more");
    }
}

fn texts_of(count: u32) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// Crowds on both sides at the same time, over two lanes.
pub async fn senders_and_consumers_at_once_lose_nothing(subject: &Subject) {
    let client = queue(subject, QueueConfig { lanes: 2, ..QueueConfig::default() }).await;
    let seen = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let mut work = Vec::new();
    for writer in 0..3 {
        let client = elsewhere(subject, &client).await;
        work.push(tokio::spawn(async move {
            for number in 0..40 {
                client.send(Message::new(format!("{writer}:{number}"))).await.unwrap();
            }
        }));
    }
    for _ in 0..3 {
        let (client, seen) = (elsewhere(subject, &client).await, Arc::clone(&seen));
        work.push(tokio::spawn(async move {
            for _ in 0..30 {
                consume(&client, 3, &seen).await;
                tokio::task::yield_now().await;
            }
        }));
    }
    for task in bounded("the crowd", join_all(work)).await {
        task.unwrap();
    }
    consume(&client, 100, &seen).await;
    subject.clock.advance(seconds(61));
    consume(&client, 100, &seen).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 120);
    assert!(seen.values().all(|count| *count == 1), "a message went to two consumers");
}
