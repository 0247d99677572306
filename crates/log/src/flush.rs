//! Flushing: what waits for idle partitions goes out together, with one object for all of it.
//!
//! Each partition has one flush in flight at a time, which keeps its order; what arrives meanwhile becomes its next
//! segment. Partitions do not wait for each other: a flush takes what waits for those that are idle.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::future::{join, join_all};
use millpond_lanes::limits::LOG_SEGMENT_MESSAGES_MAX;
use millpond_lanes::{Append, LaneConfig, Message, Refusal, SequencedLane, Terms};
use millpond_store::{Backoff, Certainty, Environment, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::{LogError, Result};
use crate::limits::APPEND_BYTES_WAITING_MAX;
use crate::log::Log;
use crate::topic::Lanes;

/// Records for one partition.
#[derive(Debug)]
pub(crate) struct Part {
    pub partition: u32,
    pub messages: Vec<Message>,
    /// With terms, the part is a segment of its own.
    pub terms: Option<Terms>,
}

/// Records of a part that go into one segment, and where its first offset will be told.
pub(crate) type Replies = Vec<(usize, oneshot::Receiver<Result<u64>>)>;

pub(crate) struct Flusher(Arc<Shared>);

struct Shared {
    lanes: Arc<Lanes>,
    environment: Environment,
    backoff: Backoff,
    config: LaneConfig,
    queue: Mutex<BTreeMap<u32, Waiting>>,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Request>,
    busy: bool,
}

struct Request {
    messages: Vec<Message>,
    bytes: usize,
    terms: Option<Terms>,
    answer: Answer,
}

struct Answer {
    count: usize,
    reply: oneshot::Sender<Result<u64>>,
    /// The first failure among the segments of one part: what comes behind it is not tried.
    failed: Arc<OnceLock<LogError>>,
    _room: Arc<OwnedSemaphorePermit>,
}

/// One segment on its way.
struct Job {
    busy: Busy,
    lane: Arc<SequencedLane>,
    append: Append,
    answers: Vec<Answer>,
}

/// Holds a partition; lets it go, and the next flush begin, also when the flush panics.
struct Busy {
    shared: Arc<Shared>,
    partition: u32,
}

impl Drop for Busy {
    fn drop(&mut self) {
        {
            let mut queue = self.shared.lock();
            if let Some(waiting) = queue.get_mut(&self.partition) {
                waiting.busy = false;
                if waiting.requests.is_empty() {
                    queue.remove(&self.partition);
                }
            }
        }
        start(&self.shared);
    }
}

impl Flusher {
    pub fn new(lanes: &Arc<Lanes>, config: LaneConfig, log: &Log) -> Self {
        Self(Arc::new(Shared {
            lanes: Arc::clone(lanes),
            environment: log.0.ground.environment.clone(),
            backoff: log.0.options.backoff,
            config,
            queue: Mutex::default(),
            room: Arc::new(Semaphore::new(APPEND_BYTES_WAITING_MAX)),
        }))
    }

    /// Puts parts into the queue, all at once, and sees that they are written. Waits while too much waits already.
    pub async fn submit(&self, parts: Vec<Part>) -> Vec<Replies> {
        let bytes = parts.iter().flat_map(|part| &part.messages).map(Message::size).sum::<usize>();
        let bytes = u32::try_from(bytes.clamp(1, APPEND_BYTES_WAITING_MAX))
            .expect("the bound is far below 2^32");
        let room = Arc::clone(&self.0.room).acquire_many_owned(bytes).await;
        let room = Arc::new(room.expect("the semaphore is never closed"));
        let replies = {
            let mut queue = self.0.lock();
            parts.into_iter().map(|part| self.0.enqueue(&mut queue, part, &room)).collect()
        };
        start(&self.0);
        replies
    }
}

/// Begins a flush of what waits for idle partitions, if anything does.
fn start(shared: &Arc<Shared>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        // The runtime is going down, and who waited with it.
        shared.lock().clear();
        return;
    };
    let jobs = take(shared);
    if !jobs.is_empty() {
        // It ends by itself: a flush is bounded by its retries, and whoever waits for it is told.
        drop(runtime.spawn(flush(Arc::clone(shared), jobs)));
    }
}

/// Takes what fits into one segment for each idle partition.
fn take(shared: &Arc<Shared>) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut queue = shared.lock();
    for (partition, waiting) in queue.iter_mut() {
        if waiting.busy {
            continue;
        }
        let Some((messages, terms, answers)) = next_segment(shared, waiting) else { continue };
        let made = shared.lanes.lane(*partition).and_then(|lane| {
            let append = Append::new(&shared.environment, &messages)?;
            Ok((lane, append.under(terms.unwrap_or_default())))
        });
        match made {
            Ok((lane, append)) => {
                waiting.busy = true;
                let busy = Busy { shared: Arc::clone(shared), partition: *partition };
                jobs.push(Job { busy, lane, append, answers });
            }
            Err(error) => tell(answers, &Err(error)),
        }
    }
    jobs
}

type NextSegment = (Vec<Message>, Option<Terms>, Vec<Answer>);

