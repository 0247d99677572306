//! A log's consumer as a function: it handles the records of a topic until there are no more, and hands on to its next
//! invocation what is left at the deadline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use millpond_consumer::limits::{ATTEMPTS_DEFAULT, ATTEMPTS_MAX};
use millpond_log::{
    ConsumerOptions, Failure, GroupConfig, Handler, Log, LogError, Poison, Record, RunEnd,
    RunOptions, TopicConfig, TopicName, Until,
};
use millpond_store::Environment;
use serde::Serialize;

use super::prepared::Prepared;
use crate::error::{FunctionError, InvokeError};
use crate::invoke::Invoker;
use crate::limits::RUN_SHARE;
use crate::serve::{Invocation, serve};
use crate::settings::{SettingError, SinkPlace};

/// What it is invoked with by itself. Any other event starts a run too: it only says that there may be something to read.
const CONTINUE: &[u8] = br#"{"millpond":"log worker"}"#;

/// The longest that a record may take to finish once the time is over.
const HANDOFF_MAX: Duration = Duration::from_secs(5);

/// A consumer group's worker as a function. Several may run at a time, and share the partitions.
pub struct LogWorker<H> {
    environment: Environment,
    log: Log,
    topic: String,
    group: String,
    config: GroupConfig,
    invoker: Invoker,
    handler: Arc<H>,
}

impl<H> fmt::Debug for LogWorker<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, group, .. } = self;
        f.debug_struct("LogWorker")
            .field("topic", topic)
            .field("group", group)
            .finish_non_exhaustive()
    }
}

/// What an invocation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogAnswer {
    /// How it ended.
    pub state: LogEnd,
    /// Records that were handled.
    pub handled: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Records that went to the dead letters.
    pub buried: u64,
    /// Records that retention removed before they were read.
    pub missed: u64,
}

/// How an invocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEnd {
    /// Everything is handled.
    Done,
    /// Others hold the rest.
    Busy,
    /// The next invocation is on its way.
    Continued,
    /// Not one record could be handled, and attempts failed: the schedule tries again.
    Stuck,
}

/// The same handler for every run.
struct Shared<H>(Arc<H>);

#[async_trait]
impl<H: Handler> Handler for Shared<H> {
    async fn handle(&self, record: &Record) -> Result<(), Failure> {
        self.0.handle(record).await
    }

    async fn missed(&self, partition: u32, gap: millpond_log::Gap) {
        self.0.missed(partition, gap).await;
    }
}

impl<H: Handler> LogWorker<H> {
    /// A worker of the group `MILLPOND_GROUP` in the topic `MILLPOND_TOPIC`. When the group is not there yet, it is made: with
    /// `MILLPOND_DEAD_LETTERS=log:TOPIC`, records go there after `MILLPOND_ATTEMPTS` (the topic is made when there is none); without, a record that cannot be handled
    /// blocks its partition.
    ///
    /// # Errors
    /// What is missing or makes no sense, by the variable's name.
    pub fn new(prepared: &Prepared, handler: H) -> Result<Self, FunctionError> {
        let variables = &prepared.variables;
        let topic = variables.required("MILLPOND_TOPIC", "name the topic to read")?.to_owned();
        let attempts = variables.number("MILLPOND_ATTEMPTS", 1..=ATTEMPTS_MAX)?;
        let attempts = attempts.unwrap_or(ATTEMPTS_DEFAULT);
        let poison = match variables.parsed::<SinkPlace>("MILLPOND_DEAD_LETTERS")? {
            None => Poison::Block,
            Some(SinkPlace::Log { topic }) => {
                Poison::DeadLetter { attempts, topic: Some(TopicName::new(&topic)?) }
            }
            Some(_) => {
                return Err(SettingError::Invalid {
                    variable: "MILLPOND_DEAD_LETTERS",
                    value: variables.text("MILLPOND_DEAD_LETTERS")?.unwrap_or_default().into(),
                    problem: "a log's dead letters go to a topic: it should be log:TOPIC".into(),
                }
                .into());
            }
        };
        let function = variables.function_name();
        let function =
            function.ok_or(FunctionError::NotInLambda { variable: "AWS_LAMBDA_FUNCTION_NAME" })?;
        Ok(Self {
            environment: prepared.environment.clone(),
            log: Log::new(&prepared.ground),
            topic,
            group: prepared.name("MILLPOND_GROUP")?.to_owned(),
            config: GroupConfig { poison, ..GroupConfig::default() },
            invoker: Invoker::new(&prepared.aws, function),
            handler: Arc::new(handler),
        })
    }

    /// What the group is made with, when there is none yet.
    #[must_use]
    pub fn config(self, config: GroupConfig) -> Self {
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
            tracing::info!(topic = worker.topic, ?answer, "an invocation is done");
            let answer = serde_json::to_vec(&answer).map(Bytes::from);
            answer.map_err(|error| InvokeError::Handler(error.to_string()))
        })
        .await
    }

    /// Makes the topic for dead letters, when the settings name one that is not there yet.
    async fn make_dead_letters(&self) -> Result<(), InvokeError> {
        let Poison::DeadLetter { topic: Some(name), .. } = &self.config.poison else {
            return Ok(());
        };
        match self.log.topic(name.as_str()).await {
            Err(LogError::UnknownTopic { .. }) => {
                tracing::info!(topic = name.as_str(), "a topic is not there yet, and is made");
                self.log.create(name.as_str(), TopicConfig::with_partitions(1)).await?;
            }
            found => drop(found?),
        }
        Ok(())
    }

    /// Handles one invocation, whatever its event.
    ///
    /// # Errors
    /// When the log fails in a way that trying again does not mend, or what is left could not be handed on.
    pub async fn handle(&self, invocation: &Invocation) -> Result<LogAnswer, InvokeError> {
        let began = self.environment.clock.monotonic();
        let time = invocation.remaining(self.environment.now()).mul_f64(RUN_SHARE);
        let topic = self.log.topic(&self.topic).await?;
        self.make_dead_letters().await?;
        let options = ConsumerOptions { group: self.config.clone(), ..ConsumerOptions::default() };
        let consumer = topic.consumer(&self.group, options).await?;
        let time = time.saturating_sub(self.environment.clock.monotonic().since(began));
        let options = RunOptions {
            until: Until::Drained,
            deadline: Some(time),
            handoff: HANDOFF_MAX.min(time / 4),
            ..RunOptions::default()
        };
        let report = consumer.run(Shared(Arc::clone(&self.handler)), options).await?;
        let state = match report.end {
            RunEnd::Done => LogEnd::Done,
            RunEnd::Busy { .. } => LogEnd::Busy,
            // An invocation after the other that gets nowhere would only cost.
            RunEnd::Deadline | RunEnd::Stopped
                if report.handled + report.buried == 0 && report.failures > 0 =>
            {
                tracing::warn!(
                    topic = self.topic,
                    failures = report.failures,
                    "nothing is handled"
                );
                LogEnd::Stuck
            }
            RunEnd::Deadline | RunEnd::Stopped => {
                self.invoker.invoke(CONTINUE).await.map_err(InvokeError::Continuation)?;
                LogEnd::Continued
            }
        };
        let millpond_log::RunReport { handled, failures, buried, missed, .. } = report;
        Ok(LogAnswer { state, handled, failures, buried, missed })
    }
}
