//! Running a handler over a queue.
//!
//! A [`Worker`] receives messages, hands each to its handler (or several at a time to a batch handler), keeps their
//! leases alive while the handler works, and does with each what the handler's [`Outcome`] says. A handler that
//! panics or takes too long has failed; the worker goes on. A store that fails for the moment never ends it.
//!
//! - [`Worker::start`] runs until [`WorkerHandle::shutdown`].
//! - [`Worker::run_until`] runs until a deadline, until the queue is empty, or until so many messages were started: for
//!   functions that live for minutes. When work remains at the deadline, it calls the
//!   [continuation](Worker::continuation).
//! - A [`Trigger`] starts such runs when there is something to do, and only then.
//!
//! A message is worked on at least once. That it is worked on twice at the same time takes a store that cannot be
//! reached for as long as a lease.

mod handler;
mod options;
mod retry;
mod run;
mod settle;
mod tally;
mod task;
mod trigger;
mod trigger_row;

use std::sync::Arc;
use std::time::Duration;

use handler::{BatchHandler, Continuation, Handling};
use options::Options;
pub use options::RunUntil;
pub use retry::RetryPolicy;
use run::Run;
pub use tally::{Ended, Report};
use tokio::sync::watch;
use tokio::task::JoinHandle;
pub(crate) use trigger::trigger_key;
pub use trigger::{Ran, Trigger, Wake};

use bytes::Bytes;

use crate::client::Client;
use crate::config::{between, within};
use crate::error::{QueueError, Result};
use crate::limits::{CONCURRENCY_MAX, VISIBILITY_MAX, VISIBILITY_MIN, WORKER_BYTES_MAX};
use crate::message::Delivery;

/// What a handler says became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is finished, with a result that is kept with its status where the queue keeps that. A result over 512 bytes
    /// is not kept.
    Done(Bytes),
    /// It failed and is tried again, after this long or else as the [`RetryPolicy`] says. At the queue's limit of
    /// receives it goes to the dead letters, with the error.
    Retry {
        /// How long to wait. Default: as the retry policy says.
        after: Option<Duration>,
        /// What went wrong.
        error: String,
    },
    /// It failed and is not tried again. The error is kept with its status where the queue keeps that.
    Fail(String),
    /// It was not worked on, and is given back to be received again at once.
    Release,
}

impl Outcome {
    /// It is finished, and there is nothing more to say.
    #[must_use]
    pub const fn done() -> Self {
        Self::Done(Bytes::new())
    }

    /// It failed and is tried again, as the retry policy says.
    #[must_use]
    pub fn retry(error: impl Into<String>) -> Self {
        Self::Retry { after: None, error: error.into() }
    }
}

/// Runs a handler over a client's messages. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Worker {
    client: Client,
    handling: Handling,
    continuation: Option<Continuation>,
    options: Options,
}

