//! A queue's worker as a function: it is woken when there is something to do, works until the queue is empty, and hands
//! on to its next invocation what is left at the deadline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use millpond_consumer::limits::{ATTEMPTS_DEFAULT, ATTEMPTS_MAX, CONCURRENCY_MAX};
use millpond_queue::worker::{Ran, Report, Wake};
use millpond_queue::{
    Client, DeadLetters, Delivery, Order, Outcome, Queue, QueueConfig, QueueError, Queues, Trigger,
    Worker,
};
use millpond_store::Environment;
use serde::Serialize;
use tokio::sync::OnceCell;

use super::prepared::{Prepared, open_queue};
use super::worker_event::{Call, WorkerEvent};
use crate::error::{FunctionError, InvokeError};
use crate::invoke::Invoker;
use crate::limits::{CLIENTS_MAX, CONTINUE_WITHIN, RUN_SHARE};
use crate::serve::{Invocation, serve};
use crate::settings::{SettingError, SinkPlace, Variables};

type Handler = Arc<dyn Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A queue's worker as a function. For each client of the queue, one invocation runs at a time; wake-ups are not lost; a
/// client whose wake-up was lost all the same (its sender died before it, or the function was killed) is found by the
/// schedule.
#[derive(Clone)]
pub struct QueueWorker {
    environment: Environment,
    queues: Queues,
    name: String,
    config: QueueConfig,
    concurrency: Option<usize>,
    invoker: Invoker,
    handler: Handler,
    opened: Arc<OnceCell<Queue>>,
}

impl fmt::Debug for QueueWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueWorker").field("queue", &self.name).finish_non_exhaustive()
    }
}

/// What an invocation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum WorkerAnswer {
    /// The queue is empty.
    Idle(Done),
    /// Work is left, and the next invocation is on its way.
    Continued(Done),
    /// Messages are left that can be received only later: the schedule will find them.
    Later(Done),
    /// Another invocation is at it, and goes on until nothing is left.
    Busy,
    /// A look by the schedule.
    Looked {
        /// Clients that have messages.
        waiting: usize,
        /// Of those, the ones that an invocation was started for.
        started: usize,
    },
}

/// What became of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Finished well.
    pub done: u64,
    /// Failed, and tried again or dead.
    pub retried: u64,
    /// Failed for good.
    pub failed: u64,
    /// Given back, or lost to others.
    pub returned: u64,
}

impl From<Report> for Done {
    fn from(report: Report) -> Self {
        let Report { done, retried, failed, .. } = report;
        Self { done, retried, failed, returned: report.released + report.lost }
    }
}

