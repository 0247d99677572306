//! A store whose requests are let through one at a time, in an order that a seed decides.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use millpond_store::{
    ChangeHint, Item, Key, Page, Partition, Profile, Query, Result, Rng, Store, StoreError, Write,
};
use tokio::sync::oneshot;

/// Where all requests of all processes wait, before they are made and again before they are answered.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    /// Processes that were killed: they get no further turn, and never learn of it.
    dead: BTreeSet<u32>,
    /// Processes that the system does not run at present.
    paused: BTreeSet<u32>,
    trace: String,
}

#[derive(Debug)]
struct Waiting {
    process: u32,
    turn: oneshot::Sender<()>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is this process's turn; for ever when it is dead.
    async fn turn(&self, process: u32) {
        let (turn, waits) = oneshot::channel();
        let is_dead = {
            let mut state = self.state();
            let is_dead = state.dead.contains(&process);
            if !is_dead {
                state.waiting.push(Waiting { process, turn });
            }
            is_dead
        };
        if is_dead || waits.await.is_err() {
            pending::<()>().await;
        }
    }

    /// Gives one of those who wait their turn; whether there was one.
    pub(crate) fn let_one_through(&self, rng: &dyn Rng) -> bool {
        let mut state = self.state();
        let State { waiting, paused, .. } = &mut *state;
        waiting.retain(|one| !one.turn.is_closed());
        let ready = waiting.iter().zip(0..).filter(|(one, _)| !paused.contains(&one.process));
        let ready: Vec<usize> = ready.map(|(_, at)| at).collect();
        let chosen = usize::try_from(rng.below(ready.len().max(1) as u64)).unwrap_or_default();
        let Some(at) = ready.get(chosen) else { return false };
        let one = waiting.remove(*at);
        drop(state);
        one.turn.send(()).is_ok()
    }

    pub(crate) fn kill(&self, process: u32) {
        let mut state = self.state();
        state.dead.insert(process);
        state.waiting.retain(|one| one.process != process);
    }

    pub(crate) fn pause(&self, process: u32) {
        self.state().paused.insert(process);
    }

    pub(crate) fn resume_all(&self) {
        self.state().paused.clear();
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.state().trace, "{line}");
    }

    pub(crate) fn trace(&self) -> String {
        std::mem::take(&mut self.state().trace)
    }
}

/// The store as one process sees it.
#[derive(Debug)]
pub(crate) struct Gated {
    pub inner: Arc<dyn Store>,
    pub gate: Arc<Gate>,
    pub process: u32,
}

impl Gated {
    async fn request<T>(
        &self,
        what: &str,
        key: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.gate.turn(self.process).await;
        let outcome = work.await;
        let said = outcome.as_ref().map_or_else(name_of, |_| "ok");
        self.gate.note(format_args!("{} {what} {key}: {said}", self.process));
        self.gate.turn(self.process).await;
        outcome
    }
}

fn name_of(error: &StoreError) -> &'static str {
    match error {
        StoreError::Conflict(_) => "conflict",
        StoreError::Throttled { .. } => "throttled",
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::UnknownOutcome { .. } => "unknown",
        _ => "error",
    }
}

fn keys_of(writes: &[Write]) -> String {
    writes.iter().map(|write| write.key.to_string()).collect::<Vec<_>>().join(" ")
}

#[async_trait]
impl Store for Gated {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.request("get", &key.to_string(), self.inner.get(key)).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        let partition = query.partition.to_string();
        self.request("query", &partition, self.inner.query(query)).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        let key = write.key.to_string();
        self.request("write", &key, self.inner.write(write)).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        let keys = keys_of(&writes);
        self.request("write_all", &keys, self.inner.write_all(writes)).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        let keys = keys_of(&writes);
        self.request("write_each", &keys, self.inner.write_each(writes)).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
