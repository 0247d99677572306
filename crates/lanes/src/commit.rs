//! Group commit: what arrives while an append is in flight becomes the next segment.
//!
//! There is no timer. The first message of an idle lane goes out at once; under load, segments grow as large as
//! the store is slow. A task runs only while there is something to write, so an idle lane costs nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millpond_store::{Result, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::limits::{APPEND_BYTES_WAITING_MAX, APPENDS_WAITING_MAX};
use crate::message::Message;

/// Writes one segment.
pub trait Commit: Send + Sync + 'static {
    /// Where a message ends up.
    type Position: Send + 'static;

    /// Appends `messages` as one segment and returns the position of each, in order.
    fn commit(
        &self,
        messages: Vec<Message>,
    ) -> impl Future<Output = Result<Vec<Self::Position>>> + Send;
}

/// Collects messages from many callers into segments.
pub struct GroupCommit<C: Commit>(Arc<Shared<C>>);

struct Shared<C: Commit> {
    commit: C,
    messages_max: usize,
    bytes_max: usize,
    queue: Mutex<Queue<C::Position>>,
    room: Arc<Semaphore>,
    room_bytes: Arc<Semaphore>,
}

struct Queue<P> {
    requests: VecDeque<Request<P>>,
    running: bool,
}

struct Request<P> {
    messages: VecDeque<Message>,
    outcomes: Vec<Result<P>>,
    reply: oneshot::Sender<Vec<Result<P>>>,
    _room: [OwnedSemaphorePermit; 2],
}

impl<C: Commit> GroupCommit<C> {
    pub fn new(commit: C, messages_max: usize, bytes_max: usize) -> Self {
        Self(Arc::new(Shared {
            commit,
            messages_max: messages_max.max(1),
            bytes_max,
            queue: Mutex::new(Queue { requests: VecDeque::new(), running: false }),
            room: Arc::new(Semaphore::new(APPENDS_WAITING_MAX)),
            room_bytes: Arc::new(Semaphore::new(APPEND_BYTES_WAITING_MAX)),
        }))
    }

    pub fn commit(&self) -> &C {
        &self.0.commit
    }

    /// Appends `messages` in order, with an outcome for each. When one fails, those behind it in the same call are
    /// not tried, so that order is kept.
    pub async fn append(&self, messages: Vec<Message>) -> Result<Vec<Result<C::Position>>> {
        messages.iter().try_for_each(Message::check)?;
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = messages.iter().map(Message::size).sum::<usize>();
        let room = reserve(&self.0.room, messages.len(), APPENDS_WAITING_MAX).await;
        let room_bytes = reserve(&self.0.room_bytes, bytes, APPEND_BYTES_WAITING_MAX).await;
        let (reply, outcomes) = oneshot::channel();
        let request = Request {
            outcomes: Vec::with_capacity(messages.len()),
            messages: messages.into(),
            reply,
            _room: [room, room_bytes],
        };
        let start = {
            let mut queue = self.0.lock();
            queue.requests.push_back(request);
            !std::mem::replace(&mut queue.running, true)
        };
        if start {
            tokio::spawn(drain(Arc::clone(&self.0)));
        }
        outcomes.await.map_err(|_| StoreError::UnknownOutcome {
            operation: "append",
            detail: "the lane's writer ended before it could say".to_owned(),
            cause: None,
        })
    }
}

impl<C: Commit> fmt::Debug for GroupCommit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

/// Room for `wanted`, or for all there is when that is less.
async fn reserve(room: &Arc<Semaphore>, wanted: usize, most: usize) -> OwnedSemaphorePermit {
    let wanted = u32::try_from(wanted.clamp(1, most)).expect("the bounds are far below 2^32");
    Arc::clone(room).acquire_many_owned(wanted).await.expect("the semaphore is never closed")
}

/// Writes segments until nothing waits.
async fn drain<C: Commit>(shared: Arc<Shared<C>>) {
    let mut running = Running { shared: &shared, finished: false };
    while let Some(batch) = shared.next_batch() {
        let Batch { messages, complete, partial } = batch;
        let outcome = shared.commit.commit(messages).await;
        shared.settle(complete, partial, outcome);
    }
    running.finished = true;
}

/// Lets the next caller start a writer when this one ends by a panic; those who waited learn that the outcome is
/// unknown.
struct Running<'a, C: Commit> {
    shared: &'a Shared<C>,
    finished: bool,
}

impl<C: Commit> Drop for Running<'_, C> {
    fn drop(&mut self) {
        if !self.finished {
            let mut queue = self.shared.lock();
            queue.requests.clear();
            queue.running = false;
        }
    }
}

/// One segment's messages, the requests they complete (each with how many of its messages are in this segment),
/// and how many are of the request that stays at the front.
struct Batch<P> {
    messages: Vec<Message>,
    complete: Vec<(Request<P>, usize)>,
    partial: usize,
}

impl<C: Commit> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, Queue<C::Position>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what fits into one segment; nothing, and the writer's end, when nothing waits.
    fn next_batch(&self) -> Option<Batch<C::Position>> {
        let mut queue = self.lock();
        let mut batch = Batch { messages: Vec::new(), complete: Vec::new(), partial: 0 };
        let mut bytes = 0;
        while let Some(request) = queue.requests.front_mut() {
            let mut taken = 0;
            while let Some(message) = request.messages.front() {
                let full = batch.messages.len() >= self.messages_max
                    || (!batch.messages.is_empty() && bytes + message.size() > self.bytes_max);
                if full {
                    batch.partial = taken;
                    return Some(batch);
                }
                bytes += message.size();
                batch.messages.extend(request.messages.pop_front());
                taken += 1;
            }
            batch.complete.extend(queue.requests.pop_front().map(|request| (request, taken)));
        }
        queue.running = !batch.messages.is_empty();
        queue.running.then_some(batch)
    }

    fn settle(
        &self,
        complete: Vec<(Request<C::Position>, usize)>,
        partial: usize,
        outcome: Result<Vec<C::Position>>,
    ) {
        let mut positions = match outcome {
            Ok(positions) => Ok(positions.into_iter()),
            Err(error) => Err(error),
        };
        let mut outcomes_of =
            |request: &mut Request<C::Position>, taken: usize| match &mut positions {
                Ok(positions) => request.outcomes.extend(positions.by_ref().take(taken).map(Ok)),
                Err(error) => request.outcomes.extend((0..taken).map(|_| Err(error.clone()))),
            };
        for (mut request, taken) in complete {
            outcomes_of(&mut request, taken);
            // A caller that has gone away does not want to know.
            let _ = request.reply.send(request.outcomes);
        }
        if partial == 0 {
            return;
        }
        let mut queue = self.lock();
        let Some(front) = queue.requests.front_mut() else { return };
        outcomes_of(front, partial);
        let Err(error) = positions else { return };
        let rest = front.messages.len();
        front.outcomes.extend((0..rest).map(|_| Err(not_tried(&error))));
        if let Some(failed) = queue.requests.pop_front() {
            let _ = failed.reply.send(failed.outcomes);
        }
    }
}

fn not_tried(before: &StoreError) -> StoreError {
    StoreError::Unavailable {
        operation: "append",
        detail: format!("not tried, because an earlier message of the same call failed: {before}"),
        cause: Some(Arc::new(before.clone())),
    }
}
