//! The one writer: a thread that takes all requests that wait, commits them together, and then answers them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use millpond_store::{Partition, Result, StoreError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::acked::{Acked, AckedFile};
use crate::batch::{Batch, Changes, Prepared};
use crate::cargo::{Hold, Moved};
use crate::commits::{self, CommitRow};
use crate::engine::{EngineError, RowChange, Table, panic_text};
use crate::limits::{BATCH_BYTES_MAX, BATCH_REQUESTS_MAX, COMMITS_BETWEEN_FLUSHES};
use crate::record::{self, Row};
use crate::shared::{Shared, Sight};

/// What the writer is asked to do.
#[derive(Debug)]
pub(crate) enum Work {
    /// Writes, all or none.
    Group(Vec<Prepared>),
    /// Writes, each by itself.
    Each(Vec<Prepared>),
    /// Removal of expired items, by their keys in the expiry table.
    Sweep(Vec<Bytes>),
    /// A commit of nothing but fences, so that readers leave older views.
    Renew,
    /// Moving rows out of a cargo file.
    Move(Vec<Moved>),
    /// A look for the cargo file that is most worth moving rows out of.
    FindWasteful,
}

/// The answers: one for each of independent writes, one for anything else. A count, or the number of a cargo file, 0
/// being none.
pub(crate) type Outcomes = Vec<Result<usize>>;

#[derive(Debug)]
pub(crate) struct Request {
    pub work: Work,
    pub reply: oneshot::Sender<Outcomes>,
    /// The share of the memory for waiting requests.
    pub _room: Option<OwnedSemaphorePermit>,
}

impl Request {
    fn partitions(&self) -> impl Iterator<Item = &Partition> {
        let writes = match &self.work {
            Work::Group(writes) | Work::Each(writes) => writes.as_slice(),
            Work::Sweep(_) | Work::Renew | Work::Move(_) | Work::FindWasteful => &[],
        };
        writes.iter().map(|write| &write.write.key.partition)
    }
}

pub(crate) struct Writer {
    pub shared: Arc<Shared>,
    pub acked: AckedFile,
    /// Whether commits are synced.
    pub synced: bool,
    /// The number of the last commit.
    pub commit: u64,
    pub hold: Hold,
}

