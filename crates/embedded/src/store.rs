//! The store itself: the waist's trait over the engine.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use millpond_store::limits::PAGE_BYTES_MAX;
use millpond_store::{ChangeHint, Environment, Item, Key, Page, Partition, Profile, Query};
use millpond_store::{Result, Store, StoreError, Write, check_each, check_group};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::batch::Prepared;
use crate::cargo::Files;
use crate::engine::Table;
use crate::limits::{PART_BYTES_MAX, QUERY_ROWS_MAX, REQUESTS_WAITING_MAX, WAITING_KIB_MAX};
use crate::maintenance;
use crate::open::open_writer;
use crate::options::{Durability, Maintenance, Options};
use crate::record;
use crate::rowkey;
use crate::shared::Shared;
use crate::writer::{Outcomes, Request, Work};

/// A store in one directory of this machine. Clones share it; when the last is dropped, the directory is free
/// again.
#[derive(Clone)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub shared: Arc<Shared>,
    /// Taken when the store is dropped, which ends the writer.
    requests: Option<mpsc::Sender<Request>>,
    room: Arc<Semaphore>,
    writer: Option<thread::JoinHandle<()>>,
    maintenance: Mutex<Option<JoinHandle<()>>>,
    durable: bool,
}

impl EmbeddedStore {
    /// Opens the store, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when the directory cannot be used, is in use, holds something else, or was
    /// written by a newer version; [`StoreError::Corrupt`] when files are damaged or an acknowledged commit is
    /// missing.
    pub async fn open(options: Options, environment: &Environment) -> Result<Self> {
        let durable = options.durability == Durability::Durable;
        let background = options.maintenance == Maintenance::Background;
        let clock = Arc::clone(&environment.clock);
        let opened = tokio::task::spawn_blocking(move || open_writer(&options, clock)).await;
        let writer =
            opened.map_err(|error| StoreError::Poisoned { reason: error.to_string() })??;
        let shared = Arc::clone(&writer.shared);
        let (requests, receiver) = mpsc::channel(REQUESTS_WAITING_MAX);
        let writer = thread::Builder::new()
            .name("millpond-writer".to_owned())
            .spawn(move || writer.run(receiver))
            .map_err(|error| StoreError::Unavailable {
                operation: "open",
                detail: format!("no thread for the writer: {error}"),
                cause: Some(Arc::new(error)),
            })?;
        let inner = Arc::new(Inner {
            shared,
            requests: Some(requests),
            room: Arc::new(Semaphore::new(WAITING_KIB_MAX)),
            writer: Some(writer),
            maintenance: Mutex::new(None),
            durable,
        });
        if background {
            let task = tokio::spawn(maintenance::run(Arc::downgrade(&inner)));
            *inner.maintenance.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        }
        Ok(Self { inner })
    }

    /// Opens the store in `directory` with the default options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_at(directory: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        Self::open(Options::new(directory.as_ref()), environment).await
    }

    /// Closes the store and waits until its directory is free, given that this is the last clone.
    pub async fn close(self) {
        let task = self.inner.maintenance.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            // It was cancelled, or it had ended.
            let _ = task.await;
        }
        // Ending the engine waits for its threads.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// Removes up to 1,000 expired items, and says how many; fewer than that means that none is left.
    /// Background maintenance does it by itself.
    ///
    /// # Errors
    /// As a write.
    pub async fn sweep_step(&self) -> Result<usize> {
        maintenance::sweep_step(&self.inner).await
    }

    /// Removes all traces of deleted rows from the files. Background maintenance does it when it is worth it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when files cannot be written.
    pub async fn reclaim(&self) -> Result<()> {
        maintenance::reclaim(&self.inner).await
    }
}

