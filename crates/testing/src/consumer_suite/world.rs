//! A consumer over a store in memory, events to give it, and a clock that moves by itself.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::subject::Subject;
use crate::{Watched, in_virtual_time};
use bytes::Bytes;
use millpond_consumer::state::{Address, StateRow};
use millpond_consumer::{
    Builder, Consumer, DeadLetter, MemorySink, Message, Outcome, Report, StoreState,
};
use millpond_store::{
    Environment, MemoryStore, Meter, Metered, Operation, Store, Timestamp, VirtualClock,
};

/// How long a delivery has, unless a test says otherwise.
pub const INVOCATION: Duration = Duration::from_secs(60);

/// A store, a clock and sinks that outlive the consumers of a test: what stays when a function is deployed again.
#[derive(Debug, Clone)]
pub struct World {
    /// What moves by itself.
    pub clock: VirtualClock,
    /// On that clock.
    pub environment: Environment,
    /// Metered and watched.
    pub store: Arc<dyn Store>,
    /// Counts requests.
    pub meter: Meter,
    /// Knows what is under way.
    pub watched: Watched,
    /// Dead messages.
    pub messages: MemorySink,
    /// Dead records.
    pub records: MemorySink,
    /// Calls of handlers.
    pub calls: Calls,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// Over a store in memory.
    pub fn new() -> Self {
        let (clock, environment) = times();
        let memory = MemoryStore::new(&environment);
        Self::over(Arc::new(memory), clock, environment)
    }

    /// Over what a suite is given.
    pub fn of(subject: &Subject) -> Self {
        let (clock, environment) = (subject.clock.clone(), subject.environment.clone());
        Self::over(Arc::clone(&subject.store), clock, environment)
    }

    /// Over a store.
    pub fn over(store: Arc<dyn Store>, clock: VirtualClock, environment: Environment) -> Self {
        let meter = Meter::new();
        let store: Arc<dyn Store> = Arc::new(Metered::new(store, meter.clone()));
        let watched = Watched::new(store);
        Self {
            store: Arc::new(watched.clone()),
            clock,
            environment,
            meter,
            watched,
            messages: MemorySink::new(),
            records: MemorySink::new(),
            calls: Calls::default(),
        }
    }

    /// State in that store.
    pub fn state(&self) -> StoreState {
        StoreState::new(Arc::clone(&self.store), &self.environment)
    }

    /// What is in it of a source and shard: all of that can be read.
    pub async fn rows(&self, address: &Address) -> Vec<StateRow> {
        let rows = self.state().rows(address).await.unwrap();
        rows.into_iter().map(|row| row.expect("it can be read")).collect()
    }

    /// A consumer with all but handlers.
    pub fn builder(&self) -> Builder {
        Consumer::builder("orders")
            .environment(&self.environment)
            .state(self.state())
            .dead_messages(self.messages.clone())
            .dead_records(self.records.clone())
    }

    /// The same with a handler that says what `plan` says.
    pub fn planned(&self, plan: impl Fn(&Message) -> Outcome + Send + Sync + 'static) -> Builder {
        self.builder().one("index", self.calls.handler("index", plan))
    }

    /// Delivers an event.
    pub async fn deliver(&self, consumer: &Consumer, event: &str) -> (Bytes, Report) {
        let deadline = self.environment.now().plus(INVOCATION);
        let handled = consumer.handle(event.as_bytes(), deadline);
        in_virtual_time(&self.clock, &self.watched, handled).await.expect("a partial response")
    }

    /// Delivers an event while time stands still: for batches that take many turns of the runtime and wait for nothing.
    pub async fn deliver_at_once(&self, consumer: &Consumer, event: &str) -> (Bytes, Report) {
        let deadline = self.environment.now().plus(INVOCATION);
        consumer.handle(event.as_bytes(), deadline).await.expect("a partial response")
    }

