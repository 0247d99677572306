//! The function: handlers that do as planned, and processes that can be killed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use millpond_consumer::{Consumer, Message, Outcome, Report, StoreState, Window};
use millpond_store::{Environment, Rng};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::plan::{ALL, Plan, Way};
use super::settings::{Settings, Source, View};
use super::sink::FlakySink;
use super::truth::Truth;

/// How long an invocation may take.
const TIME: Duration = Duration::from_secs(30);

/// A function, of which each invocation runs in a process that can be killed.
#[derive(Debug, Clone)]
pub struct Function {
    pub environment: Environment,
    pub rng: Arc<dyn Rng>,
    pub truth: Truth,
    view: Option<View>,
    /// Of this process.
    killed: Arc<Notify>,
    /// Its number.
    pub process: usize,
    invocations_left: Arc<std::sync::atomic::AtomicU64>,
    stale: bool,
    /// Processes that nobody waits for.
    outliving: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// How an invocation ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It answered: what is unfinished, and the state of the window.
    Answered(Vec<String>, Option<Value>),
    /// It failed or was killed.
    Failed,
}

impl Function {
    pub fn new(
        environment: &Environment,
        chance: &Environment,
        settings: &Settings,
        truth: Truth,
    ) -> Self {
        // Each message fails a few times in each task; more deliveries than this never end.
        let bound = 2_000 + settings.messages * 60;
        Self {
            environment: environment.clone(),
            rng: Arc::clone(&chance.rng),
            truth,
            view: match settings.source {
                Source::Table(view) => Some(view),
                _ => None,
            },
            killed: Arc::default(),
            process: 0,
            invocations_left: Arc::new(bound.into()),
            stale: settings.stale,
            outliving: Arc::default(),
        }
    }

    /// One call of a handler.
    pub async fn call(&self, plan: &Plan, task: &str, message: &Message) -> Outcome {
        let n = number_of(message);
        if let Some(wrong) = super::table::wrong(plan, self.view, n, message) {
            self.truth.wrong(wrong);
        }
        if self.stale && task != ALL {
            // So that others come to the same message, and short enough that a whole batch is in time.
            let wait = Duration::from_millis(self.rng.below(400));
            self.environment.clock.sleep(wait).await;
        }
        let call = self.truth.called(self.process, n, task);
        let outcome = plan.of(n, task).at(call);
        self.truth.note(format_args!("  {task} {n} call {call}: {outcome:?}"));
        let outcome = match outcome {
            Ok(outcome @ Outcome::Retry { .. }) => {
                self.fail_in_steps(plan, message, (n, task, call)).await;
                outcome
            }
            Ok(outcome) => {
                self.take_steps(message, (n, task), plan.steps(n, task)).await;
                // A done task may be called again when the note of it was lost; it is done all the same.
                if outcome == Outcome::Done {
                    self.truth.done(self.process, n, task);
                }
                outcome
            }
            Err(way) => {
                let wait = self.fail_in_steps(plan, message, (n, task, call)).await;
                match way {
                    Way::Kill => self.environment.clock.sleep(wait).await,
                    Way::Panic => self.truth.call_ended(self.process, n, task),
                    Way::Hang | Way::Retry => {}
                }
                self.fail(way).await
            }
        };
        self.truth.call_ended(self.process, n, task);
        outcome
    }

    /// Fails in a way that is no outcome.
    async fn fail(&self, way: Way) -> Outcome {
        match way {
            // Without the hook that prints a backtrace: thousands are planned.
            Way::Panic => std::panic::resume_unwind(Box::new("planned")),
            Way::Kill => {
                self.killed.notify_one();
                std::future::pending().await
            }
            Way::Hang | Way::Retry => std::future::pending().await,
        }
    }

    /// What is done at the end of a window.
    pub async fn end(&self, plan: &Plan, window: &Window, state: &Value, kills: bool) -> Outcome {
        let index = super::window::index_of(window);
        let name = super::window::end_name(window);
        let call = self.truth.called(self.process, index, &name);
        let outcome = plan.end(index, kills).at(call);
        self.truth.note(format_args!("  {name} call {call}: {outcome:?} {state}"));
        match outcome {
            Ok(outcome) => outcome,
            Err(way) => self.fail(way).await,
        }
    }

