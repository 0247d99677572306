//! Group commit: what arrives while an append is in flight becomes the next segment.
//!
//! There is no timer. The first message of an idle lane goes out at once; under load, segments grow as large as
//! the store is slow. Tasks run only while there is something to write, so an idle lane costs nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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

/// How large a segment may be, and how many may be in flight.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub messages_max: usize,
    pub bytes_max: usize,
    /// One where order matters.
    pub in_flight_max: usize,
}

/// Collects messages from many callers into segments.
pub struct GroupCommit<C: Commit>(Arc<Shared<C>>);

struct Shared<C: Commit> {
    commit: C,
    bounds: Bounds,
    queue: Mutex<Queue<C::Position>>,
    room: Arc<Semaphore>,
    room_bytes: Arc<Semaphore>,
}

struct Queue<P> {
    requests: VecDeque<Request<P>>,
    /// Messages in `requests`.
    waiting: usize,
    /// Messages in segments that are being written.
    in_flight: usize,
    /// Tasks that write segments.
    writers: usize,
}

impl<P> Queue<P> {
    /// Whether a further segment should go out beside those in flight: only when it is as large as they are. So the
    /// store always has the next one at hand, and segments stay large.
    const fn is_worth_another(&self) -> bool {
        self.in_flight == 0 || self.waiting >= self.in_flight
    }
}

/// Messages of one call that go into one segment.
struct Request<P> {
    messages: Vec<Message>,
    bytes: usize,
    call: Arc<Call>,
    reply: oneshot::Sender<Result<Vec<P>>>,
}

/// What the requests of one call share.
struct Call {
    /// The first failure: what comes behind it is not tried.
    failed: OnceLock<StoreError>,
    _room: [OwnedSemaphorePermit; 2],
}

impl<C: Commit> GroupCommit<C> {
    pub fn new(commit: C, bounds: Bounds) -> Self {
        let queue = Queue { requests: VecDeque::new(), waiting: 0, in_flight: 0, writers: 0 };
        Self(Arc::new(Shared {
            commit,
            bounds,
            queue: Mutex::new(queue),
            room: Arc::new(Semaphore::new(APPENDS_WAITING_MAX)),
            room_bytes: Arc::new(Semaphore::new(APPEND_BYTES_WAITING_MAX)),
        }))
    }

    pub fn commit(&self) -> &C {
        &self.0.commit
    }

    /// Appends `messages`, with an outcome for each. With one segment in flight at a time they keep their order,
    /// and behind one that fails none of the same call is tried.
    pub async fn append(&self, messages: Vec<Message>) -> Result<Vec<Result<C::Position>>> {
        messages.iter().try_for_each(Message::check)?;
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = messages.iter().map(Message::size).sum::<usize>();
        let mut outcomes = Vec::with_capacity(messages.len());
        let room = reserve(&self.0.room, messages.len(), APPENDS_WAITING_MAX).await;
        let room_bytes = reserve(&self.0.room_bytes, bytes, APPEND_BYTES_WAITING_MAX).await;
        let call = Arc::new(Call { failed: OnceLock::new(), _room: [room, room_bytes] });
        for (count, reply) in self.submit(messages, &call) {
            match reply.await.unwrap_or_else(|_| Err(writer_ended())) {
                Ok(positions) => outcomes.extend(positions.into_iter().map(Ok)),
                Err(error) => outcomes.extend((0..count).map(|_| Err(error.clone()))),
            }
        }
        Ok(outcomes)
    }

    /// Puts a call's messages into the queue, cut where a segment would be full, and sees that somebody writes.
    #[expect(clippy::type_complexity, reason = "it is read in one place, right above")]
    fn submit(
        &self,
        messages: Vec<Message>,
        call: &Arc<Call>,
    ) -> Vec<(usize, oneshot::Receiver<Result<Vec<C::Position>>>)> {
        let mut replies = Vec::new();
        let mut queue = self.0.lock();
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let (mut part, mut bytes) = (Vec::new(), 0);
            while let Some(message) =
                messages.next_if(|next| self.0.bounds.fits(part.len() + 1, bytes + next.size()))
            {
                bytes += message.size();
                part.push(message);
            }
            if part.is_empty() {
                // Larger than a segment should be: it has one of its own.
                part.extend(messages.next());
                bytes = part.iter().map(Message::size).sum();
            }
            let (reply, receiver) = oneshot::channel();
            replies.push((part.len(), receiver));
            queue.waiting += part.len();
            let call = Arc::clone(call);
            queue.requests.push_back(Request { messages: part, bytes, call, reply });
        }
        let may_start = queue.writers < self.0.bounds.in_flight_max.max(1);
        if queue.writers == 0 || (may_start && queue.is_worth_another()) {
            queue.writers += 1;
            tokio::spawn(write_segments(Arc::clone(&self.0)));
        }
        replies
    }
}

