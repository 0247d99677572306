//! A basic queue: send, receive, acknowledge, and what happens when nobody acknowledges.
//!
//! `cargo run -p millpond-queue --example basic`

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{Message, QueueConfig, QueueError, Queues, Receive};
use millpond_store::{Environment, MemoryStore};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), QueueError> {
    let environment = Environment::system();
    // For data that is to last, open `millpond_embedded::EmbeddedStore` or `millpond_dynamodb::DynamoDbStore` instead.
    let store = Arc::new(MemoryStore::new(&environment));
    let queues = Queues::new(&Ground::new(store, &environment));

    let config = QueueConfig { visibility: Duration::from_millis(200), ..QueueConfig::default() };
    let jobs = queues.create("jobs", config).await?.main()?;

    let batch = (1..=3).map(|n| Message::new(format!("job {n}"))).collect();
    for sent in jobs.send_batch(batch).await? {
        println!("sent {}", sent?.id);
    }
    let got = jobs.receive(&Receive::up_to(3)).await?;
    for message in &got {
        println!("received {:?}, for the {}. time", message.text_lossy(), message.receives);
    }
    // The first two are done; the third is forgotten, and comes back when its loan ends.
    for message in got.iter().take(2) {
        jobs.ack(&message.receipt).await?;
    }
    println!("waiting for what was not acknowledged: {:?}", jobs.count().await?);
    for message in jobs.receive(&Receive::up_to(3).wait(Duration::from_secs(5))).await? {
        println!("received {:?}, for the {}. time", message.text_lossy(), message.receives);
        jobs.ack(&message.receipt).await?;
    }
    println!("left: {}", jobs.count().await?.total());
    Ok(())
}
