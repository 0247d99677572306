//! A DynamoDB engine within the test process, and stores that talk to it over HTTP.

pub mod buckets;
pub mod cost;
pub mod engine;
pub mod proxy;
pub mod world;

use std::time::Duration;

use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, TableOptions};
use millpond_store::{
    Attributes, Backoff, Environment, Expect, Item, Key, Query, Store as _, Write, collect,
};

use engine::Engine;
use proxy::{Fault, Proxy};

/// Few attempts and short waits: tests wait in real time.
pub const HASTY: Backoff =
    Backoff { base: Duration::from_millis(1), longest: Duration::from_millis(5), attempts_max: 4 };

/// A configuration for a local endpoint, with credentials that open nothing.
pub fn config(endpoint: &str, table: &str) -> DynamoDbConfig {
    DynamoDbConfig::new(table)
        .unwrap()
        .endpoint(endpoint)
        .region("eu-central-1")
        .credentials("test", "test")
        .backoff(HASTY)
}

/// A store with its own table, in its own engine, behind a proxy that can do harm.
pub struct Setup {
    pub store: DynamoDbStore,
    pub proxy: Proxy,
    pub environment: Environment,
    engine: Engine,
}

impl Setup {
    pub async fn new() -> Self {
        Self::with(|config| config).await
    }

    pub async fn with(change: impl FnOnce(DynamoDbConfig) -> DynamoDbConfig) -> Self {
        let bare = Self::without_table(change).await;
        bare.store.admin().create_table(TableOptions::default()).await.unwrap();
        bare.proxy.forget();
        let _ = bare.store.meter().take();
        bare
    }

    pub async fn without_table(change: impl FnOnce(DynamoDbConfig) -> DynamoDbConfig) -> Self {
        let engine = Engine::start().await;
        let proxy = Proxy::start(engine.address).await;
        let environment = Environment::system();
        let config = change(config(&proxy.endpoint(), "things"));
        let store = DynamoDbStore::open(config, &environment).await.unwrap();
        Self { store, proxy, environment, engine }
    }

    /// The next requests go wrong like this, in order.
    pub fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.proxy.script(faults);
    }

    /// A store on the same table that no fault reaches.
    pub async fn untroubled(&self) -> DynamoDbStore {
        let config = config(&self.engine.endpoint(), self.store.table());
        DynamoDbStore::open(config, &self.environment).await.unwrap()
    }

    pub fn put(&self, key: &Key, n: i64, expect: Expect) -> Write {
        let attributes = Attributes::new().with("n", n);
        Write::put(key.clone(), attributes, expect, self.environment.version())
    }

    /// Everything in a partition, read past the proxy.
    pub async fn stored(&self, partition: &str) -> Vec<Item> {
        let partition = millpond_store::Partition::new(partition).unwrap();
        let store = self.untroubled().await;
        collect(&store, Query::new(partition), 10_000).await.unwrap()
    }

    /// What is under `key`, read past the proxy.
    pub async fn current(&self, key: &Key) -> Option<Item> {
        self.untroubled().await.get(key).await.unwrap()
    }
}

/// A key in the partition `p`.
pub fn key(sort: &str) -> Key {
    Key::new("p", sort.as_bytes().to_vec()).unwrap()
}
