//! A worker at work: one task that receives and starts a task for each call of the handler.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use millpond_store::{Clock, Monotonic, Timestamp};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::Worker;
use super::options::RunUntil;
use super::settle::may_recover;
use super::tally::{Ended, Fate, Report, Tally};
use super::task::Task;
use crate::client::{Client, Outlook, Receive, Seen};
use crate::error::Result;
use crate::limits::{RECEIVE_MAX, RELEASE_MAX, WORKER_BACKOFF, WORKER_WAIT};
use crate::message::Delivery;

/// A receive under way, and what ends its wait.
struct Receiving {
    answer: BoxFuture<'static, (Result<Vec<Delivery>>, Seen)>,
    cease: Option<oneshot::Sender<()>>,
}

/// What happened next.
enum Event {
    Stop(Duration),
    Time,
    Finished(Vec<Fate>),
    Received(Result<Vec<Delivery>>, Seen),
    Again,
}

pub(super) struct Run {
    worker: Arc<Worker>,
    clock: Arc<dyn Clock>,
    until: RunUntil,
    /// How long to let messages finish, once it is to stop.
    stop: watch::Receiver<Option<Duration>>,
    began: Monotonic,
    tasks: JoinSet<Vec<Fate>>,
    receiving: Option<Receiving>,
    release: watch::Sender<bool>,
    tally: Tally,
    started: u64,
    told: u64,
    /// How often in a row the store failed, or did not have what it said it had.
    failures: u32,
    /// No receive before then.
    pause: Option<Duration>,
    /// How long the next receive waits.
    wait: Duration,
}

impl Run {
    pub fn new(worker: Worker, until: RunUntil, stop: watch::Receiver<Option<Duration>>) -> Self {
        let clock = Arc::clone(&worker.client.core.queue.root.environment().clock);
        Self {
            began: clock.monotonic(),
            clock,
            wait: if until.empty { Duration::ZERO } else { WORKER_WAIT },
            worker: Arc::new(worker),
            until,
            stop,
            tasks: JoinSet::new(),
            receiving: None,
            release: watch::channel(false).0,
            tally: Tally::default(),
            started: 0,
            told: 0,
            failures: 0,
            pause: None,
        }
    }

    pub async fn run(mut self) -> Result<Report> {
        let upkeep = Upkeep::start(&self.worker, &self.clock);
        let ended = self.work().await;
        let (ended, drain) = match &ended {
            Ok((ended, drain)) => (Ok(*ended), *drain),
            Err(error) => (Err(error.clone()), Some(Duration::ZERO)),
        };
        self.wind_up(drain).await;
        upkeep.end().await;
        let ended = ended?;
        let outlook = final_outlook(&self.worker.client, &self.clock).await;
        if let Err(error) = self.worker.client.core.limiter.give_idle_back().await {
            tracing::debug!(%error, "permits are kept until they end");
        }
        let remains = outlook.is_none_or(|outlook| outlook.work_remains());
        let due = outlook.filter(|outlook| !outlook.available).and_then(|outlook| outlook.due);
        Ok(self.tally.report(ended, remains, due))
    }

    fn elapsed(&self) -> Duration {
        self.clock.monotonic().since(self.began)
    }

    /// Receives and starts work until it is time to end. Says why, and how long what runs may go on; nothing when for
    /// as long as it takes.
    async fn work(&mut self) -> Result<(Ended, Option<Duration>)> {
        let ends = self.until.ends(self.worker.options.drain);
        let strict = self.worker.client.core.queue.known_config().strict.is_some();
        loop {
            let left = self.until.count.map(|count| count.saturating_sub(self.started));
            if left == Some(0) {
                let limit = ends.map(|(_, end)| end.saturating_sub(self.elapsed()));
                return Ok((Ended::Count, limit));
            }
            self.begin_receive(left);
            match self.next_event(ends.map(|(stop, _)| stop)).await {
                Event::Stop(drain) => {
                    self.receive_last(strict).await;
                    return Ok((Ended::Shutdown, Some(drain)));
                }
                Event::Time => {
                    self.receive_last(strict).await;
                    let end = ends.map(|(_, end)| end.saturating_sub(self.elapsed()));
                    return Ok((Ended::Deadline, end));
                }
                Event::Finished(fates) => self.finished(&fates),
                Event::Received(Ok(deliveries), seen) => {
                    let found = !deliveries.is_empty();
                    self.start(deliveries, strict);
                    if self.until.empty {
                        if found {
                            (self.wait, self.failures) = (Duration::ZERO, 0);
                        } else if self.is_empty(seen, ends.map(|(stop, _)| stop)).await? {
                            return Ok((Ended::Empty, None));
                        }
                    } else {
                        self.failures = 0;
                    }
                }
                Event::Received(Err(error), _) if may_recover(&error) => {
                    tracing::warn!(%error, "receiving failed: trying again");
                    self.back_off();
                }
                Event::Received(Err(error), _) => return Err(error),
                Event::Again => self.pause = None,
            }
        }
    }