impl Bounds {
    const fn fits(&self, messages: usize, bytes: usize) -> bool {
        messages <= self.messages_max && bytes <= self.bytes_max
    }
}

impl<C: Commit> fmt::Debug for GroupCommit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").field("bounds", &self.0.bounds).finish_non_exhaustive()
    }
}

/// Room for `wanted`, or for all there is when that is less.
async fn reserve(room: &Arc<Semaphore>, wanted: usize, most: usize) -> OwnedSemaphorePermit {
    let wanted = u32::try_from(wanted.clamp(1, most)).expect("the bounds are far below 2^32");
    Arc::clone(room).acquire_many_owned(wanted).await.expect("the semaphore is never closed")
}

/// Writes segments until nothing waits.
async fn write_segments<C: Commit>(shared: Arc<Shared<C>>) {
    let mut writer = Writer { shared: &shared, in_flight: 0, finished: false };
    while let Some(requests) = shared.next_segment(&mut writer.in_flight) {
        let mut messages = Vec::with_capacity(writer.in_flight);
        let mut waiting = Vec::with_capacity(requests.len());
        for request in requests {
            waiting.push((request.messages.len(), request.call, request.reply));
            messages.extend(request.messages);
        }
        let mut outcome = shared.commit.commit(messages).await.map(Vec::into_iter);
        for (count, call, reply) in waiting {
            let answer = match &mut outcome {
                Ok(positions) => Ok(positions.by_ref().take(count).collect()),
                Err(error) => Err(call.failed.get_or_init(|| error.clone()).clone()),
            };
            // A caller that has gone away does not want to know.
            let _ = reply.send(answer);
        }
    }
    writer.finished = true;
}

/// Lets others write when this writer ends by a panic; those who waited learn that the outcome is unknown.
struct Writer<'a, C: Commit> {
    shared: &'a Shared<C>,
    /// Messages in the segment that it writes.
    in_flight: usize,
    finished: bool,
}

impl<C: Commit> Drop for Writer<'_, C> {
    fn drop(&mut self) {
        if !self.finished {
            let mut queue = self.shared.lock();
            queue.requests.clear();
            queue.waiting = 0;
            queue.in_flight -= self.in_flight;
            queue.writers -= 1;
        }
    }
}

impl<C: Commit> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, Queue<C::Position>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what fits into one segment; nothing, and the writer's end, when there is nothing to do for it.
    fn next_segment(&self, in_flight: &mut usize) -> Option<Vec<Request<C::Position>>> {
        let mut queue = self.lock();
        queue.in_flight -= std::mem::take(in_flight);
        let mut taken: Vec<Request<C::Position>> = Vec::new();
        let mut bytes = 0;
        while let Some(next) = queue.requests.front() {
            let failed = next.call.failed.get().map(not_tried);
            let fits = self.bounds.fits(*in_flight + next.messages.len(), bytes + next.bytes);
            let starts = taken.is_empty() && queue.is_worth_another();
            if failed.is_none() && !starts && (taken.is_empty() || !fits) {
                break;
            }
            let Some(request) = queue.requests.pop_front() else { break };
            queue.waiting -= request.messages.len();
            match failed {
                Some(error) => {
                    let _ = request.reply.send(Err(error));
                }
                None => {
                    *in_flight += request.messages.len();
                    bytes += request.bytes;
                    taken.push(request);
                }
            }
        }
        queue.in_flight += *in_flight;
        if taken.is_empty() {
            queue.writers -= 1;
            return None;
        }
        Some(taken)
    }
}

fn writer_ended() -> StoreError {
    StoreError::UnknownOutcome {
        operation: "append",
        detail: "the lane's writer ended before it could say".to_owned(),
        cause: None,
    }
}

fn not_tried(before: &StoreError) -> StoreError {
    StoreError::Unavailable {
        operation: "append",
        detail: format!("not tried, because an earlier message of the same call failed: {before}"),
        cause: Some(Arc::new(before.clone())),
    }
}
