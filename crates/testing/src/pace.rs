//! Virtual time that passes by itself, as soon as nothing can go on without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use millpond_store::{
    ChangeHint, Item, Key, Page, Partition, Profile, Query, Result, Store, VirtualClock, Write,
};

use crate::subject::bounded;

/// How often everything gets a turn before it counts as at rest. A chain of tasks that wake each other is shorter.
const TURNS: usize = 32;

/// How often the world may be found at rest with nobody asleep before that is taken for a standstill.
const STANDSTILL: usize = 100_000;

/// A store that knows how many requests are under way.
#[derive(Debug, Clone)]
pub struct Watched {
    inner: Arc<dyn Store>,
    under_way: Arc<AtomicUsize>,
}

impl Watched {
    /// Watches a store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, under_way: Arc::default() }
    }

    /// Whether no request is under way.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    fn request(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(&self.under_way))
    }
}

struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Does `work` while virtual time passes: whenever no request is under way and nobody can go on, the clock moves to
/// where the first sleeper wakes. For a runtime of one thread.
pub async fn in_virtual_time<T>(
    clock: &VirtualClock,
    store: &Watched,
    work: impl Future<Output = T>,
) -> T {
    let drive = async {
        let mut idle = 0;
        loop {
            let mut quiet = 0;
            while quiet < TURNS {
                tokio::task::yield_now().await;
                quiet = if store.is_at_rest() { quiet + 1 } else { 0 };
            }
            match clock.next_wake() {
                // The wall clock counts whole milliseconds.
                Some(wake) => {
                    let millis = wake.as_nanos().div_ceil(1_000_000) as u64;
                    clock.advance(Duration::from_millis(millis));
                    idle = 0;
                }
                None => idle += 1,
            }
            assert!(idle < STANDSTILL, "nothing goes on and nobody sleeps");
        }
    };
    let both = async {
        tokio::select! {
            biased;
            answer = work => answer,
            () = drive => unreachable!("time does not end"),
        }
    };
    bounded("the work in virtual time", both).await
}

#[async_trait]
impl Store for Watched {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let _under_way = self.request();
        self.inner.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        let _under_way = self.request();
        self.inner.query(query).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        let _under_way = self.request();
        self.inner.write(write).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        let _under_way = self.request();
        self.inner.write_all(writes).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        let _under_way = self.request();
        self.inner.write_each(writes).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
