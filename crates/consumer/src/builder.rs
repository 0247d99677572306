//! Puts a consumer together, and refuses what makes no sense.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use millpond_store::Environment;
use serde_json::Value;

use crate::breaker::Breaker;
use crate::consumer::Consumer;
use crate::error::BuildError;
use crate::extract::{Extractor, Json};
use crate::identity::{Identity, Ids};
use crate::limits::{ATTEMPTS_DEFAULT, CONCURRENCY_DEFAULT, TIMEOUT_SHARE_DEFAULT};
use crate::message::Message;
use crate::outcome::{IntoOutcome, IntoOutcomes};
use crate::report::Report;
use crate::response::Responses;
use crate::settings::{Duplicates, Order, Settings};
use crate::sink::{Sink, Spill};
use crate::source::{HashRange, SourceKind, Window};
use crate::state::State;
use crate::task::{Handler, Hooks, Task, Windows};

/// Collects the settings of a consumer. Everything is checked at the end, by [`build`](Self::build).
#[derive(Default)]
#[must_use]
pub struct Builder {
    pub(crate) name: String,
    pub(crate) tasks: Vec<Task>,
    pub(crate) aliases: Vec<(String, String)>,
    extractor: Option<Arc<dyn Extractor>>,
    pub(crate) ids: Option<Ids>,
    pub(crate) keys: Option<Vec<String>>,
    pub(crate) sequence: Option<Vec<String>>,
    pub(crate) order: Option<Order>,
    pub(crate) attempts: Option<u32>,
    pub(crate) timeout_share: Option<f64>,
    pub(crate) concurrency: Option<usize>,
    hooks: Hooks,
    pub(crate) windows: Windows,
    pub(crate) duplicates: Option<Duplicates>,
    responses: Option<Responses>,
    pub(crate) age_max: Option<Duration>,
    pub(crate) sources: Option<BTreeSet<SourceKind>>,
    pub(crate) hash_ranges: BTreeMap<String, HashRange>,
    state: Option<Arc<dyn State>>,
    dead_messages: Option<Arc<dyn Sink>>,
    dead_records: Option<Arc<dyn Sink>>,
    spill: Option<Spill>,
    breaker: Option<Arc<dyn Breaker>>,
    environment: Option<Environment>,
    /// Settings that were made twice, as first and as last.
    pub(crate) twice: Vec<(&'static str, String, String)>,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Remembers when a setting is made twice.
    fn once(
        &mut self,
        setting: &'static str,
        known: Option<&dyn std::fmt::Debug>,
        new: &dyn std::fmt::Debug,
    ) {
        if let Some(known) = known {
            self.twice.push((setting, format!("{known:?}"), format!("{new:?}")));
        }
    }

    /// A handler that is called for each message. It returns an [`Outcome`](crate::Outcome), nothing (done) or a result. The
    /// name is part of the stored state: change it only with an [`alias`](Self::alias).
    pub fn one<F, R>(mut self, name: &str, handler: F) -> Self
    where
        F: Fn(Message) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.tasks.push(Task { name: name.into(), handler: Handler::one(handler) });
        self
    }

    /// A handler that is called once for all messages of a batch that it is not done for, in their order, after the
    /// handlers for each message. It returns one outcome for each, in the same order; what has none is tried again.
    pub fn all<F, R>(mut self, name: &str, handler: F) -> Self
    where
        F: Fn(Vec<Message>) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcomes> + Send + 'static,
    {
        self.tasks.push(Task { name: name.into(), handler: Handler::all(handler) });
        self
    }

    /// A task was called `former` and is called `now`: what was done under the former name stays done.
    pub fn alias(mut self, former: &str, now: &str) -> Self {
        self.aliases.push((former.to_owned(), now.to_owned()));
        self
    }

    /// Finds the messages in a record's bytes. Default: each record is one message in [`Json`].
    pub fn extractor(mut self, extractor: impl Extractor) -> Self {
        if self.extractor.is_some() {
            self.twice.push(("extractor", "one".into(), "another".into()));
        }
        self.extractor = Some(Arc::new(extractor));
        self
    }

    /// Where a message's id comes from. Default: from the source.
    pub fn ids(mut self, ids: Ids) -> Self {
        let known = self.ids.take();
        self.once("ids", known.as_ref().map(|known| known as _), &ids);
        self.ids = Some(ids);
        self
    }

    /// The properties that make a message's business key, for [`Order::PerKey`]. Default: the source's own key.
    pub fn keys<P: Into<String>>(mut self, properties: impl IntoIterator<Item = P>) -> Self {
        let keys: Vec<String> = properties.into_iter().map(Into::into).collect();
        let known = self.keys.take();
        self.once("keys", known.as_ref().map(|known| known as _), &keys);
        self.keys = Some(keys);
        self
    }