    /// Begins to receive, when there is room.
    fn begin_receive(&mut self, left: Option<u64>) {
        let worker = &self.worker;
        let free = worker.options.concurrency.saturating_sub(self.tasks.len());
        let most = free.saturating_mul(worker.handling.size()).min(RECEIVE_MAX);
        let most = left.map_or(most, |left| most.min(usize::try_from(left).unwrap_or(usize::MAX)));
        if self.receiving.is_some() || self.pause.is_some() || most == 0 {
            return;
        }
        let ask = Receive {
            max: most,
            wait: self.wait,
            visibility: worker.options.visibility,
            worker: worker.options.name.clone(),
            ..Receive::default()
        };
        let core = Arc::clone(&worker.client.core);
        let (cease, ceased) = oneshot::channel();
        let answer = Box::pin(async move {
            let mut seen = Seen::default();
            let ceased = async { drop(ceased.await) };
            let answer = core.receive_until(&ask, ceased, &mut seen).await;
            (answer, seen)
        });
        self.receiving = Some(Receiving { answer, cease: Some(cease) });
    }

    async fn next_event(&mut self, stop_at: Option<Duration>) -> Event {
        let elapsed = self.elapsed();
        let (clock, stop) = (Arc::clone(&self.clock), &mut self.stop);
        let sleep = |until: Option<Duration>| {
            let clock = Arc::clone(&clock);
            async move {
                match until {
                    Some(until) => clock.sleep(until.saturating_sub(elapsed)).await,
                    None => std::future::pending().await,
                }
            }
        };
        let stopped = async {
            let told = stop.wait_for(Option::is_some).await.map(|told| *told);
            // Whoever could say so is gone.
            told.ok().flatten().unwrap_or(Duration::ZERO)
        };
        let received = async {
            match &mut self.receiving {
                Some(receiving) => receiving.answer.as_mut().await,
                None => std::future::pending().await,
            }
        };
        let finished = async {
            match self.tasks.join_next().await {
                Some(fates) => fates.unwrap_or_default(),
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            drain = stopped => Event::Stop(drain),
            () = sleep(stop_at) => Event::Time,
            fates = finished => Event::Finished(fates),
            (answer, seen) = received => Event::Received(answer, seen),
            () = sleep(self.pause) => Event::Again,
        };
        if let Event::Received(..) = event {
            self.receiving = None;
        }
        event
    }

    fn finished(&mut self, fates: &[Fate]) {
        self.tally.add(fates);
        self.told += fates.len() as u64;
        // Whether the queue is empty is judged when nothing runs any more: not only after a long wait.
        if self.until.empty
            && self.tasks.is_empty()
            && let Some(receiving) = &mut self.receiving
        {
            receiving.cease = None;
        }
    }

    /// Judges an empty answer: whether there is nothing more to do, or else how to go on.
    async fn is_empty(&mut self, seen: Seen, stop_at: Option<Duration>) -> Result<bool> {
        let core = Arc::clone(&self.worker.client.core);
        let shortest = Duration::from_millis(1);
        self.wait = Duration::ZERO;
        if let Some(until) = seen.throttled_until {
            self.wait = until.since(core.now()).clamp(shortest, WORKER_WAIT);
            return Ok(false);
        }
        if seen.unfinished {
            return Ok(false);
        }
        if !self.tasks.is_empty() {
            self.wait = WORKER_WAIT;
            return Ok(false);
        }
        let outlook = tokio::select! {
            biased;
            outlook = core.outlook() => outlook,
            // A store that hangs is one that fails: there may be a deadline to keep.
            () = self.clock.sleep(RELEASE_MAX) => {
                self.back_off();
                return Ok(false);
            }
        };
        match outlook {
            // What was scanned was stale, or another was faster: look again.
            Ok(outlook) if outlook.available => self.back_off(),
            Ok(outlook) => match outlook.due {
                Some(due) if self.lingers_for(due, core.now(), stop_at) => {
                    self.wait = due.since(core.now()).clamp(shortest, WORKER_WAIT);
                }
                _ => return Ok(true),
            },
            Err(error) if may_recover(&error) => self.back_off(),
            Err(error) => return Err(error),
        }
        Ok(false)
    }

    fn lingers_for(&self, due: Timestamp, now: Timestamp, stop_at: Option<Duration>) -> bool {
        let wait = due.since(now);
        wait <= self.until.linger && stop_at.is_none_or(|stop| self.elapsed() + wait < stop)
    }

    fn back_off(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let rng = &self.worker.client.core.queue.root.environment().rng;
        let wait = WORKER_BACKOFF.wait(self.failures, rng.as_ref()).unwrap_or_default();
        self.pause = Some(self.elapsed() + wait.max(Duration::from_millis(1)));
    }

    /// Starts work on messages: a task for each call of the handler. In a strict queue, those of a group follow each
    /// other in one task.
    fn start(&mut self, deliveries: Vec<Delivery>, strict: bool) {
        let Some(first) = deliveries.first() else { return };
        self.started += deliveries.len() as u64;
        let core = &self.worker.client.core;
        let visibility = self.worker.options.visibility;
        let visibility = visibility.unwrap_or_else(|| core.queue.known_config().visibility);
        let visibility = Some(visibility).filter(|_| self.worker.options.heartbeat);
        tracing::trace!(count = deliveries.len(), first = %first.id, "received");
        for steps in split(deliveries, self.worker.handling.size(), strict) {
            let worker = Arc::clone(&self.worker);
            let release = self.release.subscribe();
            self.tasks.spawn(Task { worker, steps, visibility, release }.run());
        }
    }

    /// Ends a receive that is under way. What it has claimed is started: there may be time for it, and else it is
    /// given back.
    async fn receive_last(&mut self, strict: bool) {
        let Some(mut receiving) = self.receiving.take() else { return };
        receiving.cease = None;
        let clock = Arc::clone(&self.clock);
        tokio::select! {
            biased;
            (answer, _) = receiving.answer => self.start(answer.unwrap_or_default(), strict),
            () = clock.sleep(RELEASE_MAX) => {}
        }
    }

    /// Lets what runs finish within a time, then gives the rest back. When it returns, nothing runs.
    async fn wind_up(&mut self, drain: Option<Duration>) {
        self.receiving = None;
        let clock = Arc::clone(&self.clock);
        let shut_down = self.stop.clone();
        let over = async {
            match drain {
                Some(drain) => clock.sleep(drain).await,
                None => until_stopped(shut_down, &clock).await,
            }
        };
        if !self.join_all(over).await {
            let _ = self.release.send(true);
            if !self.join_all(clock.sleep(RELEASE_MAX)).await {
                self.tasks.shutdown().await;
            }
        }
        let lost = usize::try_from(self.started - self.told).unwrap_or(0);
        self.tally.add(&vec![Fate::Lost; lost]);
    }

    /// Waits for all tasks until the time is over. Says whether all have ended.
    async fn join_all(&mut self, over: impl Future<Output = ()>) -> bool {
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                finished = self.tasks.join_next() => match finished {
                    Some(fates) => self.finished(&fates.unwrap_or_default()),
                    None => return true,
                },
                () = &mut over => return false,
            }
        }
    }
}

