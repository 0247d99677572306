//! A producer that collects records into batches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use millpond_lanes::Message;
use millpond_store::Monotonic;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::append::{Position, positions};
use crate::error::{LogError, Result};
use crate::flush::Part;
use crate::limits::{APPEND_BYTES_WAITING_MAX, LINGER_MAX, SEGMENT_BYTES_MAX};
use crate::partitioner::partition_of;
use crate::record::NewRecord;
use crate::topic::Topic;

/// How a producer collects.
#[derive(Debug, Clone, Copy)]
pub struct ProducerOptions {
    /// How long the first record of a batch waits for company. Default: the topic's.
    pub linger: Option<Duration>,
    /// A batch of this many bytes, over all partitions, goes at once. Default: 1 MiB.
    pub batch_bytes: usize,
    /// Most bytes that are sent and not yet stored; who sends more waits. Default: 16 MiB.
    pub buffer_bytes: usize,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self { linger: None, batch_bytes: 1_024 * 1_024, buffer_bytes: 16 * 1_024 * 1_024 }
    }
}

/// Collects records into batches, by time and size, and appends them in the order in which they were sent. While a
/// batch of a partition is on its way, also while it is tried again, later ones of that partition wait, and those of
/// others do not.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// Tells what became of a record.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Result<Position>>);

impl Receipt {
    /// Waits until the record is stored.
    ///
    /// # Errors
    /// As [`Topic::append`], and [`LogError::NotTried`] when an earlier record of the same partition failed.
    pub async fn stored(self) -> Result<Position> {
        self.0.await.unwrap_or(Err(LogError::Closed { what: "producer" }))
    }
}

#[derive(Debug)]
struct Shared {
    topic: Topic,
    linger: Duration,
    options: ProducerOptions,
    room: Arc<Semaphore>,
    state: Mutex<State>,
    /// Something was sent, or is to be flushed or closed.
    called: Notify,
    /// Something was settled.
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<u32, Vec<Pending>>,
    waiting_bytes: usize,
    /// When the oldest record that waits was sent.
    oldest: Option<Monotonic>,
    in_flight: BTreeSet<u32>,
    sent: u64,
    unsettled: BTreeSet<u64>,
    flushes: usize,
    failure: Option<LogError>,
    closed: bool,
}

#[derive(Debug)]
struct Pending {
    number: u64,
    message: Message,
    reply: oneshot::Sender<Result<Position>>,
    _room: OwnedSemaphorePermit,
}

impl Topic {
    /// A producer for this topic.
    ///
    /// # Errors
    /// [`LogError::Invalid`] or [`LogError::TooLarge`] for options that cannot be.
    pub fn producer(&self, options: ProducerOptions) -> Result<Producer> {
        let linger = options.linger.unwrap_or(self.config().linger);
        if linger > LINGER_MAX {
            let problem = format!("is {linger:?}, the limit is {LINGER_MAX:?}");
            return Err(LogError::invalid("linger", problem));
        }
        LogError::check_size("batch_bytes", options.batch_bytes, SEGMENT_BYTES_MAX)?;
        LogError::check_size("buffer_bytes", options.buffer_bytes, APPEND_BYTES_WAITING_MAX)?;
        if options.buffer_bytes == 0 {
            return Err(LogError::invalid("buffer_bytes", "is zero"));
        }
        let shared = Arc::new(Shared {
            topic: self.clone(),
            linger,
            options,
            room: Arc::new(Semaphore::new(options.buffer_bytes)),
            state: Mutex::default(),
            called: Notify::new(),
            settled: Notify::new(),
        });
        let task = tokio::spawn(collect(Arc::clone(&shared)));
        Ok(Producer { shared, task })
    }
}

impl Producer {
    /// Sends a record. It returns once there is room for it; the receipt tells when it is stored.
    ///
    /// # Errors
    /// When the record is too large or the producer is closed: then it was not sent.
    pub async fn send(&self, record: NewRecord) -> Result<Receipt> {
        let shared = &self.shared;
        let partitions = shared.topic.recent().await?.config.partitions;
        let key = record.key.clone();
        let message = record.into_message()?;
        let bytes = u32::try_from(message.size().clamp(1, shared.options.buffer_bytes))
            .expect("the bound is far below 2^32");
        let room = Arc::clone(&shared.room).acquire_many_owned(bytes).await;
        let room = room.map_err(|_| LogError::Closed { what: "producer" })?;
        let (reply, receipt) = oneshot::channel();
        {
            let mut state = shared.lock();
            if state.closed {
                return Err(LogError::Closed { what: "producer" });
            }
            let partition = match &key {
                Some(key) => partition_of(key, partitions),
                // Without a key, all of a batch goes to one partition.
                None => match state.waiting.last_key_value() {
                    Some((partition, _)) => *partition,
                    None => shared.topic.next_turn(partitions),
                },
            };
            let number = state.sent;
            state.sent += 1;
            state.unsettled.insert(number);
            state.waiting_bytes += message.size();
            let now = shared.topic.environment().clock.monotonic();
            state.oldest.get_or_insert(now);
            let pending = Pending { number, message, reply, _room: room };
            state.waiting.entry(partition).or_default().push(pending);
        }
        shared.called.notify_one();
        Ok(Receipt(receipt))
    }