impl QueueWorker {
    /// A worker that hands each message of `MILLPOND_QUEUE` to `handler`. The queue is opened with the first invocation. When
    /// there is none, it is made, with a queue for messages that were received `MILLPOND_ATTEMPTS` times: the one of
    /// `MILLPOND_DEAD_LETTERS`, or else its own name and `-dead`.
    ///
    /// # Errors
    /// What is missing or makes no sense, by the variable's name.
    pub fn new<F, R>(prepared: &Prepared, handler: F) -> Result<Self, FunctionError>
    where
        F: Fn(Delivery) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let variables = &prepared.variables;
        let name = variables.required("MILLPOND_QUEUE", "name the queue to work on")?.to_owned();
        let orders = [("fifo", Order::Fifo), ("lifo", Order::Lifo)];
        let order = variables.choice("MILLPOND_QUEUE_ORDER", &orders)?.unwrap_or(Order::Fifo);
        let receives_max = variables.number("MILLPOND_ATTEMPTS", 1..=ATTEMPTS_MAX)?;
        let dead_letters = Some(DeadLetters {
            queue: dead_letters(variables, &name)?,
            receives_max: receives_max.unwrap_or(ATTEMPTS_DEFAULT),
        });
        let function = variables.function_name();
        let function =
            function.ok_or(FunctionError::NotInLambda { variable: "AWS_LAMBDA_FUNCTION_NAME" })?;
        Ok(Self {
            environment: prepared.environment.clone(),
            queues: prepared.queues(),
            name,
            config: QueueConfig { order, dead_letters, ..QueueConfig::default() },
            concurrency: variables.number("MILLPOND_CONCURRENCY", 1..=CONCURRENCY_MAX)?,
            invoker: Invoker::new(&prepared.aws, function),
            handler: Arc::new(move |delivery| Box::pin(handler(delivery))),
            opened: Arc::default(),
        })
    }

    /// What the queue is made with, when there is none yet, instead of what the settings say.
    #[must_use]
    pub fn config(self, config: QueueConfig) -> Self {
        Self { config, ..self }
    }

    /// Handles invocations until Lambda ends the process.
    ///
    /// # Errors
    /// As [`serve`].
    pub async fn run(self) -> Result<(), FunctionError> {
        let (worker, environment) = (&self, &self.environment);
        serve(environment, |invocation| async move {
            let answer = Box::pin(worker.handle(&invocation)).await?;
            tracing::info!(queue = worker.name, ?answer, "an invocation is done");
            let answer = serde_json::to_vec(&answer).map(Bytes::from);
            answer.map_err(|error| InvokeError::Handler(error.to_string()))
        })
        .await
    }

    /// Handles one invocation.
    ///
    /// # Errors
    /// When the event is none of its own, the store fails for as long as there is time, or what is left could not be
    /// handed on. Lambda tries it again.
    pub async fn handle(&self, invocation: &Invocation) -> Result<WorkerAnswer, InvokeError> {
        let call = Call::read(&invocation.event, &self.name)?;
        let queue = self.opened.get_or_try_init(|| self.open()).await?;
        let left = invocation.remaining(self.environment.now());
        match call {
            Call::Work(event) => self.work(queue, &event, left.mul_f64(RUN_SHARE)).await,
            Call::Look => self.look(queue, left.mul_f64(RUN_SHARE)).await,
        }
    }

    async fn open(&self) -> Result<Queue, QueueError> {
        if let Some(dead) = &self.config.dead_letters {
            open_queue(&self.queues, &dead.queue, QueueConfig::default()).await?;
        }
        open_queue(&self.queues, &self.name, self.config.clone()).await
    }

    async fn work(
        &self,
        queue: &Queue,
        event: &WorkerEvent,
        time: Duration,
    ) -> Result<WorkerAnswer, InvokeError> {
        let client = queue.client(&event.client)?;
        let trigger = Trigger::new(&client)?;
        let ran = trigger.run(&self.worker(client), time.max(Duration::from_millis(1))).await?;
        Ok(match ran {
            Ran::Idle(report) => WorkerAnswer::Idle(report.into()),
            Ran::Busy => WorkerAnswer::Busy,
            Ran::Continue(report) => {
                let soon = self.environment.now().plus(CONTINUE_WITHIN);
                if report.due.is_some_and(|due| due > soon) {
                    return Ok(WorkerAnswer::Later(report.into()));
                }
                let next = event.next().encode();
                self.invoker.invoke(&next).await.map_err(InvokeError::Continuation)?;
                WorkerAnswer::Continued(report.into())
            }
        })
    }

    fn worker(&self, client: Client) -> Worker {
        let handler = Arc::clone(&self.handler);
        let worker = Worker::new(client, move |delivery| handler(delivery));
        match self.concurrency {
            Some(concurrency) => worker.concurrency(concurrency),
            None => worker,
        }
    }

    /// Starts an invocation for each client that has messages and nobody who is at them.
    async fn look(&self, queue: &Queue, time: Duration) -> Result<WorkerAnswer, InvokeError> {
        let clock = &self.environment.clock;
        let began = clock.monotonic();
        let (mut waiting, mut started) = (0, 0);
        let clients = queue.clients().await?;
        if clients.len() > CLIENTS_MAX {
            tracing::warn!(clients = clients.len(), at_most = CLIENTS_MAX, "not all are looked at");
        }
        for id in clients.iter().take(CLIENTS_MAX) {
            if clock.monotonic().since(began) >= time {
                tracing::warn!(queue = self.name, "a look did not come to the last client in time");
                break;
            }
            let client = queue.client(id.as_str())?;
            if client.count().await?.total() == 0 {
                continue;
            }
            waiting += 1;
            if Trigger::new(&client)?.wake().await? == Wake::Start {
                let event = WorkerEvent::wake(&client).encode();
                self.invoker.invoke(&event).await.map_err(InvokeError::Continuation)?;
                started += 1;
            }
        }
        Ok(WorkerAnswer::Looked { waiting, started })
    }
}

/// The queue for messages that were received too often. It is one of the same store, and its main client.
fn dead_letters(variables: &Variables, queue: &str) -> Result<String, SettingError> {
    match variables.parsed("MILLPOND_DEAD_LETTERS")? {
        None => Ok(format!("{queue}-dead")),
        Some(SinkPlace::Queue { queue, client }) if client.is_empty() => Ok(queue),
        Some(_) => Err(SettingError::Invalid {
            variable: "MILLPOND_DEAD_LETTERS",
            value: variables.text("MILLPOND_DEAD_LETTERS")?.unwrap_or_default().to_owned(),
            problem: "a queue's dead letters go to another queue: it should be queue:NAME".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_messages_of_a_queue_go_to_a_queue() {
        let of =
            |place: &str| dead_letters(&Variables::of([("MILLPOND_DEAD_LETTERS", place)]), "tasks");
        assert_eq!(of(""), Ok("tasks-dead".into()));
        assert_eq!(of("queue:failed"), Ok("failed".into()));
        for other in ["queue:failed/client", "log:failed", "kinesis:failed"] {
            assert!(of(other).unwrap_err().to_string().contains("should be queue:NAME"), "{other}");
        }
    }
}