    /// Invokes the function with an event, in a process of its own. Where that is planned, the mapping loses patience with one
    /// that got what comes for the first time.
    pub async fn invoke(
        &self,
        deployment: &Deployment,
        label: &str,
        event: &str,
        fresh: bool,
    ) -> Ended {
        let number = self.truth.starts(label);
        let process = Self { killed: Arc::default(), process: number, ..self.clone() };
        let consumer = deployment.start(&process);
        if !self.stale || !fresh || !self.rng.chance(0.4) {
            let ended = process.run(&consumer, label, event).await;
            self.truth.heard(number);
            return ended;
        }
        let patience = Duration::from_millis(self.rng.below(2_000));
        let (label, event) = (label.to_owned(), event.to_owned());
        let (answers, answer) = tokio::sync::oneshot::channel();
        let process = tokio::spawn(async move {
            let ended = process.run(&consumer, &label, &event).await;
            if answers.send(ended).is_err() {
                process.truth.note(format_args!("nobody heard of {label}"));
            }
        });
        self.outliving.lock().unwrap().push(process);
        tokio::select! {
            biased;
            ended = answer => {
                self.truth.heard(number);
                ended.expect("an answer")
            }
            () = self.environment.clock.sleep(patience) => Ended::Failed,
        }
    }

    /// Waits for processes that nobody waited for.
    pub async fn outlived(&self) {
        let processes = std::mem::take(&mut *self.outliving.lock().unwrap());
        for process in processes {
            process.await.unwrap();
        }
    }

    async fn run(&self, consumer: &Consumer, label: &str, event: &str) -> Ended {
        let left = self.invocations_left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        assert!(left > 0, "the history does not come to an end:\n{}", self.truth.trace());
        self.truth.note(format_args!("invoke {label}"));
        let deadline = self.environment.now().plus(TIME);
        let ended = tokio::select! {
            biased;
            () = self.killed.notified() => None,
            handled = consumer.handle(event.as_bytes(), deadline) => Some(handled),
        };
        match ended {
            None => {
                self.truth.killed(self.process, self.environment.now());
                self.truth.note(format_args!("killed {label}"));
                Ended::Failed
            }
            Some(Err(failed)) => {
                self.truth.note(format_args!("failed {label}: {}", summary(&failed.report)));
                Ended::Failed
            }
            Some(Ok((response, report))) => {
                let response = String::from_utf8(response.to_vec()).unwrap();
                self.truth.note(format_args!("answered {label}: {response} {}", summary(&report)));
                let answer: Value = serde_json::from_str(&response).unwrap();
                let failures = answer["batchItemFailures"].as_array().unwrap();
                let name = |failure: &Value| failure["itemIdentifier"].as_str().unwrap().to_owned();
                Ended::Answered(failures.iter().map(name).collect(), answer.get("state").cloned())
            }
        }
    }
}

/// What is deployed: what a process starts with.
#[derive(Debug, Clone)]
pub struct Deployment {
    pub plan: Plan,
    pub settings: Settings,
    pub environment: Environment,
    pub state: StoreState,
    pub sink: FlakySink,
}

impl Deployment {
    fn start(&self, process: &Function) -> Consumer {
        let Self { plan, settings, environment, state, sink } = self;
        // All that a consumer keeps is under its name.
        let name = format!("simulated-{:016x}", settings.seed);
        plan.consumer(Consumer::builder(&name), process, settings, environment)
            .state(state.clone())
            .dead_letters(sink.clone())
            .build()
            .expect("good settings")
    }
}

fn summary(report: &Report) -> String {
    let Report { finished, unfinished, unstarted, careful, saved, problems, .. } = report;
    format!(
        "{finished}+{unfinished} ({unstarted} unstarted), careful {careful}, {saved} saved, {problems:?}"
    )
}

/// Which of the planned messages it is: its bytes say, or, of a table, its id.
pub fn number_of(message: &Message) -> u64 {
    let by_value = message.value().and_then(|value| value["n"].as_u64());
    by_value.or_else(|| super::table::number_of(message.id()?)).expect("planned messages")
}
