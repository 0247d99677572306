//! Replays a partition from a time on, without a group, and moves a group back to that time.
//!
//! ```sh
//! cargo run -p millpond-log --example replay_from_a_time
//! ```

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_log::{GroupConfig, Log, NewRecord, Seek, TopicConfig};
use millpond_store::{Environment, MemoryStore, VirtualClock};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A clock of our own, so that an hour passes at once.
    let clock = VirtualClock::new(Environment::system().now());
    let environment = Environment::simulated(clock.clone(), 1);
    let log = Log::new(&Ground::new(Arc::new(MemoryStore::new(&environment)), &environment));
    let readings = log.create("readings", TopicConfig::with_partitions(1)).await?;
    for minute in 0..60 {
        readings.append(NewRecord::new(format!("reading of minute {minute}"))).await?;
        clock.advance(Duration::from_secs(60));
    }

    let since = environment.now().minus(Duration::from_secs(10 * 60));
    let from = readings.seek(0, Seek::Time(since)).await?;
    let batch = readings.read(0, from, 1_000).await?;
    println!("the last ten minutes begin at offset {from}: {} records", batch.records.len());
    for record in &batch.records {
        println!("  {:>3}  {}", record.offset, String::from_utf8_lossy(&record.payload));
    }
    assert_eq!((batch.records.len(), batch.more), (10, false));

    readings.create_group("alarms", &GroupConfig::default()).await?;
    readings.skip_to_end("alarms").await?;
    readings.reset("alarms", None, Seek::Time(since)).await?;
    let group = readings.describe_group("alarms").await?;
    let place = group.partitions.first().ok_or("it has one partition")?;
    println!("group alarms is at {}, {} behind", place.checkpoint, place.lag);
    assert_eq!(place.lag, 10);
    Ok(())
}
