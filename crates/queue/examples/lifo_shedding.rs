//! Newest first, and what is too old is dropped: for work that is only of use while it is fresh.
//!
//! `cargo run -p millpond-queue --example lifo_shedding`

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{Event, Message, Order, QueueConfig, QueueError, Queues, Receive, Shedding};
use millpond_store::{Environment, MemoryStore};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), QueueError> {
    let environment = Environment::system();
    // For data that is to last, open `millpond_embedded::EmbeddedStore` or `millpond_dynamodb::DynamoDbStore` instead.
    let store = Arc::new(MemoryStore::new(&environment));
    let queues = Queues::new(&Ground::new(store, &environment));

    let shedding = Shedding { age_max: Some(Duration::from_millis(300)), ..Shedding::default() };
    let config =
        QueueConfig { order: Order::Lifo, shedding: Some(shedding), ..QueueConfig::default() };
    let quotes = queues.create("quotes", config).await?.main()?;

    for n in 1..=3 {
        quotes.send(Message::new(format!("quote {n}"))).await?;
    }
    let first = quotes.receive(&Receive::default()).await?;
    for message in &first {
        println!("the newest first: {:?}", message.text_lossy());
        quotes.ack(&message.receipt).await?;
    }
    environment.clock.sleep(Duration::from_millis(400)).await;
    quotes.send(Message::new("quote 4")).await?;
    for message in quotes.receive(&Receive::up_to(10)).await? {
        println!("fresh enough: {:?}", message.text_lossy());
        quotes.ack(&message.receipt).await?;
    }
    println!("dropped for their age: {}", quotes.totals().await?.of(Event::ShedAge));
    Ok(())
}
