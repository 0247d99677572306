//! The work of each workload, as `millpond bench` does it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::bodies::{Bodies, Came};
use crate::link::{Link, Server};
use crate::usage::Usage;

/// How long a caller that found nothing waits before it looks again, and for how long it goes on.
const EMPTY_PAUSE: Duration = Duration::from_millis(2);
const EMPTY_MAX: Duration = Duration::from_secs(60);

/// Messages that are sent at a time when the queue is filled.
const FILL_EACH: usize = 10;

/// What to do; the names are those of `millpond bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    Send,
    Receive,
    Cycle,
    Drain,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub workload: Workload,
    pub messages: u64,
    pub backlog: Option<u64>,
    pub concurrency: usize,
    pub bytes: usize,
    pub batch: usize,
    pub process: Option<u32>,
}

impl Plan {
    fn fill(&self) -> u64 {
        let (needed, backlog) = match self.workload {
            Workload::Send | Workload::Cycle => (0, 0),
            Workload::Receive => (self.messages, self.messages),
            Workload::Drain => (self.messages, 0),
        };
        self.backlog.unwrap_or(backlog) + needed
    }
}

/// What was measured.
pub struct Measured {
    pub messages: u64,
    pub elapsed: Duration,
    pub latencies: Latencies,
    pub again: u64,
    pub own: Option<Usage>,
    pub process: Option<Usage>,
}

/// Latencies in microseconds.
pub struct Latencies {
    pub send: Histogram<u64>,
    pub receive: Histogram<u64>,
    pub delete: Histogram<u64>,
}

impl Latencies {
    fn new() -> Result<Self> {
        let empty = || Histogram::new_with_bounds(1, 600_000_000, 3);
        Ok(Self { send: empty()?, receive: empty()?, delete: empty()? })
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.send.add(&other.send)?;
        self.receive.add(&other.receive)?;
        self.delete.add(&other.delete)?;
        Ok(())
    }
}

struct Caller<L> {
    link: L,
    plan: Plan,
    left: Arc<AtomicU64>,
    bodies: Arc<Bodies>,
    latencies: Latencies,
    done: u64,
}

impl<L: Link> Caller<L> {
    fn take(&self) -> usize {
        let most = self.plan.batch as u64;
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left.saturating_sub(most))
        });
        taken.map_or(0, |before| before.min(most) as usize)
    }

    async fn send(&mut self, count: usize) -> Result<()> {
        let bodies = (0..count).map(|_| self.bodies.next()).collect();
        let began = Instant::now();
        self.link.send(bodies).await?;
        record(&mut self.latencies.send, began.elapsed());
        Ok(())
    }

    /// Receives and acknowledges: how many that were not here before, none if there were no messages.
    async fn consume(&mut self, max: usize) -> Result<Option<usize>> {
        let began = Instant::now();
        let messages = self.link.receive(max).await?;
        let received = Instant::now();
        if messages.is_empty() {
            return Ok(None);
        }
        record(&mut self.latencies.receive, received - began);
        let (mut receipts, mut count) = (Vec::with_capacity(messages.len()), 0);
        for (receipt, body) in messages {
            let came = self.bodies.came(&body).map_err(anyhow::Error::msg)?;
            count += usize::from(came == Came::New);
            receipts.push(receipt);
        }
        self.link.ack(receipts).await?;
        record(&mut self.latencies.delete, received.elapsed());
        Ok(Some(count))
    }

    async fn run(mut self) -> Result<Self> {
        loop {
            let count = self.take();
            if count == 0 {
                return Ok(self);
            }
            if matches!(self.plan.workload, Workload::Send | Workload::Cycle) {
                self.send(count).await?;
            }
            if self.plan.workload == Workload::Send {
                self.done += count as u64;
                continue;
            }
            let (mut owed, mut since) = (count, Instant::now());
            while owed > 0 {
                match self.consume(owed).await? {
                    Some(some) => {
                        since = Instant::now();
                        owed -= some.min(owed);
                        self.done += some as u64;
                    }
                    None if since.elapsed() > EMPTY_MAX => bail!("{owed} messages do not come"),
                    None => tokio::time::sleep(EMPTY_PAUSE).await,
                }
            }
        }
    }
}

fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
}

/// One phase: the callers' links go in and come out again, unless they are to be closed as their callers end.
async fn run<L: Link>(
    links: Vec<L>,
    plan: &Plan,
    bodies: &Arc<Bodies>,
    messages: u64,
    close: bool,
) -> Result<(Measured, Vec<L>)> {
    let left = Arc::new(AtomicU64::new(messages));
    let used = || (Usage::own(), plan.process.and_then(Usage::of));
    let before = used();
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for link in links {
        let (left, bodies) = (Arc::clone(&left), Arc::clone(bodies));
        let (plan, latencies) = (plan.clone(), Latencies::new()?);
        callers.spawn(async move {
            let ended = Caller { link, plan, left, bodies, latencies, done: 0 }.run().await?;
            // What this caller's connection holds and does not want may be what another one waits for.
            let link = if close {
                ended.link.close().await?;
                None
            } else {
                Some(ended.link)
            };
            anyhow::Ok((link, ended.latencies, ended.done))
        });
    }
    let (mut latencies, mut done, mut links) = (Latencies::new()?, 0, Vec::new());
    while let Some(ended) = callers.join_next().await {
        let (link, some, count) = ended??;
        latencies.add(&some)?;
        done += count;
        links.extend(link);
    }
    let elapsed = began.elapsed();
    let after = used();
    let since = |after: Option<Usage>, before| Some(after?.since(before?));
    let measured = Measured {
        messages: done,
        elapsed,
        latencies,
        again: bodies.again(),
        own: since(after.0, before.0),
        process: since(after.1, before.1),
    };
    Ok((measured, links))
}

/// Fills the queue if need be, runs the workload, and checks that exactly what was not acknowledged is left.
pub async fn measure<S: Server>(mut server: S, plan: &Plan) -> Result<Measured> {
    server.prepare().await?;
    let mut links = Vec::new();
    for _ in 0..plan.concurrency {
        links.push(server.link().await?);
    }
    let fill = plan.fill();
    let bodies = Arc::new(Bodies::new(plan.bytes, fill + plan.messages, 1));
    if fill > 0 {
        let filling = Plan { workload: Workload::Send, batch: FILL_EACH, ..plan.clone() };
        links = run(links, &filling, &bodies, fill, false).await?.1;
    }
    let (measured, _) = run(links, plan, &bodies, plan.messages, true).await?;
    let sent =
        if matches!(plan.workload, Workload::Send | Workload::Cycle) { plan.messages } else { 0 };
    let gone = if plan.workload == Workload::Send { 0 } else { measured.messages };
    let (expected, mut left) = (fill + sent - gone, 0);
    // A count may lag behind for a moment.
    for _ in 0..100 {
        left = server.left().await?;
        if left == expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(left == expected, "{left} messages are left in the queue, not {expected}");
    Ok(measured)
}
