//! Overload: the newest keep completing, the oldest are shed, and each is counted.

use std::time::Duration;

use millpond_queue::{
    Client, DelayTarget, Event, MoveReason, Order, QueueConfig, Receive, Shedding,
};

use super::{ack_all, counts, drain, numbered, queue, seconds, send, send_all, take, texts};
use crate::subject::Subject;

async fn shedding(subject: &Subject, shedding: Shedding, order: Order) -> (Client, Client) {
    let side = queue(subject, QueueConfig::default()).await;
    let side_queue = Some(side.queue().as_str().to_owned());
    let shedding = Some(Shedding { side_queue, ..shedding });
    (queue(subject, QueueConfig { shedding, order, ..QueueConfig::default() }).await, side)
}

/// Ten times what can be done, for a while: new ones keep completing in time, the rest goes to the side queue.
pub async fn under_tenfold_load_the_newest_keep_completing(subject: &Subject) {
    let rule = Shedding { age_max: Some(seconds(10)), ..Shedding::default() };
    let (client, side) = shedding(subject, rule, Order::Lifo).await;
    let (mut sent, mut done, mut young) = (0, 0, 0);
    for _ in 0..60 {
        let batch: Vec<_> = numbered(10);
        send_all(&client, batch).await;
        sent += 10;
        let now = subject.environment.now();
        let taken = take(&client, 1).await;
        assert_eq!(taken.len(), 1, "nothing to do in spite of a backlog");
        let age = now.since(taken[0].sent);
        assert!(age <= seconds(10), "delivered {age:?} after it was sent");
        young += usize::from(age <= seconds(1));
        ack_all(&client, &taken).await;
        done += 1;
        subject.clock.advance(seconds(1));
    }
    assert!(young >= 58, "only {young} of 60 were fresh");
    subject.clock.advance(seconds(11));
    assert!(take(&client, 10).await.is_empty(), "delivered after its time");
    while client.count().await.unwrap().total() > 0 {
        assert!(take(&client, 10).await.is_empty());
        client.maintain().await.unwrap();
    }
    let totals = client.totals().await.unwrap();
    assert_eq!(totals.of(Event::ShedAge), sent - done, "each is counted");
    let shed = drain(&side).await;
    assert_eq!(shed.len() as u64, sent - done, "and in the side queue");
    let reasons = shed.iter().map(|delivery| delivery.origin.as_ref().unwrap().reason);
    assert!(reasons.into_iter().all(|reason| reason == MoveReason::ShedAge));
}

/// When too many wait, the oldest go first, down to the limit.
pub async fn too_many_waiting_are_shed_oldest_first(subject: &Subject) {
    let rule = Shedding { depth_max: Some(100), ..Shedding::default() };
    let (client, side) = shedding(subject, rule, Order::Fifo).await;
    for part in numbered(250).chunks(50) {
        send_all(&client, part.to_vec()).await;
        subject.clock.advance(Duration::from_millis(1));
    }
    client.maintain().await.unwrap();
    assert_eq!(counts(&client).await, (100, 0, 0));
    assert_eq!(client.totals().await.unwrap().of(Event::ShedDepth), 150);
    let kept: Vec<String> = (150..250).map(|number| number.to_string()).collect();
    assert_eq!(texts(&drain(&client).await), kept);
    let shed: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    assert_eq!(texts(&drain(&side).await), shed);
    client.maintain().await.unwrap();
    assert_eq!(client.totals().await.unwrap().of(Event::ShedDepth), 150);
}

/// While a backlog stands, what waits for longer than the target goes; a burst that is soon done does not.
pub async fn a_standing_backlog_is_shed_and_a_burst_is_not(subject: &Subject) {
    let delay = Some(DelayTarget { target: seconds(5), interval: seconds(20) });
    let (client, side) =
        shedding(subject, Shedding { delay, ..Shedding::default() }, Order::Fifo).await;
    send_all(&client, numbered(10)).await;
    for _ in 0..10 {
        subject.clock.advance(seconds(1));
        assert_eq!(drain_one(&client).await, 1, "a burst is worked off");
    }
    assert_eq!(client.totals().await.unwrap().of(Event::ShedDelay), 0);
    for round in 0..40 {
        send(&client, &[&format!("a{round}"), &format!("b{round}")]).await;
        assert_eq!(drain_one(&client).await, 1);
        subject.clock.advance(seconds(1));
    }
    let shed = client.totals().await.unwrap().of(Event::ShedDelay);
    assert!(shed > 0, "a backlog stands and nothing is shed");
    assert_eq!(drain(&side).await.len() as u64, shed);
    let left = client.count().await.unwrap();
    assert_eq!(left.total() + shed + 40, 80, "each is done, shed or there");
    // It grows to the target, and is shed an interval later.
    assert!(left.oldest_age.unwrap() <= seconds(26), "{left:?}");
}

async fn drain_one(client: &Client) -> usize {
    let taken = client.receive(&Receive::up_to(1)).await.unwrap();
    ack_all(client, &taken).await;
    taken.len()
}

/// What is on loan is never shed, and without a side queue what is shed is gone, counted.
pub async fn what_is_on_loan_is_not_shed(subject: &Subject) {
    let shedding = Shedding { age_max: Some(seconds(10)), ..Shedding::default() };
    let config = QueueConfig { shedding: Some(shedding), ..QueueConfig::default() };
    let client = queue(subject, config).await;
    send_all(&client, numbered(5)).await;
    let ask = Receive::up_to(2).visibility(seconds(60));
    let held = client.receive(&ask).await.unwrap();
    subject.clock.advance(seconds(11));
    assert!(take(&client, 5).await.is_empty());
    client.maintain().await.unwrap();
    assert_eq!(client.totals().await.unwrap().of(Event::ShedAge), 3);
    ack_all(&client, &held).await;
    assert_eq!(counts(&client).await, (0, 0, 0));
}
