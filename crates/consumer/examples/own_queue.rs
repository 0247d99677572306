//! The same consumer over a Millpond queue, with dead letters in another, looked at and brought back:
//! `cargo run -p millpond-consumer --example own_queue`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use millpond_consumer::redrive::{ToQueue, Which, list_queue, redrive_queue};
use millpond_consumer::sink::QueueSink;
use millpond_consumer::{Consumer, Message, Outcome, QueueSource, StoreState};
use millpond_lanes::Ground;
use millpond_queue::{Message as NewMessage, QueueConfig, Queues};
use millpond_store::{Environment, MemoryStore, Store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let environment = Environment::system();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(&environment));
    let queues = Queues::new(&Ground::new(Arc::clone(&store), &environment));
    let orders = queues.create("orders", QueueConfig::default()).await?.main()?;
    let dead = queues.create("dead-orders", QueueConfig::default()).await?.main()?;
    for body in [r#"{"item": "chair"}"#, r#"{"item": "dragon"}"#, r#"{"item": "table"}"#] {
        orders.send(NewMessage::new(body)).await?;
    }

    let build = |accepts_dragons: bool| {
        Consumer::builder("warehouse")
            .state(StoreState::new(Arc::clone(&store), &environment))
            .one("pick", move |message: Message| async move {
                let item =
                    message.value().map(|order| order["item"].to_string()).unwrap_or_default();
                if item == "\"dragon\"" && !accepts_dragons {
                    return Outcome::reject("we have no dragons");
                }
                println!("picked {item}");
                Outcome::Done
            })
            .dead_letters(QueueSink::new(dead.clone()))
            .build()
    };
    let minute = environment.now().plus(Duration::from_secs(60));
    let run = QueueSource::new(build(false)?, orders.clone()).run_until(minute).await?;
    println!("{} finished, {} of them dead", run.finished, run.dead);

    for letter in list_queue(&dead, &Which::default(), 10).await? {
        let letter = letter?;
        println!("dead: {} ({})", String::from_utf8_lossy(&letter.payload()?), letter.detail);
    }
    // Once there are dragons, what was dead is brought back.
    let redriven =
        redrive_queue(&dead, &ToQueue(orders.clone()), &Which::default(), None, 10).await?;
    println!("brought back: {}", redriven.sent);
    QueueSource::new(build(true)?, orders).run_until(minute).await?;
    Ok(())
}
