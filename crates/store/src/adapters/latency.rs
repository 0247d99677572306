//! A store as slow as a distant one.

use std::time::Duration;

use async_trait::async_trait;

use crate::environment::Environment;
use crate::error::Result;
use crate::hints::ChangeHint;
use crate::item::Item;
use crate::key::{Key, Partition};
use crate::query::{Page, Query};
use crate::store::{Profile, Store};
use crate::write::Write;

/// How long each request takes: `base` plus up to `jitter`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// The shortest.
    pub base: Duration,
    /// What chance adds at most.
    pub jitter: Duration,
}

/// A store that answers late. Half of the latency passes before the request takes effect, half after it.
#[derive(Debug)]
pub struct Slow<S> {
    inner: S,
    environment: Environment,
    latency: Latency,
}

impl<S: Store> Slow<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, environment: &Environment, latency: Latency) -> Self {
        Self { inner, environment: environment.clone(), latency }
    }

    async fn delayed<T>(&self, request: impl Future<Output = T> + Send) -> T {
        let jitter = u64::try_from(self.latency.jitter.as_micros()).unwrap_or(u64::MAX);
        let jitter = Duration::from_micros(self.environment.rng.below(jitter.saturating_add(1)));
        let half = (self.latency.base + jitter) / 2;
        self.environment.clock.sleep(half).await;
        let outcome = request.await;
        self.environment.clock.sleep(half).await;
        outcome
    }
}

#[async_trait]
impl<S: Store> Store for Slow<S> {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.delayed(self.inner.get(key)).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.delayed(self.inner.query(query)).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.delayed(self.inner.write(write)).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.delayed(self.inner.write_all(writes)).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.delayed(self.inner.write_each(writes)).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
