//! Changing small rows that processes share: compare-and-swap, with a bound on how often it is tried.

use std::sync::Arc;

use millpond_store::{
    Attributes, Backoff, Environment, Expect, Expiry, Item, Key, Result, Store, StoreError, Write,
};

use crate::limits::{ROW_CONFLICTS_MAX, ROW_RETRY};

/// What a process knows of a row: nothing, or what it was when it was last read or written here.
pub type Known = Option<Option<Item>>;

/// What becomes of a row.
#[derive(Debug)]
pub enum Step<T> {
    /// It stays as it is.
    Keep(T),
    /// It says this from now on, until then or for ever.
    Put(Attributes, Option<Expiry>, T),
}

/// Rows that processes share.
#[derive(Debug)]
pub struct Rows {
    store: Arc<dyn Store>,
    pub environment: Environment,
    /// Tells this process apart from others in the rows.
    pub process: u64,
}

impl Rows {
    pub fn new(store: &Arc<dyn Store>, environment: &Environment) -> Self {
        let process = environment.rng.next_u64();
        Self { store: Arc::clone(store), environment: environment.clone(), process }
    }

    /// Changes a row as `plan` says, which may be asked several times. What is known of the row saves a read; a plan
    /// that would leave a row as it is decides on what is really there. Returns the plan's answer and the row.
    pub async fn change<T>(
        &self,
        key: &Key,
        known: Known,
        mut plan: impl FnMut(Option<&Item>) -> Result<Step<T>>,
    ) -> Result<(T, Option<Item>)> {
        let mut fresh = known.is_none();
        let mut current = match known {
            Some(item) => item,
            None => self.read(key).await?,
        };
        let mut conflicts = 0;
        loop {
            let (attributes, expiry, answer) = match plan(current.as_ref())? {
                Step::Keep(answer) if fresh => return Ok((answer, current)),
                Step::Keep(_) => {
                    current = self.read(key).await?;
                    fresh = true;
                    continue;
                }
                Step::Put(attributes, expiry, answer) => (attributes, expiry, answer),
            };
            let expect =
                current.as_ref().map_or(Expect::Absent, |item| Expect::Version(item.version));
            let version = self.environment.version();
            let mut put = Write::put(key.clone(), attributes, expect, version);
            if let Some(expiry) = expiry {
                put = put.expires(expiry);
            }
            match self.write(&put).await {
                Ok(()) => return Ok((answer, put.item())),
                Err(StoreError::Conflict(found)) if conflicts < ROW_CONFLICTS_MAX => {
                    conflicts += 1;
                    current = found.first().current.clone();
                    fresh = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes, again and again while the store fails for the moment. The version stays the same, so that a write
    /// whose answer was lost is known again.
    async fn write(&self, write: &Write) -> Result<()> {
        self.retry(|| self.store.write(write.clone())).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>> {
        self.retry(|| self.store.get(key)).await
    }

    async fn retry<T, F: Future<Output = Result<T>> + Send>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T> {
        let mut attempts = 0;
        loop {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) if !error.is_transient() => return Err(error),
                Err(error) => error,
            };
            attempts += 1;
            let backoff: &Backoff = &ROW_RETRY;
            let Some(wait) = backoff.wait(attempts, self.environment.rng.as_ref()) else {
                return Err(error);
            };
            self.environment.clock.sleep(wait).await;
        }
    }
}
