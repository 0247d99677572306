//! A strict queue: order within each group, groups side by side, and what is sent twice is sent once.
//!
//! `cargo run -p millpond-queue --example groups`

use std::sync::Arc;

use millpond_lanes::Ground;
use millpond_queue::{Message, QueueConfig, QueueError, Queues, Receive};
use millpond_store::{Environment, MemoryStore};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), QueueError> {
    let environment = Environment::system();
    // For data that is to last, open `millpond_embedded::EmbeddedStore` or `millpond_dynamodb::DynamoDbStore` instead.
    let store = Arc::new(MemoryStore::new(&environment));
    let queues = Queues::new(&Ground::new(store, &environment));

    let moves = queues.create("account-moves", QueueConfig::strict()).await?.main()?;
    for n in 1..=3 {
        for account in ["anna", "bert"] {
            let message = Message::new(format!("move {n} of {account}")).group(account);
            moves.send(message.dedup_id(format!("{account}-{n}"))).await?;
        }
    }
    let again = Message::new("move 1 of anna").group("anna").dedup_id("anna-1");
    println!("sent again: duplicate = {}", moves.send(again).await?.duplicate);

    // One message is on loan: its group waits, the other does not.
    let held = moves.receive(&Receive::up_to(1)).await?;
    for message in &held {
        println!("on loan: {:?}", message.text_lossy());
    }
    for message in moves.receive(&Receive::up_to(10)).await? {
        println!("meanwhile: {:?}", message.text_lossy());
        moves.ack(&message.receipt).await?;
    }
    for message in held {
        moves.ack(&message.receipt).await?;
    }
    for message in moves.receive(&Receive::up_to(10)).await? {
        println!("then: {:?}", message.text_lossy());
        moves.ack(&message.receipt).await?;
    }
    Ok(())
}
