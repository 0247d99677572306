//! Clocks that jump.

use millpond_queue::{Message, QueueConfig};

use super::{ack_all, elsewhere, queue, seconds, send, take, take_one, texts};
use crate::subject::Subject;

/// Forward by an hour: leases that a process has given or seen are not cut short, and end in time all the same.
pub async fn a_jump_forward_ends_no_lease_early(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        send(&client, &["x"]).await;
        let held = take_one(&client).await;
        assert!(take(&other, 1).await.is_empty());
        subject.clock.set_wall(subject.environment.now().plus(seconds(3_600)));
        for _ in 0..25 {
            assert!(take(&client, 1).await.is_empty() && take(&other, 1).await.is_empty());
            subject.clock.advance(seconds(1));
        }
        client.extend(&held.receipt, seconds(30)).await.unwrap();
        subject.clock.advance(seconds(25));
        assert!(take(&client, 1).await.is_empty(), "extended");
        subject.clock.advance(seconds(10));
        assert_eq!(texts(&take(&client, 1).await), ["x"], "it ends in time");
    }
}

/// Back by an hour: nothing is stuck for that hour, and what is sent meanwhile is received.
pub async fn a_jump_back_loses_and_blocks_nothing(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, config).await;
        let other = elsewhere(subject, &client).await;
        send(&client, &["before"]).await;
        take_one(&client).await;
        subject.clock.set_wall(subject.environment.now().minus(seconds(3_600)));
        assert!(take(&client, 1).await.is_empty() && take(&other, 1).await.is_empty());
        client.send(Message::new("behind").group("h")).await.unwrap();
        client.send(Message::new("other group").group("g")).await.unwrap();
        let mut seen = texts(&take(&client, 5).await);
        subject.clock.advance(seconds(35));
        seen.extend(texts(&take(&client, 5).await));
        for text in ["before", "behind", "other group"] {
            assert!(seen.contains(&text.to_owned()), "{text} is stuck: {seen:?}");
        }
        subject.clock.advance(seconds(100));
        let late = take(&other, 5).await;
        assert_eq!(late.len(), 3, "another process sees them too");
        ack_all(&other, &late).await;
    }
}

/// Clocks of two processes that differ by seconds: no message is leased to both, none is lost.
pub async fn processes_with_different_clocks_lose_nothing(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    let start = subject.environment.now();
    subject.clock.set_wall(start.plus(seconds(4)));
    let ahead = elsewhere(subject, &client).await;
    subject.clock.set_wall(start.minus(seconds(4)));
    let behind = elsewhere(subject, &client).await;
    let mut seen = Vec::new();
    for round in 0..20 {
        let skew = seconds(8 * (round % 2));
        subject.clock.set_wall(start.minus(seconds(4)).plus(skew));
        let (sender, receiver) = if round % 2 == 0 { (&behind, &ahead) } else { (&ahead, &behind) };
        send(sender, &[&format!("{round:02}")]).await;
        let taken = take(receiver, 5).await;
        ack_all(receiver, &taken).await;
        seen.extend(texts(&taken));
        subject.clock.advance(seconds(1));
    }
    subject.clock.set_wall(start);
    for _ in 0..3 {
        subject.clock.advance(seconds(61));
        for process in [&client, &ahead, &behind] {
            let taken = take(process, 50).await;
            ack_all(process, &taken).await;
            seen.extend(texts(&taken));
        }
    }
    seen.sort();
    let sent: Vec<String> = (0..20).map(|round| format!("{round:02}")).collect();
    assert_eq!(seen, sent);
}
