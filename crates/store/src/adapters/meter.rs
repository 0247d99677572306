//! What a store's work costs: requests, units and bytes by operation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::Result;
use crate::hints::ChangeHint;
use crate::item::Item;
use crate::key::{Key, Partition};
use crate::query::{Consistency, Page, Query};
use crate::store::{Profile, Store};
use crate::write::Write;

/// What is counted apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// [`Store::get`].
    Get,
    /// [`Store::query`].
    Query,
    /// [`Store::write`].
    Write,
    /// [`Store::write_all`].
    WriteAll,
    /// [`Store::write_each`].
    WriteEach,
    /// An object put.
    ObjectPut,
    /// An object read.
    ObjectGet,
    /// An object deleted.
    ObjectDelete,
    /// A listing of objects.
    ObjectList,
}

/// What was used.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Requests to the backend.
    pub requests: u64,
    /// Read units: one for each 4 KB read with strong consistency, half for relaxed.
    pub read_units: f64,
    /// Write units: one for each 1 KB written, twice that in an atomic group.
    pub write_units: f64,
    /// Bytes read or written.
    pub bytes: u64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.bytes += other.bytes;
    }
}

/// Counters that many parties may write to. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<BTreeMap<Operation, Usage>>>);

impl Meter {
    /// All zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `usage` under `operation`.
    pub fn record(&self, operation: Operation, usage: Usage) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.entry(operation).or_default().add(usage);
    }

    /// What was counted since the last call, and starts over.
    #[must_use]
    pub fn take(&self) -> Reading {
        Reading(std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Reading {
        Reading(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// The state of a meter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading(BTreeMap<Operation, Usage>);

impl Reading {
    /// What `operation` used.
    #[must_use]
    pub fn of(&self, operation: Operation) -> Usage {
        self.0.get(&operation).copied().unwrap_or_default()
    }

    /// What all operations used.
    #[must_use]
    pub fn total(&self) -> Usage {
        let mut total = Usage::default();
        self.0.values().for_each(|usage| total.add(*usage));
        total
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:12} {:>9} {:>11} {:>11} {:>12}",
            "operation", "requests", "read units", "write units", "bytes"
        )?;
        let rows = self.0.iter().map(|(operation, usage)| (format!("{operation:?}"), *usage));
        for (name, usage) in rows.chain([("total".to_owned(), self.total())]) {
            let Usage { requests, read_units, write_units, bytes } = usage;
            writeln!(
                f,
                "{name:12} {requests:>9} {read_units:>11.1} {write_units:>11.1} {bytes:>12}"
            )?;
        }
        Ok(())
    }
}

/// A store whose calls are counted, with units reckoned by DynamoDB's rules from what goes through. The DynamoDB
/// backend has a meter of its own, which holds what the service reports.
#[derive(Debug)]
pub struct Metered<S> {
    inner: S,
    meter: Meter,
}

impl<S: Store> Metered<S> {
    /// Counts the calls to `inner` on `meter`.
    pub const fn new(inner: S, meter: Meter) -> Self {
        Self { inner, meter }
    }

    fn count_read<'a>(
        &self,
        operation: Operation,
        items: impl IntoIterator<Item = &'a Item>,
        consistency: Consistency,
    ) {
        let bytes: usize = items.into_iter().map(Item::size).sum();
        let share = match consistency {
            Consistency::Strong => 1.0,
            Consistency::Relaxed => 0.5,
        };
        let read_units = units(bytes, 4_096) * share;
        self.meter.record(
            operation,
            Usage { requests: 1, read_units, write_units: 0.0, bytes: bytes as u64 },
        );
    }

    fn count_writes(&self, operation: Operation, writes: &[Write], factor: f64) {
        let bytes: usize = writes.iter().map(Write::size).sum();
        let write_units: f64 = writes.iter().map(|write| units(write.size(), 1_024) * factor).sum();
        self.meter.record(
            operation,
            Usage { requests: 1, read_units: 0.0, write_units, bytes: bytes as u64 },
        );
    }
}

/// How many units of `unit` bytes, at least one.
#[expect(clippy::cast_precision_loss, reason = "counts of bytes in one request are far below 2^53")]
fn units(bytes: usize, unit: usize) -> f64 {
    bytes.div_ceil(unit).max(1) as f64
}

#[async_trait]
impl<S: Store> Store for Metered<S> {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let item = self.inner.get(key).await?;
        self.count_read(Operation::Get, &item, Consistency::Strong);
        Ok(item)
    }

    async fn query(&self, query: Query) -> Result<Page> {
        let consistency = query.consistency;
        let page = self.inner.query(query).await?;
        self.count_read(Operation::Query, &page.items, consistency);
        Ok(page)
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.count_writes(Operation::Write, std::slice::from_ref(&write), 1.0);
        self.inner.write(write).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.count_writes(Operation::WriteAll, &writes, 2.0);
        self.inner.write_all(writes).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.count_writes(Operation::WriteEach, &writes, 1.0);
        self.inner.write_each(writes).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