impl Worker {
    /// A worker that hands each message to `handler`.
    pub fn new<F, R>(client: Client, handler: F) -> Self
    where
        F: Fn(Delivery) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self::of(client, Handling::one(handler))
    }

    /// A worker that hands up to `size` messages at a time to `handler`, which says what became of each, in order. One
    /// that it says nothing of is tried again.
    pub fn batch<F, R>(client: Client, size: usize, handler: F) -> Self
    where
        F: Fn(Vec<Delivery>) -> R + Send + Sync + 'static,
        R: Future<Output = Vec<Outcome>> + Send + 'static,
    {
        let handler: BatchHandler = Arc::new(move |all| Box::pin(handler(all)));
        Self::of(client, Handling::Batch { size, handler })
    }

    fn of(client: Client, handling: Handling) -> Self {
        Self { client, handling, continuation: None, options: Options::default() }
    }

    /// How many calls of the handler run at a time. Default: 16.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.options.concurrency = concurrency;
        self
    }

    /// How long a message is on loan; it is extended for as long as the handler works. Default: as the queue says.
    #[must_use]
    pub fn visibility(mut self, visibility: Duration) -> Self {
        self.options.visibility = Some(visibility);
        self
    }

    /// Whether leases are kept alive while the handler works. Default: yes.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: bool) -> Self {
        self.options.heartbeat = heartbeat;
        self
    }

    /// How long a call of the handler may take: then it is dropped, and has failed. Default: as long as it likes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// How long failed messages wait. Default: [`RetryPolicy::default`].
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.options.retry = retry;
        self
    }

    /// Who receives, to be kept with the status of tasks. Default: nobody in particular.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// How long before a deadline it stops receiving, so that what runs can finish. Default: a tenth of the time to
    /// the deadline, at most 5 seconds.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.options.drain = Some(drain);
        self
    }

    /// How often it does what must be done now and then ([`Client::maintain`]); not at all when zero. Default: every
    /// 5 seconds.
    #[must_use]
    pub fn maintain_every(mut self, every: Duration) -> Self {
        self.options.maintain_every = every;
        self
    }

    /// What is called exactly when work remains at the deadline of a [run](Self::run_until), with the run's report:
    /// it should see to it that another run starts.
    #[must_use]
    pub fn continuation<F, R>(mut self, hook: F) -> Self
    where
        F: Fn(Report) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.continuation = Some(Continuation(Arc::new(move |report| Box::pin(hook(report)))));
        self
    }

    /// Runs until it is told to shut down, in a task of its own.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when an option makes no sense.
    pub fn start(&self) -> Result<WorkerHandle> {
        self.check()?;
        let (stop, stopped) = watch::channel(None);
        let worker = self.clone();
        let task =
            tokio::spawn(
                async move { Run::new(worker, RunUntil::shutdown(), stopped).run().await },
            );
        Ok(WorkerHandle { stop, task })
    }

    /// Runs until one of the ends in `until` is reached, and says what it did.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when an option makes no sense. While it runs, only what trying again cannot mend, such
    /// as a queue that was deleted; what was received by then has been dealt with.
    pub async fn run_until(&self, until: RunUntil) -> Result<Report> {
        let report = self.run(until).await?;
        if report.ended == Ended::Deadline && report.work_remains {
            self.call_continuation(report).await;
        }
        Ok(report)
    }

    async fn run(&self, until: RunUntil) -> Result<Report> {
        self.check()?;
        until.check()?;
        let (stop, stopped) = watch::channel(None);
        // If this call is dropped, the run ends: what it holds it releases.
        let mut task = Aborted(tokio::spawn(Run::new(self.clone(), until, stopped).run()), stop);
        match (&mut task.0).await {
            Ok(report) => report,
            Err(error) => Err(ended_badly(&error)),
        }
    }

    async fn call_continuation(&self, report: Report) {
        if let Some(Continuation(hook)) = &self.continuation {
            hook(report).await;
        }
    }

    fn check(&self) -> Result<()> {
        let options = &self.options;
        between("concurrency", options.concurrency, 1, CONCURRENCY_MAX)?;
        between("batch size", self.handling.size(), 1, CONCURRENCY_MAX)?;
        if let Some(visibility) = options.visibility {
            within("visibility", visibility, VISIBILITY_MIN, VISIBILITY_MAX)?;
        }
        if options.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(QueueError::invalid("timeout", "is zero: nothing could be done"));
        }
        options.retry.check()?;
        QueueError::check_bytes("worker", options.name.len(), WORKER_BYTES_MAX)
    }
}

/// A run whose caller may go away: then it stops at once, and gives back what it has.
struct Aborted(JoinHandle<Result<Report>>, watch::Sender<Option<Duration>>);

impl Drop for Aborted {
    fn drop(&mut self) {
        let _ = self.1.send(Some(Duration::ZERO));
    }
}

/// A worker that runs.
#[derive(Debug)]
pub struct WorkerHandle {
    stop: watch::Sender<Option<Duration>>,
    task: JoinHandle<Result<Report>>,
}

impl WorkerHandle {
    /// Stops receiving, lets what runs finish for up to `drain`, releases the rest, and says what the worker did. When
    /// it returns, nothing of the worker runs any more.
    ///
    /// # Errors
    /// What ended the worker before, if something did.
    pub async fn shutdown(self, drain: Duration) -> Result<Report> {
        let _ = self.stop.send(Some(drain));
        match self.task.await {
            Ok(report) => report,
            Err(error) => Err(ended_badly(&error)),
        }
    }

    /// Ends everything at once, as a crash does: messages come back when their leases end.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Whether it has ended by itself, which takes an error that trying again cannot mend.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

fn ended_badly(error: &tokio::task::JoinError) -> QueueError {
    QueueError::invalid("worker", format!("ended before it could say what it did: {error}"))
}
