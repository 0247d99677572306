//! An object store that fails by plan, or holds puts back until it is told otherwise.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::watch;

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFault {
    /// It fails and does nothing.
    Before,
    /// It fails, and has been done.
    After,
}

/// An object store that fails by plan.
#[derive(Debug)]
pub struct FaultyObjects {
    inner: Arc<dyn ObjectStore>,
    plan: Mutex<BTreeMap<u64, ObjectFault>>,
    requests: AtomicU64,
    held: watch::Sender<bool>,
    waiting: AtomicU64,
}

impl FaultyObjects {
    /// Wraps `inner`; nothing fails until there is a plan.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        let (plan, requests) = (Mutex::default(), AtomicU64::new(0));
        let (held, waiting) = (watch::Sender::new(false), AtomicU64::new(0));
        Arc::new(Self { inner, plan, requests, held, waiting })
    }

    /// Requests with these numbers fail from now on, counted from 0.
    pub fn follow(&self, plan: impl IntoIterator<Item = (u64, ObjectFault)>) {
        *self.plan.lock().unwrap() = plan.into_iter().collect();
        self.requests.store(0, Ordering::Release);
    }

    /// Requests since the plan was set.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Acquire)
    }

    /// Holds puts back, or lets them go.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Puts that are held back.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Acquire)
    }

    fn next(&self) -> Option<ObjectFault> {
        let request = self.requests.fetch_add(1, Ordering::AcqRel);
        self.plan.lock().unwrap().get(&request).copied()
    }
}

fn failed() -> Error {
    Error::Generic { store: "faulty", source: "made to fail".into() }
}

fn hide<T>(fault: Option<ObjectFault>, outcome: Result<T>) -> Result<T> {
    match fault {
        Some(ObjectFault::After) => outcome.and_then(|_| Err(failed())),
        _ => outcome,
    }
}

impl fmt::Display for FaultyObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyObjects {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let fault = self.next();
        if fault == Some(ObjectFault::Before) {
            return Err(failed());
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        hide(fault, self.inner.put_opts(at, payload, opts).await)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        match self.next() {
            Some(_) => Err(failed()),
            None => self.inner.get_opts(at, options).await,
        }
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.next() {
            Some(_) => Err(failed()),
            None => self.inner.get_ranges(at, ranges).await,
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.next() {
            Some(ObjectFault::Before) => futures::stream::iter([Err(failed())]).boxed(),
            fault => {
                self.inner.delete_stream(locations).map(move |outcome| hide(fault, outcome)).boxed()
            }
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.next() {
            Some(_) => futures::stream::iter([Err(failed())]).boxed(),
            None => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
