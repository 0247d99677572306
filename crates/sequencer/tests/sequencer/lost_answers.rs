//! A swap of the cursor is applied, others move the cursor on, and only then its answer is lost: the cursor's trail tells
//! the writer that it won, so that what it passed is returned all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use millpond_sequencer::{Advance, Config, Sequencer};
use millpond_store::{
    ChangeHint, Environment, Item, Key, MemoryStore, Page, Partition, Profile, Query, Result,
    Store, StoreError, Write,
};

/// Once armed, loses the answer of the next write of a cursor, after another writer has put number 1.
#[derive(Debug)]
struct Meddling {
    inner: MemoryStore,
    armed: AtomicBool,
    other: Sequencer,
}

#[async_trait]
impl Store for Meddling {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.inner.get(key).await
    }
    async fn query(&self, query: Query) -> Result<Page> {
        self.inner.query(query).await
    }
    async fn write(&self, write: Write) -> Result<()> {
        let is_cursor = write.key.sort.as_bytes() == b"c";
        self.inner.write(write).await?;
        if is_cursor && self.armed.swap(false, Ordering::SeqCst) {
            self.other.put("q", 1, "one").await.expect("the other writer succeeds");
            let (operation, detail) = ("write", "the answer was lost".to_owned());
            return Err(StoreError::UnknownOutcome { operation, detail, cause: None });
        }
        Ok(())
    }
    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.inner.write_all(writes).await
    }
    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.inner.write_each(writes).await
    }
    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}

#[tokio::test]
async fn a_lost_answer_is_found_out_although_others_came_after_it() {
    let environment = Environment::system();
    let inner = MemoryStore::new(&environment);
    let open = |store: Arc<dyn Store>| {
        Sequencer::open(store, &environment, "orders", Config::default()).unwrap()
    };
    let other = open(Arc::new(inner.clone()));
    let meddling = Meddling { inner, armed: AtomicBool::new(true), other: other.clone() };
    let put = open(Arc::new(meddling)).put("q", 0, "zero").await.unwrap();
    assert_eq!(put.advanced, Advance::new(0, 1), "what was passed is returned");
    assert_eq!(other.cursor("q").await.unwrap().unwrap().next, 2);
}
