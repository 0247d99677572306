//! A queue on the embedded engine: sends, whole cycles with a standing backlog, and receives at backlogs of all sizes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_queue::{Client, Message, QueueConfig, Queues, Receive};
use millpond_store::Environment;

use crate::error::{BenchError, Result};
use crate::measure::{noise, rate, timed};
use crate::report::{Report, Target};
use crate::sends::join;

const BODY_BYTES: usize = 1_024;
const STANDING: u64 = 100_000;
const CYCLES: u64 = 1_000_000;
const BATCH: u64 = 10;
const WORKERS: u64 = 32;
const SENDERS: u64 = 64;
const SENDS: u64 = 200_000;
const MILLION: u64 = 1_000_000;
/// Receives that are timed at each backlog.
const TIMED: u64 = 101;

pub async fn measure(
    directory: &Path,
    percent: u64,
    environment: &Environment,
    report: &mut Report,
) -> Result<()> {
    let store = EmbeddedStore::open_at(directory.join("queue"), environment).await?;
    let queues = Queues::new(&Ground::new(Arc::new(store.clone()), environment));
    let queue = queues.create("bench", QueueConfig::default()).await?;
    let share = |full: u64| full * percent / 100;

    let single = queue.client("single")?;
    let sends = share(SENDS) / SENDERS;
    let (sent, elapsed) = timed(environment, send_singly(&single, sends)).await;
    sent?;
    report.note("queue: single sends, 64 callers", rate(sends * SENDERS, elapsed), "msgs/s");

    let cycle = queue.client("cycle")?;
    fill(&cycle, share(STANDING)).await?;
    let tenth = share(CYCLES) / 10 / (WORKERS * BATCH);
    let mut rates = Vec::new();
    for _ in 0..10 {
        let (done, elapsed) = timed(environment, cycles(&cycle, tenth)).await;
        done?;
        rates.push(rate(tenth * WORKERS * BATCH, elapsed));
    }
    let (first, last) = (first_of(&rates)?, rates.last().copied().unwrap_or_default());
    #[expect(clippy::cast_precision_loss, reason = "ten of them")]
    let mean = rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>();
    report.judge(
        "queue: send + receive + ack, batches of 10",
        mean,
        "msgs/s",
        Target::AtLeast(50_000.0),
    );
    report.judge("queue: last tenth, against the first", last / first, "", Target::AtLeast(0.9));

    let mut medians = Vec::new();
    let sizes = [
        (100, "queue: receive 10 and ack, backlog 100"),
        (10_000, "queue: receive 10 and ack, backlog 10,000"),
        (MILLION, "queue: receive 10 and ack, backlog 1,000,000"),
    ];
    for (backlog, name) in sizes {
        let client = queue.client(&format!("backlog-{backlog}"))?;
        fill(&client, share(backlog).max(100)).await?;
        let median = Box::pin(receive_ten(environment, &client)).await?;
        report.note(name, median, "us");
        medians.push(median);
    }
    let slowest = medians.iter().copied().fold(0.0, f64::max);
    report.judge(
        "queue: slowest of these, against backlog 100",
        slowest / first_of(&medians)?,
        "times",
        Target::AtMost(2.0),
    );
    let million = queue.client(&format!("backlog-{MILLION}"))?;
    drain(&million).await?;
    let behind = Box::pin(receive_ten(environment, &million)).await?;
    report.note("queue: receive 10 and ack, after 1,000,000 were consumed", behind, "us");
    report.judge(
        "queue: the same, against backlog 100",
        behind / first_of(&medians)?,
        "times",
        Target::AtMost(2.0),
    );
    drop((single, cycle, million, queue, queues));
    store.close().await;
    Ok(())
}

fn first_of(figures: &[f64]) -> Result<f64> {
    figures.first().copied().ok_or_else(|| BenchError::Wrong("nothing was timed".to_owned()))
}

fn body() -> Bytes {
    noise(BODY_BYTES, 6).into()
}

async fn send_singly(client: &Client, sends: u64) -> Result<()> {
    let senders = (0..SENDERS).map(|_| {
        let (client, body) = (client.clone(), body());
        tokio::spawn(async move {
            for _ in 0..sends {
                client.send(Message::new(body.clone())).await?;
            }
            Ok(())
        })
    });
    join(senders.collect()).await
}

async fn fill(client: &Client, messages: u64) -> Result<()> {
    let senders = (0..8).map(|_| {
        let (client, body) = (client.clone(), body());
        tokio::spawn(async move {
            let mut left = messages.div_ceil(8);
            while left > 0 {
                let batch = left.min(100);
                send(&client, &body, batch).await?;
                left -= batch;
            }
            Ok(())
        })
    });
    join(senders.collect()).await
}

async fn send(client: &Client, body: &Bytes, count: u64) -> Result<()> {
    let batch = (0..count).map(|_| Message::new(body.clone())).collect();
    for sent in client.send_batch(batch).await? {
        sent?;
    }
    Ok(())
}

/// Receives and acknowledges up to `max` messages. Returns how many there were.
async fn take(client: &Client, max: u64) -> Result<u64> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let got = client.receive(&Receive::up_to(max)).await?;
    let receipts: Vec<_> = got.into_iter().map(|message| message.receipt).collect();
    for acked in client.ack_batch(&receipts).await? {
        acked?;
    }
    Ok(receipts.len() as u64)
}

async fn cycles(client: &Client, rounds: u64) -> Result<()> {
    let workers = (0..WORKERS).map(|_| {
        let (client, body) = (client.clone(), body());
        tokio::spawn(async move {
            for _ in 0..rounds {
                send(&client, &body, BATCH).await?;
                let mut left = BATCH;
                while left > 0 {
                    left -= take(&client, left).await?;
                }
            }
            Ok(())
        })
    });
    join(workers.collect()).await
}

async fn drain(client: &Client) -> Result<()> {
    let workers = (0..8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            while take(&client, 500).await? > 0 {}
            Ok(())
        })
    });
    join(workers.collect()).await
}

/// The median time, in microseconds, to receive ten messages and acknowledge them.
async fn receive_ten(environment: &Environment, client: &Client) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..TIMED {
        send(client, &body(), BATCH).await?;
        let (taken, elapsed): (Result<u64>, Duration) =
            Box::pin(timed(environment, take(client, BATCH))).await;
        if taken? == 0 {
            return Err(BenchError::Wrong("messages were there, none was received".to_owned()));
        }
        times.push(elapsed.as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    times
        .get(times.len() / 2)
        .copied()
        .ok_or_else(|| BenchError::Wrong("nothing was timed".to_owned()))
}
