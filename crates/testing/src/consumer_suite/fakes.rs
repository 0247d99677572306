//! Sinks and stores that misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use millpond_consumer::sink::{Letter, SinkError, SinkReceipt};
use millpond_consumer::{MemorySink, Sink};
use millpond_store::{
    ChangeHint, Item, Key, Page, Partition, Profile, Query, Result, Store, StoreError, Write,
};

/// What a fake does with the next calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Mood {
    /// As it should.
    Works = 0,
    /// With an error for the moment.
    Fails = 1,
    /// For ever.
    Hangs = 2,
    /// With an error that stays.
    Missing = 3,
    /// For ever, once it has done what it was asked for.
    LosesAnswers = 4,
}

/// Changes a mood.
#[derive(Debug, Clone, Default)]
pub struct MoodSwitch(Arc<AtomicUsize>);

impl MoodSwitch {
    /// From now on.
    pub fn set(&self, mood: Mood) {
        self.0.store(mood as usize, Ordering::Release);
    }

    fn is(&self, mood: Mood) -> bool {
        self.0.load(Ordering::Acquire) == mood as usize
    }
}

/// A sink that works, fails, hangs or is not there.
#[derive(Debug, Clone, Default)]
pub struct MoodySink {
    /// What it does when it works.
    pub inner: MemorySink,
    /// How it feels.
    pub mood: MoodSwitch,
}

#[async_trait]
impl Sink for MoodySink {
    fn bytes_max(&self) -> usize {
        usize::MAX
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<std::result::Result<SinkReceipt, SinkError>> {
        if self.mood.is(Mood::Fails) {
            return vec![Err(SinkError::Unavailable("out of order".into())); letters.len()];
        }
        if self.mood.is(Mood::Missing) {
            let (problem, remedy) = ("there is no sink".into(), "create it".into());
            return vec![Err(SinkError::Misconfigured { problem, remedy }); letters.len()];
        }
        if self.mood.is(Mood::Hangs) {
            std::future::pending::<()>().await;
        }
        self.inner.put(letters).await
    }
}

/// A store that works, fails, hangs or is not there; for all calls, or for writes only.
#[derive(Debug)]
pub struct MoodyStore {
    /// What it does when it works.
    pub inner: Arc<dyn Store>,
    /// How it feels.
    pub mood: MoodSwitch,
    /// Reads work in any mood.
    pub writes_only: AtomicBool,
}

impl MoodyStore {
    /// A store that works for now.
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, mood: MoodSwitch::default(), writes_only: AtomicBool::new(false) })
    }

    async fn mood(&self, read: bool) -> Result<()> {
        if read && self.writes_only.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.mood.is(Mood::Hangs) {
            std::future::pending::<()>().await;
        }
        if self.mood.is(Mood::Missing) {
            return Err(StoreError::misconfigured("there is no table", "create it"));
        }
        if self.mood.is(Mood::Fails) {
            let (operation, detail) = ("request", "out of order".into());
            return Err(StoreError::Unavailable { operation, detail, cause: None });
        }
        Ok(())
    }
}

#[async_trait]
impl Store for MoodyStore {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.mood(true).await?;
        self.inner.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.mood(true).await?;
        self.inner.query(query).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.mood(false).await?;
        self.inner.write(write).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.mood(false).await?;
        self.inner.write_all(writes).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.mood(false).await?;
        let written = self.inner.write_each(writes).await;
        if self.mood.is(Mood::LosesAnswers) {
            std::future::pending::<()>().await;
        }
        written
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
