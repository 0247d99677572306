//! The work of each workload, and what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::super::Failure;
use super::super::progress::Progress;
use super::Workload;
use super::bodies::{Bodies, Came};
use super::load::{Link, Load};
use super::usage::Usage;

/// Longest latency that is told apart: what takes longer is counted as this.
const LATENCY_MAX: Duration = Duration::from_secs(600);

/// How long a caller that found nothing waits before it looks again.
const EMPTY_PAUSE: Duration = Duration::from_millis(2);

/// How often in a row nothing is found before a queue counts as empty: with leases of 30 seconds, longer than any.
const EMPTY_MAX: u32 = 20_000;

/// Messages that a request sends when a queue is filled.
const FILL_EACH: usize = 10;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The workload.
    pub workload: Workload,
    /// How many messages.
    pub messages: u64,
    /// Callers at a time.
    pub concurrency: usize,
    /// Bytes in each message.
    pub bytes: usize,
    /// Messages in each request.
    pub batch: usize,
    /// Messages that wait all the while.
    pub backlog: Option<u64>,
    /// The process of the endpoint.
    pub process: Option<u32>,
}

impl Plan {
    /// Messages that are sent before the work is measured.
    fn fill(&self) -> u64 {
        let (needed, backlog) = match self.workload {
            Workload::Send | Workload::Cycle => (0, 0),
            Workload::Receive => (self.messages, self.messages),
            Workload::Drain => (self.messages, 0),
        };
        self.backlog.unwrap_or(backlog).saturating_add(needed)
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// Messages that went through.
    pub messages: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Latencies of requests, in microseconds.
    pub latencies: Latencies,
    /// Messages that came more than once.
    pub again: u64,
    /// What this process used.
    pub own: Option<Usage>,
    /// What the process of the endpoint used.
    pub process: Option<Usage>,
}

/// Latencies by what was asked for, in microseconds.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// Sends.
    pub send: Histogram<u64>,
    /// Receives that found something.
    pub receive: Histogram<u64>,
    /// Deletes.
    pub delete: Histogram<u64>,
}

impl Latencies {
    fn new() -> Self {
        let empty = || {
            let most = u64::try_from(LATENCY_MAX.as_micros()).unwrap_or(u64::MAX);
            Histogram::new_with_bounds(1, most, 3).expect("the bounds are constants that fit")
        };
        Self { send: empty(), receive: empty(), delete: empty() }
    }

    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.send, &other.send),
            (&mut self.receive, &other.receive),
            (&mut self.delete, &other.delete),
        ];
        for (mine, theirs) in pairs {
            mine.add(theirs).expect("all have the same bounds");
        }
    }
}

/// One caller, and what it has measured.
struct Caller {
    load: Arc<Load>,
    link: Link,
    plan: Plan,
    /// Messages that are left to take on.
    left: Arc<AtomicU64>,
    progress: Arc<Progress>,
    bodies: Arc<Bodies>,
    latencies: Latencies,
    done: u64,
}

