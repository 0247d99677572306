//! A Kinesis batch, with a record that cannot be read, a message that is rejected and one that fails for a while. Runs
//! without AWS, on the embedded engine: `cargo run -p millpond-consumer --example stream`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millpond_consumer::{Consumer, MemorySink, Message, Outcome, StoreState};
use millpond_embedded::{EmbeddedStore, Options};
use millpond_store::Environment;
use serde_json::json;

/// What the function does with an order.
async fn charge(message: Message) -> Outcome {
    let Some(amount) = message.value().and_then(|order| order["amount"].as_i64()) else {
        return Outcome::reject("the order has no amount");
    };
    // A step that is done is not done again when a later one fails.
    let reserved = message.step("reserve", async {
        println!("  reserving {amount}, with key {}…", &message.idempotency_key()[..8]);
        Ok::<(), String>(())
    });
    if let Err(error) = reserved.await {
        return Outcome::retry(error);
    }
    if amount > 100 && message.attempt() < 3 {
        return Outcome::retry(format!("the bank is busy (attempt {})", message.attempt()));
    }
    println!("  charged {amount}");
    Outcome::Done
}

fn record(sequence: u64, key: &str, data: &str) -> serde_json::Value {
    json!({
        "eventSource": "aws:kinesis",
        "eventID": format!("shardId-000000000000:{sequence}"),
        "eventSourceARN": "arn:aws:kinesis:eu-central-1:111122223333:stream/orders",
        "kinesis": {
            "partitionKey": key, "sequenceNumber": sequence.to_string(), "data": STANDARD.encode(data),
        },
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::system();
    let store = EmbeddedStore::open(Options::new(directory.path()), &environment).await?;
    let dead = MemorySink::new();
    let consumer = Consumer::builder("billing")
        .state(StoreState::new(Arc::new(store), &environment))
        .dead_letters(dead.clone())
        .one("charge", charge)
        .attempts(5)
        .build()?;

    let mut records = vec![
        record(1, "anna", r#"{"amount": 20}"#),
        record(2, "ben", r#"{"amount": 500}"#),
        record(3, "anna", r#"{"price": 3}"#),
        record(4, "carl", "not json"),
        record(5, "ben", r#"{"amount": 7}"#),
    ];
    // What the source does: deliver from the lowest unfinished record on, until all is finished.
    for delivery in 1.. {
        println!("delivery {delivery} of {} records", records.len());
        let event = json!({ "Records": records }).to_string();
        let deadline = environment.now().plus(Duration::from_secs(10));
        let (response, report) = consumer.handle(event.as_bytes(), deadline).await?;
        println!(
            "  {} finished, {} not: {}",
            report.finished,
            report.unfinished,
            String::from_utf8_lossy(&response)
        );
        let response: serde_json::Value = serde_json::from_slice(&response)?;
        let lowest = response.pointer("/batchItemFailures/0/itemIdentifier");
        let Some(lowest) = lowest.and_then(serde_json::Value::as_str) else { break };
        records.retain(|record| {
            let sequence = record.pointer("/kinesis/sequenceNumber");
            sequence.and_then(serde_json::Value::as_str) >= Some(lowest)
        });
    }
    for letter in dead.letters() {
        let record = letter.record.as_deref().unwrap_or("a record");
        println!("dead: {record} was {}: {}", letter.reason, letter.detail);
    }
    Ok(())
}
