//! Writing, reading and discarding the cargo of one lane.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use millpond_store::{
    Attributes, Consistency, Expect, Expiry, Item, Key, Partition, Profile, Query, Result, SortKey,
    SortRange, Store, StoreError, UniqueId, Version, Write, collect,
};

use super::objects::Objects;
use super::reference::CargoRef;
use crate::append::Slot;
use crate::limits::{CARGO_CHUNK_BYTES, CARGO_REQUESTS_MAX};

/// Where a cargo goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    Inline,
    Items,
    Object,
    Shared(Slot),
}

/// The cargo of one lane.
#[derive(Debug, Clone)]
pub struct Hold {
    store: Arc<dyn Store>,
    profile: Profile,
    objects: Option<Objects>,
    object_bytes_min: usize,
    lane: Partition,
    /// Where the objects are that it shares with other lanes.
    shelf: Option<Partition>,
    partition: Partition,
}

impl Hold {
    pub fn new(
        store: Arc<dyn Store>,
        objects: Option<Objects>,
        object_bytes_min: usize,
        lane: Partition,
        shelf: Option<Partition>,
    ) -> Result<Self> {
        let partition = Partition::new(format!("{lane}#cargo"))?;
        let profile = store.profile();
        Ok(Self { store, profile, objects, object_bytes_min, lane, shelf, partition })
    }

    /// Where a cargo of `len` bytes goes, beside a row that has `row` bytes without it.
    pub fn place(&self, row: usize, len: usize) -> Placement {
        if row + len <= self.profile.small_item_bytes {
            Placement::Inline
        } else if self.objects.is_some() && len >= self.object_bytes_min {
            Placement::Object
        } else {
            Placement::Items
        }
    }

    fn chunk_key(&self, id: UniqueId, chunk: usize) -> Result<Key> {
        let chunk = u16::try_from(chunk).map_err(|_| {
            StoreError::invalid("cargo", "has more items than a reference can name")
        })?;
        let mut sort = Vec::with_capacity(UniqueId::LEN + 2);
        sort.extend_from_slice(id.as_bytes());
        sort.extend_from_slice(&chunk.to_be_bytes());
        Ok(Key::of(self.partition.clone(), SortKey::new(sort)?))
    }

    /// The writes that put a cargo into items. Names are unique and bytes always the same, so that doing it twice
    /// does no harm.
    pub fn item_writes(
        &self,
        id: UniqueId,
        cargo: &Bytes,
        version: Version,
        expiry: Option<Expiry>,
    ) -> Result<Vec<Write>> {
        (0..CargoRef::chunks(cargo.len()))
            .map(|chunk| {
                let start = chunk * CARGO_CHUNK_BYTES;
                let end = cargo.len().min(start + CARGO_CHUNK_BYTES);
                let attributes = Attributes::new().with("cargo", cargo.slice(start..end));
                let put = Write::put(self.chunk_key(id, chunk)?, attributes, Expect::Any, version);
                Ok(match expiry {
                    Some(expiry) => put.expires(expiry),
                    None => put,
                })
            })
            .collect()
    }

    /// Puts a cargo into items.
    pub async fn stow_items(&self, writes: Vec<Write>) -> Result<()> {
        self.store.write_each(writes).await?.into_iter().collect()
    }

    /// Puts a cargo into an object.
    pub async fn stow_object(&self, id: UniqueId, cargo: Bytes) -> Result<()> {
        let objects = self.objects()?;
        objects.put(&objects.path(&self.lane, id), cargo).await
    }

    fn objects(&self) -> Result<&Objects> {
        self.objects.as_ref().ok_or_else(|| {
            StoreError::misconfigured(
                format!("lane {} has cargo in an object store, and none is configured", self.lane),
                "open the store with the object store that it was written with",
            )
        })
    }

    fn shelf(&self) -> Result<&Partition> {
        self.shelf.as_ref().ok_or_else(|| {
            let place = format!("lane {}", self.lane);
            StoreError::corrupt(place, "it names a shared object, and its lane shares none")
        })
    }

    /// Reads a cargo.
    pub async fn fetch(&self, id: UniqueId, reference: &CargoRef) -> Result<Bytes> {
        let (bytes, place) = match reference {
            CargoRef::Inline(bytes) => (bytes.clone(), "row"),
            CargoRef::Object { .. } => {
                let objects = self.objects()?;
                (objects.get(&objects.path(&self.lane, id)).await?, "object")
            }
            CargoRef::Shared { object, offset, len } => {
                let objects = self.objects()?;
                let path = objects.path(self.shelf()?, *object);
                (objects.get_range(&path, *offset, *len).await?, "shared object")
            }
            CargoRef::Items { len } => {
                (self.fetch_items(id, CargoRef::chunks(*len)).await?, "items")
            }
        };
        if bytes.len() == reference.len() {
            return Ok(bytes);
        }
        Err(StoreError::corrupt(
            format!("cargo {id} of lane {} ({place})", self.lane),
            format!("it has {} bytes, its row says {}", bytes.len(), reference.len()),
        ))
    }

    async fn fetch_items(&self, id: UniqueId, chunks: usize) -> Result<Bytes> {
        let mut items = if self.profile.relaxed_cheaper {
            // Cargo never changes: a stale answer can only lack items, and then a strong one is asked for.
            let relaxed = self.query_items(id, chunks, Consistency::Relaxed).await?;
            if relaxed.len() == chunks {
                relaxed
            } else {
                self.query_items(id, chunks, Consistency::Strong).await?
            }
        } else {
            stream::iter(0..chunks)
                .map(async |chunk| self.store.get(&self.chunk_key(id, chunk)?).await)
                .buffered(CARGO_REQUESTS_MAX)
                .try_filter_map(async |item| Ok(item))
                .try_collect()
                .await?
        };
        if items.len() != chunks {
            return Err(StoreError::corrupt(
                format!("cargo {id} of lane {}", self.lane),
                format!("it has {} items, its row says {chunks}", items.len()),
            ));
        }
        if chunks == 1 {
            return items.swap_remove(0).attributes.bytes("cargo").cloned();
        }
        let mut cargo = BytesMut::new();
        for item in &items {
            cargo.extend_from_slice(item.attributes.bytes("cargo")?);
        }
        Ok(cargo.freeze())
    }

    async fn query_items(
        &self,
        id: UniqueId,
        chunks: usize,
        consistency: Consistency,
    ) -> Result<Vec<Item>> {
        let prefix = SortKey::new(id.as_bytes().to_vec())?;
        let mut query = Query::new(self.partition.clone()).range(SortRange::prefix(prefix));
        query.consistency = consistency;
        collect(self.store.as_ref(), query, chunks).await
    }

    /// The writes that remove a cargo's items, where they are not better left to their expiry.
    pub fn item_deletes(
        &self,
        id: UniqueId,
        reference: &CargoRef,
        expires: bool,
    ) -> Result<Vec<Write>> {
        match reference {
            CargoRef::Items { len } if !(expires && self.profile.expiry_free) => (0
                ..CargoRef::chunks(*len))
                .map(|chunk| Ok(Write::delete(self.chunk_key(id, chunk)?, Expect::Any)))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// Removes a cargo's object, if it has one of its own. A failure is not the caller's: the sweep will come by,
    /// as it does for objects that lanes share.
    pub async fn discard_object(&self, id: UniqueId, reference: &CargoRef) {
        let (CargoRef::Object { .. }, Some(objects)) = (reference, &self.objects) else { return };
        let path = objects.path(&self.lane, id);
        if let Err(error) = objects.delete(&path).await {
            tracing::warn!(%path, %error, "an object is left to the sweep");
        }
    }
}
