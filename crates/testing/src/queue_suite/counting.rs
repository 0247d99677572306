//! Counts are exact when nothing moves; totals say what became of every message.

use std::time::Duration;

use millpond_queue::{Event, Message, Nack, QueueConfig, Receive};

use super::{ack_all, elsewhere, numbered, process, queue, seconds, send_all, take};
use crate::subject::Subject;

/// Available, on loan, delayed and the oldest age, at 0, 10 and 3,000 messages.
pub async fn count_is_exact_when_quiet_at_any_size(subject: &Subject) {
    for config in [
        QueueConfig::default(),
        QueueConfig::strict(),
        QueueConfig { lanes: 3, priorities: 2, ..QueueConfig::default() },
    ] {
        let client = queue(subject, config).await;
        let count = client.count().await.unwrap();
        assert_eq!((count.total(), count.oldest_age), (0, None));
        let mut available = 0;
        for size in [10_usize, 3_000] {
            let batch = numbered(size).into_iter().zip(available..);
            let batch = batch.map(|(message, group)| message.group(group.to_string()));
            send_all(&client, batch).await;
            available += size;
            let count = elsewhere(subject, &client).await.count().await.unwrap();
            assert_eq!((count.available, count.total()), (available as u64, available as u64));
        }
        let mut held = Vec::new();
        while held.len() < 100 {
            held.extend(take(&client, 100 - held.len()).await);
        }
        let later = (0..7).map(|_| Message::new("later").delay(seconds(600)));
        send_all(&client, later).await;
        subject.clock.advance(seconds(12));
        let count = client.count().await.unwrap();
        assert_eq!((count.available, count.leased, count.delayed), (2_910, 100, 7));
        assert_eq!(count.oldest_age, Some(seconds(12)));
        ack_all(&client, &held[..60]).await;
        client
            .nack(&held[60].receipt, Nack { delay: seconds(60), ..Nack::default() })
            .await
            .unwrap();
        client.release(&held[61].receipt).await.unwrap();
        let count = client.count().await.unwrap();
        assert_eq!((count.available, count.leased, count.delayed), (2_911, 38, 8));
        subject.clock.advance(seconds(18));
        let count = client.count().await.unwrap();
        assert_eq!((count.available, count.leased, count.delayed), (2_949, 0, 8), "lapsed");
    }
}

/// Everything that happens is counted, in all processes together, also by those that have gone.
pub async fn totals_add_up_over_processes(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    for round in 0..4 {
        let process = elsewhere(subject, &client).await;
        send_all(&process, numbered(10)).await;
        let taken = take(&process, 5).await;
        ack_all(&process, &taken[..2]).await;
        process.fail(&taken[2].receipt, "no").await.unwrap();
        process.nack(&taken[3].receipt, Nack::default()).await.unwrap();
        process.release(&taken[4].receipt).await.unwrap();
        process.maintain().await.unwrap();
        process.maintain().await.unwrap();
        let totals = client.totals().await.unwrap();
        let rounds = round + 1;
        assert_eq!(totals.of(Event::Sent), 10 * rounds);
        assert_eq!(totals.of(Event::Received), 5 * rounds);
        assert_eq!(totals.of(Event::Acked), 2 * rounds);
        assert_eq!(totals.of(Event::Failed), rounds);
        assert_eq!(totals.of(Event::Nacked), rounds);
        assert_eq!(totals.of(Event::Released), rounds);
    }
}

/// A handle that lives for one call only: what it did is counted all the same.
pub async fn what_a_short_lived_handle_did_is_counted(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    let queues = process(subject);
    for number in 0..5 {
        let handle = queues.open(client.queue().as_str()).await.unwrap();
        handle.main().unwrap().send(Message::new(number.to_string())).await.unwrap();
        drop(handle);
    }
    let counted = super::open_in(&queues, &client).await;
    counted.maintain().await.unwrap();
    assert_eq!(counted.totals().await.unwrap().of(Event::Sent), 5);
}

/// What another process gives back is soon seen, also by one that knew it to be on loan.
pub async fn what_another_process_gives_back_is_soon_seen(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        send_all(&client, numbered(3)).await;
        let ask = Receive::up_to(3).visibility(seconds(3_600));
        let held = client.receive(&ask).await.unwrap();
        subject.clock.advance(seconds(10));
        assert!(take(&other, 5).await.is_empty());
        for delivery in &held {
            client.release(&delivery.receipt).await.unwrap();
        }
        let mut waited = Duration::ZERO;
        while take(&other, 5).await.is_empty() {
            waited += seconds(1);
            assert!(waited <= seconds(6), "not seen for {waited:?}");
            subject.clock.advance(seconds(1));
        }
    }
}
