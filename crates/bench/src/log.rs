//! Log append of 1 KB records in batches of 100 over 16 partitions, and reading them in order.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_lanes::{Ground, Lane as _, LaneConfig, Message, SequencedLane};
use millpond_store::Environment;

use crate::error::{BenchError, Result};
use crate::measure::{noise, rate, timed};
use crate::report::{Report, Target};
use crate::sends::join;
use crate::wal::Wal;

const PARTITIONS: u64 = 16;
const BATCH: usize = 100;
const BODY_BYTES: usize = 1_024;
/// 16 partitions × 600 batches × 100 records of 1 KB: 983 MB.
const BATCHES: u64 = 600;

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
        append = append.max(append_all(&ground, batches).await?);
        // Once to warm up, once to measure.
        read_all(&ground, batches).await?;
        read = read.max(read_all(&ground, batches).await?);
        drop(ground);
        store.close().await;
    }
    report.note("log: bare append", bare, "MB/s");
    report.note("log: append, 16 partitions, batches of 100", append, "MB/s");
    report.judge("log: append, of the limit", append / bare, "", Target::AtLeast(0.6));
    report.judge("log: sequential read, warm", read, "MB/s", Target::AtLeast(800.0));
    Ok(())
}

fn megabytes_per_second(batches: u64, elapsed: std::time::Duration) -> f64 {
    let bytes = batches * PARTITIONS * (BATCH * BODY_BYTES) as u64;
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

fn lane(ground: &Ground, partition: u64) -> Result<SequencedLane> {
    Ok(SequencedLane::open(ground, &format!("topic/{partition}"), LaneConfig::LOG)?)
}

async fn append_all(ground: &Ground, batches: u64) -> Result<f64> {
    let body = Bytes::from(noise(BODY_BYTES, 3));
    let batch = vec![Message::new(body); BATCH];
    let (outcome, elapsed) = timed(&ground.environment, async {
        let mut partitions = Vec::new();
        for partition in 0..PARTITIONS {
            let (lane, batch) = (lane(ground, partition)?, batch.clone());
            partitions.push(tokio::spawn(async move {
                for _ in 0..batches {
                    lane.append(batch.clone()).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
                }
                Ok(())
            }));
        }
        join(partitions).await
    })
    .await;
    outcome?;
    Ok(megabytes_per_second(batches, elapsed))
}

async fn read_all(ground: &Ground, batches: u64) -> Result<f64> {
    let (outcome, elapsed) = timed(&ground.environment, async {
        let mut partitions = Vec::new();
        for partition in 0..PARTITIONS {
            let lane = lane(ground, partition)?;
            partitions.push(tokio::spawn(async move {
                let mut records = 0;
                let mut next = Some(lane.scan()?);
                while let Some(scan) = next {
                    let page = lane.page(scan).await?;
                    for segment in &page.segments {
                        records += lane.load(segment).await?.len() as u64;
                    }
                    next = page.next;
                }
                if records == batches * BATCH as u64 {
                    return Ok(());
                }
                Err(BenchError::Wrong(format!(
                    "{records} records were read of partition {partition}"
                )))
            }));
        }
        join(partitions).await
    })
    .await;
    outcome?;
    Ok(megabytes_per_second(batches, elapsed))
}
