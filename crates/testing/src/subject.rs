//! What a conformance test works on.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use millpond_store::{
    Attributes, Clock, Environment, Expect, Item, Key, Monotonic, Partition, Query, Result, Store,
    StoreError, SystemClock, Timestamp, VirtualClock, Write, collect,
};

/// A store to test, with the virtual clock that it runs under.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What the store sees of the world.
    pub environment: Environment,
    /// The environment's clock: it moves only when a test moves it.
    pub clock: VirtualClock,
    partitions_made: Arc<AtomicU64>,
}

type Opening = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send>>;

impl Subject {
    /// Opens a store under a virtual clock that stands at the present time, so that a backend which also looks at
    /// real time (to remove what expired) does not get ahead of it.
    pub async fn new(open: impl FnOnce(Environment) -> Opening) -> Self {
        let real = Environment::system();
        let clock = VirtualClock::new(real.now());
        let environment = Environment::simulated(clock.clone(), real.rng.next_u64());
        let store = open(environment.clone()).await;
        Self { store, environment, clock, partitions_made: Arc::default() }
    }

    /// The same environment, except that a sleep ends at once and time stands still: for code that waits before it
    /// tries again, where nobody moves the clock.
    #[must_use]
    pub fn impatient(&self) -> Environment {
        let clock = Arc::new(ImpatientClock(self.clock.clone()));
        Environment { clock, ..self.environment.clone() }
    }

    /// A partition that no other test uses, also when the store outlives the test.
    pub fn partition(&self) -> Partition {
        let number = self.partitions_made.fetch_add(1, Ordering::Relaxed);
        let chance = Environment::system().rng.next_u64();
        Partition::new(format!("conformance/{chance:016x}/{number}")).expect("a valid name")
    }

    /// A key of its own.
    pub fn key(&self) -> Key {
        key_in(&self.partition(), b"k")
    }

    /// A put with a fresh version.
    pub fn put(&self, key: &Key, attributes: Attributes, expect: Expect) -> Write {
        Write::put(key.clone(), attributes, expect, self.environment.version())
    }

    /// Puts and expects success; returns the write.
    pub async fn must_put(&self, key: &Key, attributes: Attributes, expect: Expect) -> Write {
        let write = self.put(key, attributes, expect);
        self.store.write(write.clone()).await.expect("the put should be applied");
        write
    }

    /// The item under `key`.
    pub async fn get(&self, key: &Key) -> Option<Item> {
        self.store.get(key).await.expect("the get should succeed")
    }

    /// Everything a query finds, through all its pages.
    pub async fn all(&self, query: Query) -> Vec<Item> {
        collect(self.store.as_ref(), query, 100_000).await.expect("the query should succeed")
    }
}

#[derive(Debug)]
struct ImpatientClock(VirtualClock);

#[async_trait]
impl Clock for ImpatientClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Monotonic {
        self.0.monotonic()
    }

    async fn sleep(&self, _: Duration) {
        tokio::task::yield_now().await;
    }
}

/// The key with this sort key.
pub fn key_in(partition: &Partition, sort: &[u8]) -> Key {
    Key::new(partition.as_str(), sort.to_vec()).expect("a valid key")
}

/// The items that a conflict returned, by index.
pub fn conflicts_of(outcome: Result<()>) -> Vec<(usize, Option<Item>)> {
    match outcome {
        Err(StoreError::Conflict(conflicts)) => {
            conflicts.iter().map(|conflict| (conflict.index, conflict.current.clone())).collect()
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// Waits for `work`, but no longer than 30 seconds of real time: a test that hangs should say where.
pub async fn bounded<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        answer = work => answer,
        () = async { SystemClock::new().sleep(Duration::from_secs(30)).await } => {
            panic!("{what} did not finish within 30 seconds")
        }
    }
}
