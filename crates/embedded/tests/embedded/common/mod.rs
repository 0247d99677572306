//! Stores in temporary directories.
#![allow(clippy::cast_possible_truncation, reason = "noise may be cut")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use millpond_embedded::{CargoOptions, Durability, EmbeddedStore, Maintenance, Options};
use millpond_store::{
    Attributes, Change, ChangeHint, Environment, Expect, Item, Key, Page, Partition, Profile,
    Query, Result, SortRange, Store, StoreError, Write, collect,
};
use millpond_testing::Subject;
use tempfile::TempDir;

/// A store that takes its directory with it.
#[derive(Debug)]
pub struct Kept {
    pub store: EmbeddedStore,
    _directory: TempDir,
}

impl Kept {
    pub async fn open(environment: &Environment, adjust: impl FnOnce(Options) -> Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = adjust(manual(directory.path().join("store")));
        let store = EmbeddedStore::open(options, environment).await.unwrap();
        Self { store, _directory: directory }
    }
}

#[async_trait]
impl Store for Kept {
    fn profile(&self) -> Profile {
        self.store.profile()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.store.get(key).await
    }
    async fn query(&self, query: Query) -> Result<Page> {
        self.store.query(query).await
    }
    async fn write(&self, write: Write) -> Result<()> {
        self.store.write(write).await
    }
    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.store.write_all(writes).await
    }
    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.store.write_each(writes).await
    }
    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.store.changed(partition)
    }
}

/// A new store that does not wait for the disk: the same engine, for tests in which nothing crashes.
pub async fn unsynced() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move {
            let fast = Durability::UnsafeNoSync;
            Arc::new(Kept::open(&environment, |options| options.durability(fast)).await) as _
        })
    })
    .await
}

/// No background work, and every gap is remembered.
pub fn manual(directory: impl AsRef<Path>) -> Options {
    Options::new(directory.as_ref()).maintenance(Maintenance::Manual).gap_worth(Duration::ZERO)
}

/// Items from 500 bytes on go to cargo files, which are small, and so are the steps of moving them.
pub const SMALL_CARGO: CargoOptions = CargoOptions {
    item_bytes_min: 500,
    commit_bytes_min: 0,
    file_bytes: 8 * 1_024,
    step_bytes: 2 * 1_024,
};

pub async fn open_small_cargo(directory: &Path) -> Result<EmbeddedStore> {
    EmbeddedStore::open(manual(directory).cargo(SMALL_CARGO), &Environment::system()).await
}

pub async fn open(directory: &Path) -> Result<EmbeddedStore> {
    EmbeddedStore::open(manual(directory), &Environment::system()).await
}

pub fn key(partition: &str, number: u64) -> Key {
    Key::new(partition, number.to_be_bytes().to_vec()).unwrap()
}

pub fn put(partition: &str, number: u64) -> Write {
    let attributes = Attributes::new().with("n", i64::try_from(number).unwrap());
    Write::put(key(partition, number), attributes, Expect::Any, Environment::system().version())
}

/// A put of so many more bytes.
pub fn put_bytes(partition: &str, number: u64, bytes: usize) -> Write {
    let mut write = put(partition, number);
    if let Change::Put { attributes, .. } = &mut write.change {
        let noise = (0..bytes).map(|at| (at as u64 * 31 + number * 7) as u8);
        attributes.set("cargo", noise.collect::<Vec<_>>());
    }
    write
}

/// The cargo files, by number, with their lengths.
pub fn cargo_files(directory: &Path) -> BTreeMap<u64, u64> {
    let entries = std::fs::read_dir(directory.join("cargo")).unwrap();
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let number = entry.file_name().to_str().unwrap().parse().unwrap();
        (number, entry.metadata().unwrap().len())
    };
    entries.map(file).collect()
}

pub fn delete(partition: &str, number: u64) -> Write {
    Write::delete(key(partition, number), Expect::Any)
}

/// The numbers of all items in a partition.
pub async fn numbers(store: &dyn Store, partition: &str) -> Result<Vec<i64>> {
    let query = Query::new(Partition::new(partition).unwrap()).range(SortRange::all());
    let items = collect(store, query, 1_000_000).await?;
    items.iter().map(|item| item.attributes.number("n")).collect()
}

/// Writes in groups, as many as there are.
pub async fn write_all(store: &dyn Store, writes: impl IntoIterator<Item = Write>) {
    let mut writes = writes.into_iter().peekable();
    while writes.peek().is_some() {
        store.write_all(writes.by_ref().take(100).collect()).await.unwrap();
    }
}

/// The text of an error that must come.
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T>) -> StoreError {
    outcome.expect_err("this should have been refused")
}
