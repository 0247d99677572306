//! Many messages on loan.

use std::sync::Arc;

use millpond_lanes::Ground;
use millpond_queue::{Message, QueueConfig, Queues, Receive};
use millpond_store::{Environment, MemoryStore, Timestamp, VirtualClock};

#[tokio::test]
async fn ten_thousand_segments_on_loan_do_not_hide_what_is_behind_them() {
    let environment =
        Environment::simulated(VirtualClock::new(Timestamp::from_millis(1_800_000_000_000)), 3);
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    let queues = Queues::new(&ground);
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    for n in 0..10_000 {
        client.send(Message::new(format!("{n}"))).await.unwrap();
    }
    let mut held = 0;
    while held < 9_999 {
        held += client.receive(&Receive::up_to(1_000.min(9_999 - held))).await.unwrap().len();
    }
    // A consumer that has just begun, and one that is running.
    let fresh = Queues::new(&ground).open("q").await.unwrap().main().unwrap();
    let got = fresh.receive(&Receive::default()).await.unwrap();
    assert_eq!(got[0].text(), Some("9999"));
    fresh.release(&got[0].receipt).await.unwrap();
    assert_eq!(client.receive(&Receive::default()).await.unwrap().len(), 1);
}
