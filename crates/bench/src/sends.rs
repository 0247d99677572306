//! Single sends of 1 KB by 64 callers, each waiting for its answer.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_lanes::{Ground, LaneConfig, Message, UnorderedLane};
use millpond_store::Environment;

use crate::error::Result;
use crate::measure::{noise, rate, timed};
use crate::report::{Report, Target};
use crate::wal::Wal;

const CALLERS: u64 = 64;
const BODY_BYTES: usize = 1_024;
const SENDS: u64 = 400_000;

/// How often the two are measured in turn; the best of each counts, since noise only ever slows down.
const ROUNDS: u64 = 3;

pub async fn measure(
    directory: &Path,
    percent: u64,
    environment: &Environment,
    report: &mut Report,
) -> Result<()> {
    let sends = SENDS * percent / 100 / ROUNDS;
    let (mut bare, mut lane) = (0.0_f64, 0.0_f64);
    for round in 0..ROUNDS {
        bare =
            bare.max(bare_log(&directory.join(format!("bare-{round}")), sends, environment).await?);
        lane = lane.max(
            through_lane(&directory.join(format!("sends-{round}")), sends, environment).await?,
        );
    }
    report.note("sends: bare log, 64 callers", bare, "msgs/s");
    report.note("sends: unordered lane, 64 callers", lane, "msgs/s");
    report.judge("sends: of the limit", lane / bare, "", Target::AtLeast(0.8));
    Ok(())
}

async fn bare_log(path: &Path, sends: u64, environment: &Environment) -> Result<f64> {
    let wal = Wal::create(path)?;
    let body = Bytes::from(noise(BODY_BYTES, 1));
    let (outcome, elapsed) = timed(environment, async {
        let callers = (0..CALLERS).map(|_| {
            let (wal, body) = (Arc::clone(&wal), body.clone());
            tokio::spawn(async move {
                for _ in 0..sends / CALLERS {
                    wal.append(body.clone()).await?;
                }
                Ok(())
            })
        });
        join(callers.collect()).await
    })
    .await;
    outcome?;
    wal.close()?;
    Ok(rate(sends, elapsed))
}

async fn through_lane(directory: &Path, sends: u64, environment: &Environment) -> Result<f64> {
    let store = EmbeddedStore::open_at(directory, environment).await?;
    let ground = Ground::new(Arc::new(store.clone()), environment);
    let lane = Arc::new(UnorderedLane::open(&ground, "sends", LaneConfig::QUEUE)?);
    let body = Bytes::from(noise(BODY_BYTES, 1));
    let (outcome, elapsed) = timed(environment, async {
        let callers = (0..CALLERS).map(|_| {
            let (lane, body) = (Arc::clone(&lane), body.clone());
            tokio::spawn(async move {
                for _ in 0..sends / CALLERS {
                    let sent = lane.append(vec![Message::new(body.clone())]).await?;
                    sent.into_iter().collect::<Result<Vec<_>, _>>()?;
                }
                Ok(())
            })
        });
        join(callers.collect()).await
    })
    .await;
    outcome?;
    drop((lane, ground));
    store.close().await;
    Ok(rate(sends, elapsed))
}

/// Waits for all callers.
pub async fn join(callers: Vec<tokio::task::JoinHandle<Result<()>>>) -> Result<()> {
    for caller in callers {
        caller.await??;
    }
    Ok(())
}