    /// Waits until everything that was sent before is stored or has failed.
    ///
    /// # Errors
    /// The first failure since the last flush. Receipts tell about each record.
    pub async fn flush(&self) -> Result<()> {
        self.shared.flush().await
    }

    /// Flushes, and ends.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub async fn close(mut self) -> Result<()> {
        self.shared.lock().closed = true;
        let flushed = self.shared.flush().await;
        self.shared.called.notify_one();
        // The task ends once nothing is left; if it panicked, there is nothing left either.
        let _ = (&mut self.task).await;
        flushed
    }
}

impl Drop for Producer {
    /// Records that were not flushed may or may not be stored.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn flush(&self) -> Result<()> {
        let until = {
            let mut state = self.lock();
            state.flushes += 1;
            state.sent
        };
        self.called.notify_one();
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            // Listen before looking, so that what settles in between is not missed.
            settled.as_mut().enable();
            {
                let mut state = self.lock();
                if state.unsettled.first().is_none_or(|first| *first >= until) {
                    state.flushes -= 1;
                    return state.failure.take().map_or(Ok(()), Err);
                }
            }
            settled.await;
        }
    }

    /// What should go now; and otherwise how long until it should, if anything waits.
    fn take_due(&self) -> (Vec<(u32, Vec<Pending>)>, Option<Duration>) {
        let now = self.topic.environment().clock.monotonic();
        let mut state = self.lock();
        let Some(oldest) = state.oldest else { return (Vec::new(), None) };
        let left = self.linger.saturating_sub(now.since(oldest));
        let is_full = state.waiting_bytes >= self.options.batch_bytes;
        if !(left.is_zero() || is_full || state.flushes > 0 || state.closed) {
            return (Vec::new(), Some(left));
        }
        let State { waiting, in_flight, .. } = &mut *state;
        let idle: Vec<u32> =
            waiting.keys().filter(|partition| !in_flight.contains(partition)).copied().collect();
        let mut due = Vec::new();
        for partition in idle {
            if let Some(pending) = waiting.remove(&partition) {
                in_flight.insert(partition);
                due.push((partition, pending));
            }
        }
        // What waits for a partition that is busy goes as soon as that is idle.
        let bytes =
            |pending: &Vec<Pending>| pending.iter().map(|p| p.message.size()).sum::<usize>();
        state.waiting_bytes = state.waiting.values().map(bytes).sum();
        if state.waiting.is_empty() {
            state.oldest = None;
        }
        (due, None)
    }

    /// Tells what became of a batch; behind a failure, what waits for the same partition is not tried.
    fn settle(&self, partition: u32, batch: Vec<Waiter>, outcomes: Vec<Result<Position>>) {
        let mut state = self.lock();
        state.in_flight.remove(&partition);
        let mut failure = None;
        let unknown = || Err(LogError::Closed { what: "producer" });
        let mut outcomes = outcomes.into_iter();
        for (number, reply, _room) in batch {
            let outcome = outcomes.next().unwrap_or_else(unknown);
            if let Err(error) = &outcome {
                failure.get_or_insert(error.clone());
            }
            state.unsettled.remove(&number);
            let _ = reply.send(outcome);
        }
        if let Some(before) = failure {
            for pending in state.waiting.remove(&partition).unwrap_or_default() {
                state.waiting_bytes = state.waiting_bytes.saturating_sub(pending.message.size());
                state.unsettled.remove(&pending.number);
                let before = Box::new(before.clone());
                let _ = pending.reply.send(Err(LogError::NotTried { partition, before }));
            }
            if state.waiting.is_empty() {
                state.oldest = None;
            }
            state.failure.get_or_insert(before);
        }
        drop(state);
        self.settled.notify_waiters();
    }

    fn is_finished(&self) -> bool {
        let state = self.lock();
        state.closed && state.unsettled.is_empty()
    }
}

/// Who waits for a record of a batch that is on its way.
type Waiter = (u64, oneshot::Sender<Result<Position>>, OwnedSemaphorePermit);

/// Sends batches until the producer is closed and everything is settled.
async fn collect(shared: Arc<Shared>) {
    let clock = Arc::clone(&shared.topic.environment().clock);
    let mut in_flight = FuturesUnordered::new();
    while !shared.is_finished() {
        let (due, left) = shared.take_due();
        if !due.is_empty() {
            let mut parts = Vec::with_capacity(due.len());
            let mut waiters = Vec::with_capacity(due.len());
            for (partition, pending) in due {
                let (mut messages, mut waiting) = (Vec::new(), Vec::new());
                for Pending { number, message, reply, _room } in pending {
                    messages.push(message);
                    waiting.push((number, reply, _room));
                }
                parts.push(Part { partition, messages, terms: None });
                waiters.push((partition, waiting));
            }
            // All at once, so that they share an object.
            let replies = shared.topic.0.flusher.submit(parts).await;
            for ((partition, waiting), replies) in waiters.into_iter().zip(replies) {
                let stored = positions(partition, replies);
                in_flight.push(stored.map(move |outcomes| (partition, waiting, outcomes)).boxed());
            }
            continue;
        }
        let lingered = async {
            match left {
                Some(left) => clock.sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some((partition, waiting, outcomes)) = in_flight.next(), if !in_flight.is_empty() => {
                shared.settle(partition, waiting, outcomes);
            }
            () = shared.called.notified() => {}
            () = lingered => {}
        }
    }
}