    /// The properties that order messages of one key or shard: numbers of any length, or texts such as ISO times. Default:
    /// the source's sequence number.
    pub fn sequence<P: Into<String>>(mut self, properties: impl IntoIterator<Item = P>) -> Self {
        let sequence: Vec<String> = properties.into_iter().map(Into::into).collect();
        let known = self.sequence.take();
        self.once("sequence", known.as_ref().map(|known| known as _), &sequence);
        self.sequence = Some(sequence);
        self
    }

    /// Which messages wait for which. Default: [`Order::PerKey`].
    pub fn order(mut self, order: Order) -> Self {
        let known = self.order.take();
        self.once("order", known.as_ref().map(|known| known as _), &order);
        self.order = Some(order);
        self
    }

    /// How often a task is tried for a message before that goes to the dead messages. Default: 10.
    pub fn attempts(mut self, attempts: u32) -> Self {
        let known = self.attempts.take();
        self.once("attempts", known.as_ref().map(|known| known as _), &attempts);
        self.attempts = Some(attempts);
        self
    }

    /// The share of the remaining time after which handlers are cut off, so that there is time to save. Default: 0.8.
    pub fn timeout_share(mut self, share: f64) -> Self {
        let known = self.timeout_share.take();
        self.once("timeout_share", known.as_ref().map(|known| known as _), &share);
        self.timeout_share = Some(share);
        self
    }

