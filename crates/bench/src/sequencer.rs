//! Messages of 1 KB, shuffled within 100, put in batches of 25 and passed in order.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_sequencer::{Config, Entry, QueueName, Sequencer};
use millpond_store::{Environment, Rng as _, SeededRng};

use crate::error::{BenchError, Result};
use crate::measure::{noise, rate, timed};
use crate::report::{Report, Target};
use crate::sends::join;

const BODY_BYTES: usize = 1_024;
const BATCH: usize = 25;
const WITHIN: usize = 100;
/// Producers at the same time, each with a queue of its own: they share syncs, as clients of a server do.
const PRODUCERS: u64 = 16;
const MESSAGES: u64 = 1_200_000;
/// The best round counts, since noise only ever slows down.
const ROUNDS: u64 = 3;

pub async fn measure(
    directory: &Path,
    percent: u64,
    environment: &Environment,
    report: &mut Report,
) -> Result<()> {
    let each = MESSAGES * percent / 100 / ROUNDS / PRODUCERS / WITHIN as u64 * WITHIN as u64;
    let mut best = 0.0_f64;
    for round in 0..ROUNDS {
        let directory = directory.join(format!("sequencer-{round}"));
        best = best.max(one_round(&directory, each, environment).await?);
    }
    report.judge("sequencer: shuffled, batches of 25", best, "msgs/s", Target::AtLeast(50_000.0));
    Ok(())
}

async fn one_round(directory: &Path, each: u64, environment: &Environment) -> Result<f64> {
    let store = EmbeddedStore::open_at(directory, environment).await?;
    let sequencer =
        Sequencer::open(Arc::new(store.clone()), environment, "bench", Config::default())?;
    let body = Bytes::from(noise(BODY_BYTES, 1));
    let (outcome, elapsed) = timed(environment, async {
        let producers = (0..PRODUCERS).map(|producer| {
            let (sequencer, body) = (sequencer.clone(), body.clone());
            tokio::spawn(produce(sequencer, producer, each, body))
        });
        join(producers.collect()).await
    })
    .await;
    outcome?;
    for producer in 0..PRODUCERS {
        let cursor = sequencer.cursor(&producer.to_string()).await?;
        if cursor.is_none_or(|cursor| cursor.next != each) {
            return Err(BenchError::Wrong(format!("queue {producer} was not passed to its end")));
        }
    }
    drop(sequencer);
    store.close().await;
    Ok(rate(each * PRODUCERS, elapsed))
}

async fn produce(sequencer: Sequencer, producer: u64, count: u64, body: Bytes) -> Result<()> {
    let queue = QueueName::new(producer.to_string())?;
    let rng = SeededRng::new(producer);
    let mut numbers: Vec<u64> = (0..count).collect();
    for window in numbers.chunks_mut(WITHIN) {
        for at in (1..window.len()).rev() {
            let other = rng.below(at as u64 + 1);
            window.swap(at, usize::try_from(other).unwrap_or(at));
        }
    }
    for batch in numbers.chunks(BATCH) {
        let entries = batch.iter().map(|seq| Entry {
            queue: queue.clone(),
            seq: *seq,
            message: body.clone().into(),
        });
        let result = sequencer.put_batch(entries.collect()).await?;
        result.arrivals.into_iter().collect::<Result<Vec<_>, _>>()?;
    }
    Ok(())
}
