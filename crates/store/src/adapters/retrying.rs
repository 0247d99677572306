//! A store that tries again when trying again can help.

use async_trait::async_trait;

use crate::backoff::Backoff;
use crate::environment::Environment;
use crate::error::{Certainty, Result};
use crate::hints::ChangeHint;
use crate::item::Item;
use crate::key::{Key, Partition};
use crate::query::{Page, Query};
use crate::store::{Profile, Store};
use crate::write::Write;

/// Retries transient errors with backoff, a bounded number of times. A write keeps its version through all
/// attempts, so that the store knows it again (clauses 8 and 11 of the contract).
#[derive(Debug)]
pub struct Retrying<S> {
    inner: S,
    environment: Environment,
    backoff: Backoff,
}

impl<S: Store> Retrying<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, environment: &Environment, backoff: Backoff) -> Self {
        Self { inner, environment: environment.clone(), backoff }
    }

    async fn retry<T, F: Future<Output = Result<T>> + Send>(
        &self,
        operation: &'static str,
        mut attempt: impl FnMut() -> F + Send,
    ) -> Result<T> {
        let (mut uncertain, mut attempts) = (false, 0);
        loop {
            attempts += 1;
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = self.backoff.wait(attempts, self.environment.rng.as_ref());
            match wait.filter(|_| error.is_transient()) {
                Some(wait) => {
                    uncertain |= error.certainty() == Certainty::Unknown;
                    tracing::debug!(operation, attempts, %error, "retrying");
                    self.environment.clock.sleep(wait).await;
                }
                None if uncertain => return Err(error.after_unknown(operation)),
                None => return Err(error),
            }
        }
    }
}

#[async_trait]
impl<S: Store> Store for Retrying<S> {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.retry("get", || self.inner.get(key)).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.retry("query", || self.inner.query(query.clone())).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.retry("write", || self.inner.write(write.clone())).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.retry("write_all", || self.inner.write_all(writes.clone())).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        let mut outcomes =
            self.retry("write_each", || self.inner.write_each(writes.clone())).await?;
        // What failed for the moment is retried one by one: it is the exception.
        for (write, outcome) in writes.into_iter().zip(&mut outcomes) {
            let Err(first) = outcome else { continue };
            if first.is_transient() {
                let uncertain = first.certainty() == Certainty::Unknown;
                *outcome = match self.write(write).await {
                    Err(error) if uncertain => Err(error.after_unknown("write_each")),
                    retried => retried,
                };
            }
        }
        Ok(outcomes)
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
