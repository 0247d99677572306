//! What a receive costs: the same whatever waits, and whatever is on loan.

use std::sync::Arc;

use millpond_lanes::Ground;
use millpond_queue::{Client, Message, QueueConfig, Queues, Receive};
use millpond_store::{Meter, Metered};

use super::{ack_all, numbered, open_in, queue, seconds, send_all, take};
use crate::subject::Subject;

/// A client in a process of its own, whose requests are counted.
async fn metered(subject: &Subject, client: &Client) -> (Client, Meter) {
    let meter = Meter::new();
    let store = Arc::new(Metered::new(subject.store.clone(), meter.clone()));
    let queues = Queues::new(&Ground::new(store, &subject.impatient()));
    let client = open_in(&queues, client).await;
    let _ = meter.take();
    (client, meter)
}

fn of_group((message, number): (Message, usize)) -> Message {
    message.group((number % 1_000).to_string())
}

async fn fill(client: &Client, count: usize) {
    let all: Vec<Message> = numbered(count).into_iter().zip(0..).map(of_group).collect();
    for part in all.chunks(640) {
        send_all(client, part.to_vec()).await;
    }
}

/// What ten rounds of receive and ack cost a process that starts now.
async fn ten_rounds(subject: &Subject, client: &Client) -> (u64, f64) {
    let (client, meter) = metered(subject, client).await;
    for _ in 0..10 {
        let taken = take(&client, 10).await;
        assert_eq!(taken.len(), 10);
        ack_all(&client, &taken).await;
    }
    let total = meter.take().total();
    (total.requests, total.read_units + total.write_units)
}

/// Ten rounds cost the same at a backlog of 200 and of 10,000, in both orders and in strict queues.
pub async fn cost_per_receive_does_not_grow_with_the_backlog(subject: &Subject) {
    let lifo = QueueConfig { order: millpond_queue::Order::Lifo, ..QueueConfig::default() };
    for config in [QueueConfig::default(), lifo, QueueConfig::strict()] {
        let (short, long) = (queue(subject, config.clone()).await, queue(subject, config).await);
        fill(&short, 640).await;
        fill(&long, 10_240).await;
        let (few, cheap) = ten_rounds(subject, &short).await;
        let (many, dear) = ten_rounds(subject, &long).await;
        assert!(many <= few + 1, "{few} requests at 640, {many} at 10,240");
        assert!(dear <= cheap * 1.1 + 2.0, "{cheap} units at 640, {dear} at 10,240");
        assert!(many <= 35, "{many} requests for 10 receives and 10 acks");
    }
}

/// 1,000 messages on loan at the head neither delay what is behind them nor make it dearer.
pub async fn a_thousand_leased_at_the_head_cost_nothing(subject: &Subject) {
    let (calm, busy) = (
        queue(subject, QueueConfig::default()).await,
        queue(subject, QueueConfig::default()).await,
    );
    fill(&calm, 640).await;
    fill(&busy, 1_024).await;
    let ask = Receive::up_to(1_000).visibility(seconds(3_600));
    assert_eq!(busy.receive(&ask).await.unwrap().len(), 1_000);
    fill(&busy, 640).await;
    let (warm, meter) = metered(subject, &busy).await;
    let first = take(&warm, 1).await;
    assert_eq!(first.len(), 1, "delayed by what is on loan");
    let opening = meter.take().total().requests;
    assert!(opening <= 6, "{opening} requests to get past 1,000 on loan");
    let rounds = |meter: &Meter| meter.take().total().requests;
    for _ in 0..10 {
        let taken = take(&warm, 10).await;
        assert_eq!(taken.len(), 10);
        ack_all(&warm, &taken).await;
    }
    let (busy_requests, (calm_requests, _)) = (rounds(&meter), ten_rounds(subject, &calm).await);
    assert!(busy_requests <= calm_requests + 3, "{busy_requests} requests, calm {calm_requests}");
}

/// In a strict queue, groups on loan at the head neither.
pub async fn held_groups_at_the_head_cost_little(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let of = |from: usize, to: usize| {
        (from..to).map(|number| Message::new(number.to_string()).group(format!("g{number}")))
    };
    send_all(&client, of(0, 640)).await;
    let ask = Receive::up_to(640).visibility(seconds(3_600));
    let mut held = 0;
    while held < 640 {
        let taken = client.receive(&ask).await.unwrap();
        assert!(!taken.is_empty(), "only {held} of 640 groups came");
        held += taken.len();
    }
    send_all(&client, of(640, 960)).await;
    let (warm, meter) = metered(subject, &client).await;
    assert_eq!(take(&warm, 1).await.len(), 1);
    let opening = meter.take().total().requests;
    assert!(opening <= 8, "{opening} requests to get past 640 groups on loan");
    for _ in 0..10 {
        assert_eq!(take(&warm, 10).await.len(), 10);
    }
    let requests = meter.take().total().requests;
    assert!(requests <= 40, "{requests} requests for ten receives");
}
