//! Per-client queues: one queue, many clients that never see each other's messages.
//!
//! `cargo run -p millpond-queue --example clients`

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

    let mail = queues.create("mail", QueueConfig::default()).await?;
    for customer in ["anna", "bert", "chris"] {
        let client = mail.client(customer)?;
        for n in 1..=2 {
            client.send(Message::new(format!("letter {n} for {customer}"))).await?;
        }
    }
    for id in mail.clients().await? {
        let client = mail.client(id.as_str())?;
        for message in client.receive(&Receive::up_to(10)).await? {
            println!("{id} received {:?}", message.text_lossy());
            client.ack(&message.receipt).await?;
        }
    }
    Ok(())
}