impl Inner {
    /// Has the writer do something, and waits for it.
    pub(crate) async fn ask(&self, work: Work, bytes: usize) -> Result<Outcomes> {
        self.shared.check_running()?;
        let stopped = || {
            self.shared.check_running().err().unwrap_or_else(|| StoreError::Poisoned {
                reason: "its writer has ended".to_owned(),
            })
        };
        let kib = u32::try_from(bytes / 1_024 + 1).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await;
        let (reply, answer) = oneshot::channel();
        let request = Request { work, reply, _room: room.ok() };
        let requests = self.requests.as_ref().ok_or_else(stopped)?;
        requests.send(request).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| StoreError::UnknownOutcome {
            operation: "write",
            detail: "the writer ended before it answered".to_owned(),
            cause: None,
        })
    }

    async fn write_group(&self, writes: Vec<Write>) -> Result<()> {
        let writes = writes.into_iter().map(Prepared::new).collect::<Result<Vec<_>>>()?;
        let bytes = writes.iter().map(Prepared::bytes).sum();
        let outcomes = self.ask(Work::Group(writes), bytes).await?;
        outcomes.into_iter().try_for_each(|outcome| outcome.map(|_| ()))
    }

    fn read(&self, query: &Query) -> Result<Page> {
        query.check()?;
        self.shared.check_running()?;
        let range = query.remaining();
        let mut items = Vec::new();
        if range.is_empty() {
            return Ok(Page { items, next: None });
        }
        let now = self.shared.clock.now();
        let range = rowkey::range(&query.partition, &range);
        let (mut bytes, mut rows) = (0, 0);
        let mut last = None;
        let visit = |key: &Bytes, row: Bytes, files: &Files| {
            let malformed = || record::damaged(Table::Items, key, "its key makes no sense");
            let sort = rowkey::sort_key(key, &query.partition).ok_or_else(malformed)?;
            let (head, attributes) = record::decode(key, &row, files)?;
            let item = Item {
                key: Key::of(query.partition.clone(), sort.clone()),
                attributes,
                version: head.version,
                expiry: head.expiry,
            };
            last = Some(sort);
            rows += 1;
            if item.is_live(now) {
                bytes += item.size();
                items.push(item);
            }
            let full = items.len() >= query.limit || bytes >= PAGE_BYTES_MAX;
            Ok(if full || rows >= QUERY_ROWS_MAX {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        };
        let exhausted = self.shared.scan(Table::Items, range, query.direction, visit)?;
        let next = last.filter(|_| !exhausted).map(|last| query.clone().after(last));
        Ok(Page { items, next })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been told to everybody who asked.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore").field("place", &self.inner.shared.place).finish()
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    fn profile(&self) -> Profile {
        Profile {
            durable: self.inner.durable,
            small_item_bytes: 1_024,
            groups_cheap: true,
            expiry_free: false,
            relaxed_cheaper: false,
            outcome_window: Duration::ZERO,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let shared = &self.inner.shared;
        shared.check_running()?;
        let row_key = rowkey::encode(key);
        let sight = shared.sight();
        let row = sight.view.get(Table::Items, &row_key);
        let Some(row) = row.map_err(|error| shared.read_error("get", error))? else {
            return Ok(None);
        };
        let decoded = record::decode(&row_key, &row, &sight.files);
        let (head, attributes) = decoded.map_err(|error| shared.locate(error))?;
        let (version, expiry) = (head.version, head.expiry);
        let item = Item { key: key.clone(), attributes, version, expiry };
        Ok(item.is_live(shared.clock.now()).then_some(item))
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.inner.read(&query)
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.inner.write_group(vec![write]).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        check_group(&writes)?;
        if writes.is_empty() {
            return Ok(());
        }
        self.inner.write_group(writes).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        check_each(&writes)?;
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut writes = writes.into_iter().map(Prepared::new).peekable();
        while writes.peek().is_some() {
            // Outcomes of this part in order; writes that are sent have theirs filled in by the writer.
            let (mut part, mut part_outcomes, mut bytes) = (Vec::new(), Vec::new(), 0);
            while bytes < PART_BYTES_MAX
                && let Some(write) = writes.next()
            {
                match write {
                    Ok(write) => {
                        bytes += write.bytes();
                        part.push(write);
                        part_outcomes.push(None);
                    }
                    Err(error) => part_outcomes.push(Some(error)),
                }
            }
            let sent = part.len();
            let answers = match self.inner.ask(Work::Each(part), bytes).await {
                Ok(answers) => answers,
                // What came before has its own outcomes, so this is the outcome of each write that was sent.
                Err(error) => (0..sent).map(|_| Err(error.clone())).collect(),
            };
            let mut answers = answers.into_iter().map(|answer| answer.map(|_| ()));
            outcomes.extend(part_outcomes.into_iter().map(|refused| match refused {
                Some(error) => Err(error),
                None => answers.next().expect("the writer answers each write"),
            }));
        }
        Ok(outcomes)
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.shared.hints.subscribe(partition)
    }
}