impl Writer {
    /// Serves until all senders are gone, or until something fails; then refuses what still comes.
    pub(crate) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        self.serve(&mut requests);
        requests.close();
        while let Some(request) = requests.blocking_recv() {
            self.refuse(request);
        }
    }

    fn refuse(&self, request: Request) {
        let refusals = match &request.work {
            Work::Each(writes) => writes.len(),
            _ => 1,
        };
        let refusal = || self.shared.check_running().map(|()| 0);
        // Who does not wait any more needs no answer, here and below.
        let _ = request.reply.send((0..refusals).map(|_| refusal()).collect());
    }

    fn serve(&mut self, requests: &mut mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            // Nobody may learn that a commit failed before the store has stopped, so what holds their replies
            // outlives a panic.
            let mut answers = Vec::new();
            let work = AssertUnwindSafe(|| self.work(first, requests, &mut answers));
            match catch_unwind(work) {
                Ok(Ok(())) => answer(&self.shared, answers),
                Ok(Err(error)) => {
                    self.shared.stop(format!("commit {} failed: {error}", self.commit));
                    return answer_failure(&self.shared, answers, &Arc::new(error));
                }
                Err(panic) => {
                    return self
                        .shared
                        .stop(format!("its writer panicked: {}", panic_text(&*panic)));
                }
            }
        }
    }

    /// Decides on all requests that wait, and commits what they change.
    fn work(
        &mut self,
        first: Request,
        requests: &mut mpsc::Receiver<Request>,
        answers: &mut Vec<(Request, Outcomes)>,
    ) -> Result<(), EngineError> {
        let shared = Arc::clone(&self.shared);
        let mut batch = Batch::new(&shared, shared.clock.now());
        let mut renew = false;
        let mut next = Some(first);
        while let Some(request) = next {
            answers.push((request, Vec::new()));
            if let Some((request, outcomes)) = answers.last_mut() {
                renew |= matches!(request.work, Work::Renew);
                *outcomes = match &request.work {
                    Work::FindWasteful => vec![Ok(self.find_wasteful()?)],
                    work => decide(&shared, &mut batch, work),
                };
            }
            let full = answers.len() >= BATCH_REQUESTS_MAX || batch.bytes >= BATCH_BYTES_MAX;
            next = if full { None } else { requests.try_recv().ok() };
        }
        if renew {
            batch.fence();
        }
        if batch.is_empty() && !self.hold.is_changed() { Ok(()) } else { self.commit(batch) }
    }

    fn find_wasteful(&mut self) -> Result<usize, EngineError> {
        let number = self.hold.find_wasteful().map_err(EngineError::Io)?;
        Ok(number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0))
    }

    /// Makes a batch durable and then visible.
    pub(crate) fn commit(&mut self, batch: Batch<'_>) -> Result<(), EngineError> {
        let deletes = batch.deletes;
        let Changes { items, expiry, released, moves, puts } = batch.into_changes();
        let mut changes = self.stow(items, moves)?;
        changes.extend(expiry);
        released.iter().for_each(|(key, place)| self.hold.release(key, *place));
        let (of_files, waste) = self.hold.table_changes();
        changes.extend(of_files);
        self.commit += 1;
        let floor = self.shared.sight().view.position();
        changes.push(commits::row(CommitRow { number: self.commit, floor }));
        self.shared.engine.commit(changes)?;
        let acked = Acked { commit: self.commit, synced: self.synced };
        self.acked.write(acked).map_err(EngineError::Io)?;
        self.hold.discard(&waste);
        self.shared.deletes.fetch_add(deletes, Ordering::Relaxed);
        let sight = Sight { view: self.shared.engine.view(), files: self.hold.files() };
        self.shared.publish(sight, &puts);
        if self.commit.is_multiple_of(COMMITS_BETWEEN_FLUSHES) {
            self.shared.engine.begin_flush()?;
        }
        Ok(())
    }

    /// Writes large rows to a cargo file, if that is worth its sync, and leaves stubs of them.
    fn stow(
        &mut self,
        items: Vec<(Bytes, Option<Row>)>,
        moves: bool,
    ) -> Result<Vec<RowChange>, EngineError> {
        let large = items.iter().filter_map(|(key, row)| Some((key, row.as_ref()?)));
        let mut large: Vec<_> = large.filter(|(_, row)| self.hold.is_large(row)).collect();
        let bytes: usize = large.iter().map(|(_, row)| row.len()).sum();
        if !self.hold.is_worth(bytes) && !moves {
            large.clear();
        }
        let mut places = self.hold.stow(&large)?.into_iter();
        let stowed = !large.is_empty();
        let change = |(key, row): (Bytes, Option<Row>)| {
            let value = match row {
                Some(row) if stowed && self.hold.is_large(&row) => {
                    let place = places.next().ok_or(EngineError::Stopped)?;
                    Some(record::stub_of(&key, &row, place).ok_or(EngineError::Stopped)?)
                }
                row => row.map(|row| row.whole()),
            };
            Ok(RowChange { table: Table::Items, key, value })
        };
        items.into_iter().map(change).collect()
    }
}

fn decide(shared: &Shared, batch: &mut Batch<'_>, work: &Work) -> Outcomes {
    match work {
        Work::Group(writes) => vec![batch.add(writes).map(|()| writes.len())],
        Work::Each(writes) => {
            writes.iter().map(|write| batch.add(std::slice::from_ref(write)).map(|()| 1)).collect()
        }
        Work::Sweep(due) => vec![batch.sweep(due).map_err(|error| shared.locate(error))],
        Work::Move(rows) => vec![batch.relocate(rows).map_err(|error| shared.locate(error))],
        Work::Renew | Work::FindWasteful => vec![Ok(0)],
    }
}

fn answer(shared: &Shared, answers: Vec<(Request, Outcomes)>) {
    for (request, outcomes) in answers {
        if outcomes.iter().any(Result::is_ok) {
            request.partitions().for_each(|partition| shared.hints.touch(partition));
        }
        let _ = request.reply.send(outcomes);
    }
}

/// After a failed commit nobody knows whether the batch is on disk. A write that would have been applied has an
/// unknown outcome; one that was refused was refused, though the reason may be as unknown.
fn answer_failure(shared: &Shared, answers: Vec<(Request, Outcomes)>, cause: &Arc<EngineError>) {
    for (request, outcomes) in answers {
        let outcomes = outcomes.into_iter().map(|outcome| match (&outcome, &**cause) {
            (Ok(_), EngineError::Io(_) | EngineError::Damaged(_)) => {
                Err(StoreError::UnknownOutcome {
                    operation: "commit",
                    detail: format!("{}: {cause}", shared.place),
                    cause: Some(Arc::clone(cause) as _),
                })
            }
            _ => shared.check_running().and(outcome),
        });
        let _ = request.reply.send(outcomes.collect());
    }
}