fn next_segment(shared: &Shared, waiting: &mut Waiting) -> Option<NextSegment> {
    let (mut messages, mut answers, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(next) = waiting.requests.front() {
        let fits = shared.fits(messages.len() + next.messages.len(), bytes + next.bytes);
        let joins = answers.is_empty() || (fits && next.terms.is_none());
        let failed = next.answer.failed.get().cloned();
        if failed.is_none() && !joins {
            break;
        }
        let Some(request) = waiting.requests.pop_front() else { break };
        if let Some(error) = failed {
            tell(vec![request.answer], &Err(error));
            continue;
        }
        bytes += request.bytes;
        messages.extend(request.messages);
        answers.push(request.answer);
        if request.terms.is_some() {
            return Some((messages, request.terms, answers));
        }
    }
    (!answers.is_empty()).then_some((messages, None, answers))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Waiting>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn fits(&self, messages: usize, bytes: usize) -> bool {
        messages <= LOG_SEGMENT_MESSAGES_MAX && bytes <= self.config.segment_bytes_max
    }

    /// Puts a part into the queue, cut where a segment would be full.
    fn enqueue(
        &self,
        queue: &mut BTreeMap<u32, Waiting>,
        part: Part,
        room: &Arc<OwnedSemaphorePermit>,
    ) -> Replies {
        let waiting = queue.entry(part.partition).or_default();
        let failed = Arc::new(OnceLock::new());
        let mut replies = Vec::new();
        let mut messages = part.messages.into_iter().peekable();
        while messages.peek().is_some() {
            let (mut taken, mut bytes) = (Vec::new(), 0);
            while let Some(message) = messages.next_if(|next| {
                part.terms.is_some()
                    || taken.is_empty()
                    || self.fits(taken.len() + 1, bytes + next.size())
            }) {
                bytes += message.size();
                taken.push(message);
            }
            let (reply, receiver) = oneshot::channel();
            replies.push((taken.len(), receiver));
            let (failed, room) = (Arc::clone(&failed), Arc::clone(room));
            let answer = Answer { count: taken.len(), reply, failed, _room: room };
            let terms = part.terms.clone();
            waiting.requests.push_back(Request { messages: taken, bytes, terms, answer });
        }
        replies
    }

    /// Waits before the next attempt; says when there should be none.
    async fn wait(&self, attempts: u32, error: &StoreError) -> bool {
        let wait = self.backoff.wait(attempts, self.environment.rng.as_ref());
        match wait.filter(|_| error.is_transient()) {
            Some(wait) => {
                tracing::debug!(attempts, %error, "a flush is tried again");
                self.environment.clock.sleep(wait).await;
                true
            }
            None => false,
        }
    }

    /// Writes one object for all of these, if they are worth one.
    async fn stow(&self, jobs: &mut [Job]) -> Result<(), StoreError> {
        let Some(shelf) = &self.lanes.shelf else { return Ok(()) };
        let bytes: usize = jobs.iter().map(|job| job.append.stored_len()).sum();
        if bytes < self.config.object_bytes_min {
            return Ok(());
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            match shelf.stow(jobs.iter_mut().map(|job| &mut job.append)).await {
                Err(error) if self.wait(attempts, &error).await => {}
                outcome => return outcome,
            }
        }
    }

    /// Writes one row, with the same append as often as it takes to know its outcome.
    async fn append(&self, mut job: Job) {
        let (mut attempts, mut uncertain) = (0, false);
        let outcome = loop {
            attempts += 1;
            let error = match job.lane.append_under_terms(&mut job.append).await {
                Ok(first) => break Ok(first),
                Err(Refusal::Fenced { current }) => {
                    let token = job.append.fence().unwrap_or_default();
                    break Err(LogError::Fenced { token, current });
                }
                Err(Refusal::Beside(error) | Refusal::Store(error)) => error,
            };
            uncertain |= error.certainty() == Certainty::Unknown;
            if !self.wait(attempts, &error).await {
                break Err(error.into());
            }
            // Its object may have grown too old meanwhile.
            match self.stow(std::slice::from_mut(&mut job)).await {
                Err(error) if uncertain => break Err(error.after_unknown("append").into()),
                Err(error) => break Err(error.into()),
                Ok(()) => {}
            }
        };
        tell(job.answers, &outcome);
        // Told first: who waits for this segment may bring the next one along.
        drop(job.busy);
    }
}

async fn flush(shared: Arc<Shared>, jobs: Vec<Job>) {
    let needs_room = |job: &Job| job.lane.needs_room(&job.append).unwrap_or(true);
    let (mut outside, inside): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(needs_room);
    let inside = join_all(inside.into_iter().map(|job| shared.append(job)));
    let outside = async {
        match shared.stow(&mut outside).await {
            Ok(()) => drop(join_all(outside.into_iter().map(|job| shared.append(job))).await),
            Err(error) => outside
                .into_iter()
                .for_each(|job| tell(job.answers, &Err(LogError::Store(error.clone())))),
        }
    };
    join(inside, outside).await;
}

/// Answers those whose records are in one segment, in order.
fn tell(answers: Vec<Answer>, outcome: &Result<u64>) {
    let mut before = 0;
    for answer in answers {
        if let Err(error) = outcome {
            let _ = answer.failed.set(error.clone());
        }
        // A caller that has gone away does not want to know.
        let _ = answer.reply.send(outcome.clone().map(|first| first + before));
        before += answer.count as u64;
    }
}

impl fmt::Debug for Flusher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flusher").field("config", &self.0.config).finish_non_exhaustive()
    }
}
