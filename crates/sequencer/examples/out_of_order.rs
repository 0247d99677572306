//! Out of order in, in order out: three producers put the events of two customers as they come, each event twice, and
//! a consumer gets them in order, once.
//!
//! ```sh
//! cargo run -p millpond-sequencer --example out_of_order
//! ```

use std::sync::Arc;

use millpond_sequencer::{Config, Event, From, JsonFeed, Sequencer, SequencerError};
use millpond_store::{Environment, MemoryStore};

const EVENTS: u64 = 12;

#[tokio::main]
async fn main() -> Result<(), SequencerError> {
    let environment = Environment::system();
    let store = Arc::new(MemoryStore::new(&environment));
    let sequencer = Sequencer::open(store, &environment, "orders", Config::default())?;
    let mut subscription = sequencer.subscribe("anna", From::Start).await?;

    // Events say themselves where they belong.
    let feed = JsonFeed::new("customer", "version");
    let producers = (0..3).map(|producer| {
        let (sequencer, feed, rng) = (sequencer.clone(), feed.clone(), environment.rng.clone());
        tokio::spawn(async move {
            let mut versions: Vec<u64> = (0..EVENTS).filter(|n| n % 3 != producer).collect();
            while !versions.is_empty() {
                let chance = usize::try_from(rng.below(versions.len() as u64)).unwrap_or(0);
                let version = versions.swap_remove(chance);
                for customer in ["anna", "ben"] {
                    let json = format!(r#"{{"customer":"{customer}","version":{version}}}"#);
                    let entry = feed.entry(json)?;
                    let put = sequencer.put(entry.queue.as_str(), entry.seq, entry.message).await?;
                    match put.advanced {
                        Some(passed) => println!("{customer} {version:2} → passed {passed}"),
                        None => {
                            println!("{customer} {version:2} → {:?}, nothing passed", put.arrival);
                        }
                    }
                }
            }
            Ok::<(), SequencerError>(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await.expect("a producer does not panic")?;
    }

    let mut next = 0;
    while next < EVENTS {
        let told = subscription.next().await?;
        if let Event::Advanced(passed) = told.event {
            for event in sequencer.read("anna", passed.numbers()).await?.messages() {
                assert_eq!(event.seq, next, "in order, and once");
                println!("got {}", String::from_utf8_lossy(&event.message.payload));
                next += 1;
            }
        }
    }
    Ok(())
}
