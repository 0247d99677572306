//! Log append of 1 KB records in batches of 100 over 16 partitions, and reading them in order; and 4 KB records by a
//! producer, with their payload in an object store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_log::{AppendOptions, Log, NewRecord, ProducerOptions, Topic, TopicConfig};
use millpond_store::Environment;
use object_store::local::LocalFileSystem;

use crate::error::{BenchError, Result};
use crate::measure::{noise, rate, timed};
use crate::report::{Report, Target};
use crate::sends::join;
use crate::wal::Wal;

const PARTITIONS: u32 = 16;
const BATCH: usize = 100;
const BODY_BYTES: usize = 1_024;
/// 16 partitions × 600 batches × 100 records of 1 KB: 983 MB.
const BATCHES: u64 = 600;
/// Records that one read asks for: 4 MB.
const READ_RECORDS: usize = 4_000;

/// 20 seconds of what is asked for: 450 records of 4 KB a second.
const SUSTAINED_RECORDS: u64 = 20 * 450;
const SUSTAINED_BYTES: usize = 4_096;

/// How often the two are measured in turn; the best of each counts, since noise only ever slows down.
const ROUNDS: u64 = 3;

pub async fn measure(
    directory: &Path,
    percent: u64,
    environment: &Environment,
    report: &mut Report,
) -> Result<()> {
    let batches = (BATCHES * percent / 100 / ROUNDS).max(1);
    let (mut bare, mut append, mut read) = (0.0_f64, 0.0_f64, 0.0_f64);
    for round in 0..ROUNDS {
        let path = directory.join(format!("bare-log-{round}"));
        bare = bare.max(bare_append(&path, batches, environment).await?);
        let store =
            EmbeddedStore::open_at(directory.join(format!("log-{round}")), environment).await?;
        let ground = Ground::new(Arc::new(store.clone()), environment);
        let log = Log::new(&ground);
        let topic = log.create("bench", TopicConfig::with_partitions(PARTITIONS)).await?;
        append = append.max(append_all(&topic, batches, environment).await?);
        // Once to warm up, once to measure.
        read_all(&topic, batches, environment).await?;
        read = read.max(read_all(&topic, batches, environment).await?);
        drop((topic, log, ground));
        store.close().await;
    }
    let sustained = sustained(directory, percent, environment).await?;
    report.note("log: bare append", bare, "MB/s");
    report.note("log: append, 16 partitions, batches of 100", append, "MB/s");
    report.judge("log: append, of the limit", append / bare, "", Target::AtLeast(0.6));
    report.judge("log: sequential read, warm", read, "MB/s", Target::AtLeast(800.0));
    let name = "log: 4 KB records, object store";
    report.judge(name, sustained, "records/s", Target::AtLeast(450.0));
    Ok(())
}

fn megabytes_per_second(batches: u64, elapsed: Duration) -> f64 {
    let bytes = batches * u64::from(PARTITIONS) * (BATCH * BODY_BYTES) as u64;
    rate(bytes, elapsed) / 1e6
}

async fn bare_append(path: &Path, batches: u64, environment: &Environment) -> Result<f64> {
    let wal = Wal::create(path)?;
    let batch = Bytes::from(noise(BATCH * BODY_BYTES, 2));
    let (outcome, elapsed) = timed(environment, async {
        let partitions = (0..PARTITIONS).map(|_| {
            let (wal, batch) = (Arc::clone(&wal), batch.clone());
            tokio::spawn(async move {
                for _ in 0..batches {
                    wal.append(batch.clone()).await?;
                }
                Ok(())
            })
        });
        join(partitions.collect()).await
    })
    .await;
    outcome?;
    wal.close()?;
    Ok(megabytes_per_second(batches, elapsed))
}

async fn append_all(topic: &Topic, batches: u64, environment: &Environment) -> Result<f64> {
    let batch = vec![NewRecord::new(noise(BODY_BYTES, 3)); BATCH];
    let (outcome, elapsed) = timed(environment, async {
        let partitions = (0..PARTITIONS).map(|partition| {
            let (topic, batch) = (topic.clone(), batch.clone());
            tokio::spawn(async move {
                for _ in 0..batches {
                    topic.append_to(partition, batch.clone(), &AppendOptions::default()).await?;
                }
                Ok(())
            })
        });
        join(partitions.collect()).await
    })
    .await;
    outcome?;
    Ok(megabytes_per_second(batches, elapsed))
}

async fn read_all(topic: &Topic, batches: u64, environment: &Environment) -> Result<f64> {
    let (outcome, elapsed) = timed(environment, async {
        let partitions = (0..PARTITIONS).map(|partition| {
            let topic = topic.clone();
            tokio::spawn(async move {
                let (mut next, mut more) = (0, true);
                while more {
                    let batch = topic.read(partition, next, READ_RECORDS).await?;
                    (next, more) = (batch.next, batch.more);
                }
                if next == batches * BATCH as u64 {
                    return Ok(());
                }
                Err(BenchError::Wrong(format!("{next} records were read of partition {partition}")))
            })
        });
        join(partitions.collect()).await
    })
    .await;
    outcome?;
    Ok(megabytes_per_second(batches, elapsed))
}

/// Records a second that one producer gets acknowledged, one object for each flush.
async fn sustained(directory: &Path, percent: u64, environment: &Environment) -> Result<f64> {
    let records = (SUSTAINED_RECORDS * percent / 100).max(1);
    let store = EmbeddedStore::open_at(directory.join("log-objects"), environment).await?;
    let place = directory.join("objects");
    std::fs::create_dir_all(&place).map_err(BenchError::file(&place))?;
    let files = LocalFileSystem::new_with_prefix(&place)
        .map_err(|error| BenchError::Wrong(error.to_string()))?;
    let objects = Objects::new(Arc::new(files.with_fsync(true)), "payload".into());
    let ground = Ground::new(Arc::new(store.clone()), environment).with_objects(objects);
    let log = Log::new(&ground);
    let topic = log.create("bench", TopicConfig::with_partitions(8)).await?;
    let producer = topic.producer(ProducerOptions::default())?;
    let body = Bytes::from(noise(SUSTAINED_BYTES, 5));
    let (outcome, elapsed) = timed(environment, async {
        for number in 0..records {
            let record = NewRecord::keyed(number.to_be_bytes().to_vec(), body.clone());
            producer.send(record).await?;
        }
        producer.flush().await
    })
    .await;
    outcome?;
    producer.close().await?;
    drop((topic, log, ground));
    store.close().await;
    Ok(rate(records, elapsed))
}