impl Caller {
    /// Takes on the next messages: how many, none when all are taken on.
    fn take(&self) -> usize {
        let most = self.plan.batch as u64;
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left.saturating_sub(most))
        });
        taken.map_or(0, |before| usize::try_from(before.min(most)).unwrap_or_default())
    }

    fn finished(&mut self, count: usize) {
        self.done += count as u64;
        self.progress.add(count);
    }

    async fn send(&mut self, count: usize) -> Result<(), Failure> {
        let clock = self.load.environment.clock.clone();
        let bodies = (0..count).map(|_| self.bodies.next()).collect();
        let began = clock.monotonic();
        self.link.send(bodies).await?;
        record(&mut self.latencies.send, clock.monotonic().since(began));
        Ok(())
    }

    /// Receives and deletes: how many that were not here before, and whether there were any.
    async fn consume(&mut self, max: usize) -> Result<Option<usize>, Failure> {
        let clock = self.load.environment.clock.clone();
        let began = clock.monotonic();
        let messages = self.link.receive(max).await?;
        let received = clock.monotonic();
        if messages.is_empty() {
            return Ok(None);
        }
        record(&mut self.latencies.receive, received.since(began));
        let (mut receipts, mut count) = (Vec::with_capacity(messages.len()), 0);
        for (receipt, body) in messages {
            let came = self.bodies.came(&body).map_err(Failure::Broken)?;
            count += usize::from(came == Came::New);
            receipts.push(receipt);
        }
        self.link.delete(receipts).await?;
        record(&mut self.latencies.delete, clock.monotonic().since(received));
        Ok(Some(count))
    }

    async fn run(mut self) -> Result<(Latencies, u64), Failure> {
        let mut empty = 0;
        loop {
            let count = self.take();
            if count == 0 {
                return Ok((self.latencies, self.done));
            }
            if matches!(self.plan.workload, Workload::Send | Workload::Cycle) {
                self.send(count).await?;
            }
            if self.plan.workload == Workload::Send {
                self.finished(count);
                continue;
            }
            // Others may have taken what this caller is after: as many are left for it as it has taken on.
            let mut owed = count;
            while owed > 0 {
                match self.consume(owed).await? {
                    None => {
                        empty += 1;
                        if empty > EMPTY_MAX {
                            return Err(Failure::Broken(format!("{owed} messages do not come")));
                        }
                        self.load.environment.clock.sleep(EMPTY_PAUSE).await;
                    }
                    Some(some) => {
                        empty = 0;
                        owed -= some.min(owed);
                        self.finished(some);
                    }
                }
            }
        }
    }
}

fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
}

/// Runs a workload with all callers.
async fn run(
    load: &Arc<Load>,
    plan: &Plan,
    bodies: &Arc<Bodies>,
    (messages, what): (u64, &'static str),
) -> Result<Measured, Failure> {
    let mut links = Vec::with_capacity(plan.concurrency);
    for _ in 0..plan.concurrency {
        links.push(load.link().await?);
    }
    let left = Arc::new(AtomicU64::new(messages));
    let progress = Arc::new(Progress::start(what, Some(messages)));
    let clock = load.environment.clock.clone();
    let used = || (Usage::own(), plan.process.and_then(Usage::of));
    let before = used();
    let began = clock.monotonic();
    // Each is a task of its own, so that they use all cores.
    let mut callers = JoinSet::new();
    for link in links {
        let (load, left, progress) = (Arc::clone(load), Arc::clone(&left), Arc::clone(&progress));
        let (plan, bodies, latencies) = (plan.clone(), Arc::clone(bodies), Latencies::new());
        callers
            .spawn(Caller { load, link, plan, left, progress, bodies, latencies, done: 0 }.run());
    }
    let (mut latencies, mut done) = (Latencies::new(), 0);
    while let Some(ended) = callers.join_next().await {
        let ended = ended.map_err(|error| Failure::Broken(error.to_string()));
        match ended.and_then(|ended| ended) {
            Ok((some, count)) => {
                latencies.add(&some);
                done += count;
            }
            Err(failure) => {
                callers.shutdown().await;
                return Err(failure);
            }
        }
    }
    let elapsed = clock.monotonic().since(began);
    let after = used();
    let since = |after: Option<Usage>, before| Some(after?.since(before?));
    Ok(Measured {
        messages: done,
        elapsed,
        latencies,
        again: bodies.again(),
        own: since(after.0, before.0),
        process: since(after.1, before.1),
    })
}

/// Fills the queue if need be, and runs the workload.
pub async fn measure(load: &Arc<Load>, plan: &Plan) -> Result<Measured, Failure> {
    let fill = plan.fill();
    let tag = load.environment.rng.next_u64() >> 32;
    let most = fill.saturating_add(plan.messages);
    let bodies = Bodies::new(plan.bytes, most, u32::try_from(tag).unwrap_or_default());
    let bodies = Arc::new(bodies);
    if fill > 0 {
        let filling = Plan { workload: Workload::Send, batch: FILL_EACH, ..plan.clone() };
        Box::pin(run(load, &filling, &bodies, (fill, "fill"))).await?;
    }
    Box::pin(run(load, plan, &bodies, (plan.messages, plan.workload.text()))).await
}