/// What is left to do; nothing when that cannot be found out.
async fn final_outlook(client: &Client, clock: &Arc<dyn Clock>) -> Option<Outlook> {
    let attempts = async {
        let mut failures = 0;
        loop {
            match client.core.outlook().await {
                Ok(outlook) => return Some(outlook),
                Err(error) if !may_recover(&error) => return None,
                Err(_) => failures += 1,
            }
            let rng = &client.core.queue.root.environment().rng;
            let wait = WORKER_BACKOFF.wait(failures, rng.as_ref()).unwrap_or_default();
            clock.sleep(wait.max(Duration::from_millis(1))).await;
        }
    };
    tokio::select! {
        biased;
        outlook = attempts => outlook,
        () = clock.sleep(RELEASE_MAX) => None,
    }
}

/// Waits until a run is told to shut down, and then for as long as it was told.
async fn until_stopped(mut stop: watch::Receiver<Option<Duration>>, clock: &Arc<dyn Clock>) {
    let told = stop.wait_for(Option::is_some).await.map(|told| *told);
    clock.sleep(told.ok().flatten().unwrap_or_default()).await;
}

/// The steps of each task.
fn split(deliveries: Vec<Delivery>, size: usize, strict: bool) -> Vec<Vec<Vec<Delivery>>> {
    if !strict {
        return chunks(deliveries, size).into_iter().map(|chunk| vec![chunk]).collect();
    }
    let mut groups: Vec<(Option<String>, Vec<Delivery>)> = Vec::new();
    for delivery in deliveries {
        match groups.iter_mut().find(|(group, _)| *group == delivery.group) {
            Some((_, all)) => all.push(delivery),
            None => groups.push((delivery.group.clone(), vec![delivery])),
        }
    }
    groups.into_iter().map(|(_, all)| chunks(all, size)).collect()
}

fn chunks(deliveries: Vec<Delivery>, size: usize) -> Vec<Vec<Delivery>> {
    let mut left: VecDeque<Delivery> = deliveries.into();
    let mut chunks = Vec::new();
    while !left.is_empty() {
        let rest = left.split_off(size.clamp(1, left.len()));
        chunks.push(std::mem::replace(&mut left, rest).into());
    }
    chunks
}

/// What must be done now and then, in a task of its own.
struct Upkeep(Option<JoinHandle<()>>);

impl Upkeep {
    fn start(worker: &Worker, clock: &Arc<dyn Clock>) -> Self {
        let (every, clock) = (worker.options.maintain_every, Arc::clone(clock));
        if every.is_zero() {
            return Self(None);
        }
        let client: Client = worker.client.clone();
        Self(Some(tokio::spawn(async move {
            loop {
                clock.sleep(every).await;
                if let Err(error) = client.maintain().await {
                    tracing::debug!(%error, "upkeep failed: it is tried again");
                }
            }
        })))
    }

    /// Ends it, wherever it is: each of its changes is whole.
    async fn end(mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
