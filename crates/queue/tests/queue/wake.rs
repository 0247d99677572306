//! A waiting receive and a send of the same process, in the order in which they are most in each other's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use millpond_lanes::Ground;
use millpond_queue::{Message, QueueConfig, Queues, Receive};
use millpond_store::{
    ChangeHint, Clock as _, Environment, Item, Key, MemoryStore, Page, Partition, Profile, Query,
    Result, Store, SystemClock, Timestamp, VirtualClock, Write,
};
use tokio::sync::Notify;

/// A store in which the answer of a query can be held back.
#[derive(Debug)]
struct Holding {
    inner: MemoryStore,
    holds: AtomicBool,
    held: Notify,
    go_on: Notify,
}

#[async_trait]
impl Store for Holding {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.inner.get(key).await
    }
    async fn query(&self, query: Query) -> Result<Page> {
        let page = self.inner.query(query).await;
        if self.holds.swap(false, Ordering::SeqCst) {
            self.held.notify_one();
            self.go_on.notified().await;
        }
        page
    }
    async fn write(&self, write: Write) -> Result<()> {
        self.inner.write(write).await
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
async fn a_send_that_ends_while_a_waiting_receive_reads_it_does_not_hide_it() {
    let clock = VirtualClock::new(Timestamp::from_millis(1_800_000_000_000));
    let environment = Environment::simulated(clock.clone(), 7);
    let store = Arc::new(Holding {
        inner: MemoryStore::new(&environment),
        holds: AtomicBool::new(false),
        held: Notify::new(),
        go_on: Notify::new(),
    });
    let queues = Queues::new(&Ground::new(Arc::clone(&store) as _, &environment));
    let client = queues.create("q", QueueConfig::default()).await.unwrap().main().unwrap();
    let waiter = client.clone();
    let wait = Receive::up_to(1).wait(Duration::from_secs(20));
    let waits = tokio::spawn(async move { waiter.receive(&wait).await });
    while clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    store.holds.store(true, Ordering::SeqCst);
    let sends = tokio::spawn(async move { client.send(Message::new("here")).await });
    store.held.notified().await;
    sends.await.unwrap().unwrap();
    store.go_on.notify_one();
    // Virtual time stands still: only the message itself can end the wait.
    let patience = SystemClock::new();
    let received = tokio::select! {
        received = waits => received.unwrap().unwrap(),
        () = patience.sleep(Duration::from_secs(10)) => Vec::new(),
    };
    assert_eq!(received.len(), 1, "the message was read, and is not received");
}
