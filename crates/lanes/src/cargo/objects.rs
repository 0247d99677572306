//! Cargo in an object store.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use millpond_store::{Meter, Operation, Partition, Result, StoreError, UniqueId, Usage};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

/// An object store for large cargo, and the prefix under which a deployment keeps it.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    meter: Meter,
}

impl Objects {
    /// Cargo under `prefix` in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix, meter: Meter::new() }
    }

    /// The store and the prefix, for others that keep objects beside the cargo.
    #[must_use]
    pub fn place(&self) -> (Arc<dyn ObjectStore>, Path) {
        (Arc::clone(&self.store), self.prefix.clone())
    }

    /// Counts requests on `meter`.
    #[must_use]
    pub fn metered(self, meter: Meter) -> Self {
        Self { meter, ..self }
    }

    /// Where the cargo of a lane is.
    pub(super) fn lane_prefix(&self, lane: &Partition) -> Path {
        self.prefix.clone().join(lane.as_str())
    }

    /// Where the cargo with this id is.
    pub(super) fn path(&self, lane: &Partition, id: UniqueId) -> Path {
        self.lane_prefix(lane).join(id.to_string())
    }

    pub(super) fn store(&self) -> &dyn ObjectStore {
        self.store.as_ref()
    }

    pub(super) fn count(&self, operation: Operation, bytes: usize) {
        self.meter
            .record(operation, Usage { requests: 1, bytes: bytes as u64, ..Usage::default() });
    }

    /// Puts an object. Its name is unique and its bytes are always the same, so that doing it twice does no harm.
    pub(super) async fn put(&self, path: &Path, cargo: Bytes) -> Result<()> {
        self.count(Operation::ObjectPut, cargo.len());
        let put = self.store.put(path, cargo.into()).await;
        put.map(|_| ()).map_err(|error| failed("object put", path, error))
    }

    pub(super) async fn get(&self, path: &Path) -> Result<Bytes> {
        let get = async { self.store.get(path).await?.bytes().await };
        match get.await {
            Ok(bytes) => {
                self.count(Operation::ObjectGet, bytes.len());
                Ok(bytes)
            }
            Err(object_store::Error::NotFound { .. }) => Err(StoreError::corrupt(
                format!("object {path}"),
                "a row names it, but it is not there",
            )),
            Err(error) => Err(failed("object get", path, error)),
        }
    }

    /// A part of an object.
    pub(super) async fn get_range(&self, path: &Path, offset: u64, len: usize) -> Result<Bytes> {
        let range = offset..offset.saturating_add(len as u64);
        match self.store.get_range(path, range).await {
            Ok(bytes) => {
                self.count(Operation::ObjectGet, bytes.len());
                Ok(bytes)
            }
            Err(object_store::Error::NotFound { .. }) => Err(StoreError::corrupt(
                format!("object {path}"),
                "a row names it, but it is not there",
            )),
            Err(error) => Err(failed("object get", path, error)),
        }
    }

    /// Deletes an object; one that is gone already is fine.
    pub(super) async fn delete(&self, path: &Path) -> Result<()> {
        self.count(Operation::ObjectDelete, 0);
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("object delete", path, error)),
        }
    }
}

/// An object's request failed. Objects are put under unique names before a row names them, so a failed put changes
/// nothing that anybody can see.
pub(super) fn failed(
    operation: &'static str,
    path: &Path,
    error: object_store::Error,
) -> StoreError {
    use object_store::Error as Cause;
    let detail = format!("{path}: {error}");
    match error {
        Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. } => {
            StoreError::misconfigured(
                format!("{operation} was refused ({detail})"),
                "give the credentials in use the permission for this bucket or directory",
            )
        }
        error => StoreError::Unavailable { operation, detail, cause: Some(Arc::new(error)) },
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({}/{})", self.store, self.prefix)
    }
}
