//! The store: what is shared by its operations, and the trait that joins them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use millpond_store::{
    Certainty, ChangeHint, Environment, Hints, Item, Key, Meter, Page, Partition, Profile, Query,
    Result, Store, StoreError, Timestamp, Write,
};

use crate::client;
use crate::config::DynamoDbConfig;
use crate::failure::{Effect, Request};
use crate::limits::{OUTCOME_WINDOW, POLL_LONGEST, POLL_SHORTEST, SMALL_ITEM_BYTES};
use crate::retry::Retry;

/// A table behind the waist. Clones share the client, the meter and the hints.
#[derive(Clone)]
pub struct DynamoDbStore {
    pub(crate) client: Client,
    pub(crate) config: Arc<DynamoDbConfig>,
    pub(crate) environment: Environment,
    hints: Hints,
}

impl DynamoDbStore {
    /// Opens the table that `config` names. Nothing is asked of the table yet: use
    /// [`DynamoDbAdmin::verify`](crate::DynamoDbAdmin::verify) to learn early whether it is fit.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when no region is known.
    pub async fn open(config: DynamoDbConfig, environment: &Environment) -> Result<Self> {
        let client = client::connect(&config).await?;
        Ok(Self {
            client,
            config: Arc::new(config),
            environment: environment.clone(),
            hints: Hints::new(),
        })
    }

    /// What was used so far, as the service reports it.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.config.meter
    }

    /// The table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        self.config.table.as_str()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.environment.now()
    }

    pub(crate) fn retry(&self, operation: &'static str) -> Retry<'_> {
        let DynamoDbConfig { backoff, operation_timeout, .. } = &*self.config;
        Retry::new(&self.environment, *backoff, *operation_timeout, operation)
    }

    pub(crate) fn reading(&self, action: &'static str) -> Request<'_> {
        self.request(action, Effect::Read)
    }

    pub(crate) fn writing(&self, action: &'static str) -> Request<'_> {
        self.request(action, Effect::Write)
    }

    fn request(&self, action: &'static str, effect: Effect) -> Request<'_> {
        Request { action, effect, table: &self.config.table }
    }

    /// Wakes who waits for what was, or may have been, changed.
    pub(crate) fn announce<'a>(
        &self,
        outcome: &Result<()>,
        keys: impl IntoIterator<Item = &'a Key>,
    ) {
        let unchanged = |error: &StoreError| error.certainty() == Certainty::Definite;
        if outcome.as_ref().is_err_and(unchanged) {
            return;
        }
        for key in keys {
            self.hints.touch(&key.partition);
        }
    }
}

#[async_trait]
impl Store for DynamoDbStore {
    fn profile(&self) -> Profile {
        Profile {
            durable: true,
            small_item_bytes: SMALL_ITEM_BYTES,
            groups_cheap: false,
            expiry_free: true,
            relaxed_cheaper: true,
            outcome_window: OUTCOME_WINDOW,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.get_item(key).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.query_page(query).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.write_one(write).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.write_group(writes).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.write_independent(writes).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        let clock = Arc::clone(&self.environment.clock);
        self.hints.subscribe(partition).with_poll(clock, POLL_SHORTEST, POLL_LONGEST)
    }
}

impl fmt::Debug for DynamoDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStore").field("config", &self.config).finish_non_exhaustive()
    }
}
