//! A producer and a group of two workers, of which one crashes in the middle: every record is handled, in order within
//! its partition, and the crashed worker cannot move the checkpoint any more.
//!
//! ```sh
//! cargo run -p millpond-log --example group_with_a_crash
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_log::{
    ConsumerOptions, Failure, Log, LogError, NewRecord, ProducerOptions, Record, RunEnd,
    RunOptions, TopicConfig, Until,
};
use millpond_store::Environment;

const RECORDS: u64 = 1_000;
const LEASE: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::system();
    let store = EmbeddedStore::open_at(directory.path().join("store"), &environment).await?;
    let log = Log::new(&Ground::new(Arc::new(store.clone()), &environment));
    let orders = log.create("orders", TopicConfig::with_partitions(4)).await?;

    let producer = orders.producer(ProducerOptions::default())?;
    for n in 0..RECORDS {
        producer.send(NewRecord::keyed(format!("customer-{}", n % 50), n.to_string())).await?;
    }
    producer.close().await?;
    println!("appended   {RECORDS} records over {} partitions", orders.partitions());

    // The first worker handles a part, checkpoints some of it, and is gone without a word.
    let options = || ConsumerOptions { lease: LEASE, ..ConsumerOptions::default() };
    let crashes = orders.consumer("billing", options()).await?;
    let held = crashes.balance().await?.taken;
    let at = *held.first().ok_or("nothing to take")?;
    let batch = crashes.poll(at, 100).await?;
    crashes.checkpoint(at, batch.next / 2).await?;
    println!("crashed    after {} records of partition {}", batch.records.len(), at.partition);

    // The second one waits for its lease to pass, and does the rest.
    let heir = orders.consumer("billing", options()).await?;
    let seen: Arc<Mutex<BTreeMap<u32, Vec<u64>>>> = Arc::default();
    let handler = {
        let seen = Arc::clone(&seen);
        move |record: Record| {
            let seen = Arc::clone(&seen);
            async move {
                let mut seen = seen.lock().map_err(|_| Failure::new("another handler panicked"))?;
                seen.entry(record.partition).or_default().push(record.offset);
                Ok::<(), Failure>(())
            }
        }
    };
    let run = RunOptions { until: Until::Drained, patience: LEASE * 10, ..RunOptions::default() };
    let report = heir.run(handler, run).await?;
    println!("handled    {} records by the second worker: {:?}", report.handled, report.end);
    assert_eq!(report.end, RunEnd::Done);
    for offsets in seen.lock().map_err(|_| "a handler panicked")?.values() {
        assert!(offsets.is_sorted(), "out of order");
    }

    match crashes.checkpoint(at, batch.next).await {
        Err(LogError::LeaseLost { partition, epoch }) => {
            println!(
                "refused    the crashed worker's checkpoint (partition {partition}, epoch {epoch})"
            );
        }
        other => return Err(format!("the crashed worker moved the checkpoint: {other:?}").into()),
    }
    let lag: u64 = orders.describe_group("billing").await?.partitions.iter().map(|p| p.lag).sum();
    println!("lag        {lag}");
    assert_eq!(lag, 0);
    drop((crashes, heir, orders, log));
    store.close().await;
    Ok(())
}