    /// How many handlers run at a time. Default: 16.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        let known = self.concurrency.take();
        self.once("concurrency", known.as_ref().map(|known| known as _), &concurrency);
        self.concurrency = Some(concurrency);
        self
    }

    /// Runs before any handler, with the messages that will be worked on. When it fails, the batch comes again and no
    /// attempt is counted.
    pub fn before<F, R, E>(mut self, hook: F) -> Self
    where
        F: Fn(Vec<Message>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        if self.hooks.before.is_some() {
            self.twice.push(("before", "one hook".into(), "another".into()));
        }
        self.hooks.before = Some(Arc::new(move |messages| {
            let work = hook(messages);
            Box::pin(async move { work.await.map_err(|error| error.to_string()) })
        }));
        self
    }

    /// Runs after the handlers, before letters are sent and state is saved.
    pub fn before_finish<F, R>(mut self, hook: F) -> Self
    where
        F: Fn(Report) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        if self.hooks.before_finish.is_some() {
            self.twice.push(("before_finish", "one hook".into(), "another".into()));
        }
        self.hooks.before_finish = Some(Arc::new(move |report| Box::pin(hook(report))));
        self
    }

    /// Runs last, with the report of the batch.
    pub fn after<F, R>(mut self, hook: F) -> Self
    where
        F: Fn(Report) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        if self.hooks.after.is_some() {
            self.twice.push(("after", "one hook".into(), "another".into()));
        }
        self.hooks.after = Some(Arc::new(move |report| Box::pin(hook(report))));
        self
    }

    /// Gathers finished messages in the state of a [tumbling window](Window), which begins as an empty object: the fold adds one
    /// message, in order, each that is done by all tasks exactly once, and none that is dead. It must do the same each time,
    /// and nothing else: it is called more than once. A message for which it panics is rejected. Without a fold, a window's
    /// state is handed on as it came.
    pub fn window<F>(mut self, fold: F) -> Self
    where
        F: Fn(&mut Value, &Message) + Send + Sync + 'static,
    {
        if self.windows.fold.is_some() {
            self.twice.push(("window", "one fold".into(), "another".into()));
        }
        self.windows.fold = Some(Arc::new(fold));
        self
    }

    /// Runs at the end of a window, when all of its messages are finished, with what was gathered. When it fails, it is tried
    /// again, and nothing behind it runs before that. When it was tried as often as a task may be, or is
    /// [rejected](crate::Outcome::reject), the window with its state goes to the dead records, and the batch is done. It
    /// may run again after it was done, with the same [`Window::idempotency_key`].
    pub fn window_end<F, R>(mut self, end: F) -> Self
    where
        F: Fn(Window, Value) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        if self.windows.end.is_some() {
            self.twice.push(("window_end", "one".into(), "another".into()));
        }
        self.windows.end = Some(Arc::new(move |window, state| {
            let work = end(window, state);
            Box::pin(async move { work.await.into_outcome() })
        }));
        self
    }

    /// What becomes of messages that have the id of another. Default: they run.
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        let known = self.duplicates.take();
        self.once("duplicates", known.as_ref().map(|known| known as _), &duplicates);
        self.duplicates = Some(duplicates);
        self
    }

    /// How a batch that is not finished is answered. Default: with a partial batch response.
    pub fn responses(mut self, responses: Responses) -> Self {
        let known = self.responses.take();
        self.once("responses", known.as_ref().map(|known| known as _), &responses);
        self.responses = Some(responses);
        self
    }

    /// Messages that came to their source longer ago than this go to the dead messages untried; those that were tried
    /// before go on. Default: none do.
    pub fn age_max(mut self, age_max: Duration) -> Self {
        let known = self.age_max.take();
        self.once("age_max", known.as_ref().map(|known| known as _), &age_max);
        self.age_max = Some(age_max);
        self
    }

    /// Takes records of these sources only; others go to the dead records. Default: of all.
    pub fn sources(mut self, kinds: impl IntoIterator<Item = SourceKind>) -> Self {
        let kinds: BTreeSet<_> = kinds.into_iter().collect();
        let known = self.sources.take();
        self.once("sources", known.as_ref().map(|known| known as _), &kinds);
        self.sources = Some(kinds);
        self
    }

    /// The hash keys that a shard takes. User records of an aggregate that belong elsewhere are left to the shard that
    /// they belong to. Default: not known, and all are taken.
    pub fn hash_range(mut self, shard: &str, range: HashRange) -> Self {
        let known = self.hash_ranges.insert(shard.to_owned(), range);
        self.once("hash_range", known.as_ref().map(|known| known as _), &range);
        self
    }

    /// Where the state of messages is kept.
    pub fn state(mut self, state: impl State) -> Self {
        let known = self.state.take();
        self.once("state", known.as_ref().map(|known| known as _), &state);
        self.state = Some(Arc::new(state));
        self
    }

    /// Where rejected, exhausted, abandoned and expired messages go.
    pub fn dead_messages(mut self, sink: impl Sink) -> Self {
        let known = self.dead_messages.take();
        self.once("dead_messages", known.as_ref().map(|known| known as _), &sink);
        self.dead_messages = Some(Arc::new(sink));
        self
    }

    /// Where unusable records go.
    pub fn dead_records(mut self, sink: impl Sink) -> Self {
        let known = self.dead_records.take();
        self.once("dead_records", known.as_ref().map(|known| known as _), &sink);
        self.dead_records = Some(Arc::new(sink));
        self
    }

    /// One sink for dead messages and dead records.
    pub fn dead_letters(self, sink: impl Sink + Clone) -> Self {
        self.dead_messages(sink.clone()).dead_records(sink)
    }

    /// An object store for letters that are too large for their sink. Default: none, and such a message stays unfinished.
    pub fn spill(mut self, spill: Spill) -> Self {
        let known = self.spill.take();
        self.once("spill", known.as_ref().map(|known| known as _), &spill);
        self.spill = Some(spill);
        self
    }

    /// Stops the source when the state or a sink is set up wrongly. Default: nothing does, and batches come again.
    pub fn breaker(mut self, breaker: impl Breaker) -> Self {
        let known = self.breaker.take();
        self.once("breaker", known.as_ref().map(|known| known as _), &breaker);
        self.breaker = Some(Arc::new(breaker));
        self
    }

    /// Time. Default: the machine's.
    pub fn environment(mut self, environment: &Environment) -> Self {
        self.environment = Some(environment.clone());
        self
    }

    /// Checks the settings and makes the consumer.
    ///
    /// # Errors
    /// What is missing, made twice, contradictory or senseless, by name.
    pub fn build(self) -> Result<Consumer, BuildError> {
        crate::check::check(&self)?;
        let missing = |setting, remedy| BuildError::Missing { setting, remedy };
        let state = self.state.ok_or_else(|| {
            missing(
                "state",
                "say where state is kept, as with `StoreState::new(store, &environment)`",
            )
        })?;
        let dead_messages = self.dead_messages.ok_or_else(|| {
            missing("dead_messages", "say where messages go that can never be processed")
        })?;
        let dead_records = self
            .dead_records
            .ok_or_else(|| missing("dead_records", "say where records go that cannot be read"))?;
        let now: BTreeMap<&str, &Arc<str>> =
            self.tasks.iter().map(|task| (task.name.as_ref(), &task.name)).collect();
        let aliases = self.aliases.iter().filter_map(|(former, name)| {
            now.get(name.as_str()).map(|name| (former.clone(), Arc::clone(name)))
        });
        let aliases = aliases.collect();
        Ok(Consumer::new(Settings {
            name: self.name.into(),
            aliases,
            tasks: self.tasks,
            extractor: self.extractor.unwrap_or_else(|| Arc::new(Json)),
            identity: Identity {
                ids: self.ids.unwrap_or_default(),
                keys: self.keys.unwrap_or_default(),
                sequence: self.sequence.unwrap_or_default(),
            },
            order: self.order.unwrap_or_default(),
            attempts: self.attempts.unwrap_or(ATTEMPTS_DEFAULT),
            timeout_share: self.timeout_share.unwrap_or(TIMEOUT_SHARE_DEFAULT),
            concurrency: self.concurrency.unwrap_or(CONCURRENCY_DEFAULT),
            hooks: self.hooks,
            windows: self.windows,
            duplicates: self.duplicates.unwrap_or_default(),
            responses: self.responses.unwrap_or_default(),
            age_max: self.age_max,
            sources: self.sources,
            hash_ranges: self.hash_ranges,
            state,
            dead_messages,
            dead_records,
            spill: self.spill,
            breaker: self.breaker,
            environment: self.environment.unwrap_or_else(Environment::system),
        }))
    }
}