    /// Delivers an event to a process that may be killed: nothing when it was.
    pub async fn deliver_to_mortal(
        &self,
        consumer: &Consumer,
        event: &str,
        killer: &Killer,
    ) -> Option<(Bytes, Report)> {
        let deadline = self.environment.now().plus(INVOCATION);
        let mortal = async {
            tokio::select! {
                biased;
                () = killer.struck() => None,
                handled = consumer.handle(event.as_bytes(), deadline) => Some(handled.unwrap()),
            }
        };
        in_virtual_time(&self.clock, &self.watched, mortal).await
    }

    /// Delivers an event, and returns what comes again.
    pub async fn failures(&self, consumer: &Consumer, event: &str) -> Vec<String> {
        items(&self.deliver(consumer, event).await.0)
    }

    /// Writes to the store since the last call, by kind.
    pub fn writes(&self) -> (u64, u64) {
        let reading = self.meter.take();
        let requests = |operation| reading.of(operation).requests;
        let writes = requests(Operation::Write) + requests(Operation::WriteAll);
        (writes, requests(Operation::WriteEach))
    }

    /// Letters about messages.
    pub fn dead(&self) -> Vec<DeadLetter> {
        self.messages.letters()
    }
}

/// A clock at a fixed time, and an environment on it.
pub fn times() -> (VirtualClock, Environment) {
    let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
    (clock.clone(), Environment::simulated(clock, 7))
}

/// What a response names.
pub fn items(response: &Bytes) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_slice(response).unwrap();
    let failures = value["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}

/// Kills the process: whatever it was doing is simply gone.
#[derive(Debug, Clone, Default)]
pub struct Killer(Arc<tokio::sync::Notify>);

impl Killer {
    /// For a handler: never returns.
    pub async fn strike(&self) {
        self.0.notify_one();
        std::future::pending::<()>().await;
    }

    /// For an extractor, which cannot wait: nothing of the process is heard of again.
    pub fn strike_now(&self) {
        self.0.notify_one();
    }

    async fn struck(&self) {
        self.0.notified().await;
    }
}

/// Which handler was called for which message, in order.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<(String, String)>>>);

impl Calls {
    /// Notes a call.
    pub fn note(&self, task: &str, message: &Message) {
        self.0.lock().unwrap().push((task.to_owned(), name(message)));
    }

    /// Notes something else.
    pub fn note_text(&self, task: &str, text: String) {
        self.0.lock().unwrap().push((task.to_owned(), text));
    }

    /// A handler that notes its calls and does as planned.
    pub fn handler(
        &self,
        task: &'static str,
        plan: impl Fn(&Message) -> Outcome + Send + Sync + 'static,
    ) -> impl Fn(Message) -> std::future::Ready<Outcome> + Send + Sync + 'static {
        let calls = self.clone();
        move |message| {
            calls.note(task, &message);
            std::future::ready(plan(&message))
        }
    }

    /// The same for whole batches.
    pub fn batches(
        &self,
        task: &'static str,
        plan: impl Fn(&[Message]) -> Vec<Outcome> + Send + Sync + 'static,
    ) -> impl Fn(Vec<Message>) -> std::future::Ready<Vec<Outcome>> + Send + Sync + 'static {
        let calls = self.clone();
        move |messages| {
            for message in &messages {
                calls.note(task, message);
            }
            std::future::ready(plan(&messages))
        }
    }

    /// All of them.
    pub fn all(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().clone()
    }

    /// All of them, which are forgotten.
    pub fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The messages that a task was called for, in order.
    pub fn of(&self, task: &str) -> Vec<String> {
        let calls = self.all().into_iter().filter(|(called, _)| called == task);
        calls.map(|(_, message)| message).collect()
    }

    /// How often a task was called for each message.
    pub fn counts(&self, task: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for message in self.of(task) {
            *counts.entry(message).or_default() += 1;
        }
        counts
    }
}

/// The message's property `n`, or its bytes.
pub fn name(message: &Message) -> String {
    let n = message.value().and_then(|value| value.get("n"));
    n.map_or_else(
        || String::from_utf8_lossy(message.payload()).into_owned(),
        |n| n.as_str().map_or_else(|| n.to_string(), str::to_owned),
    )
}

/// Whether the message's property `n` is this.
pub fn is(message: &Message, n: u64) -> bool {
    name(message) == n.to_string()
}
