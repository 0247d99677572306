//! The batch that the writer builds: what waiting requests make of the current state.

use std::collections::HashMap;

use bytes::Bytes;
use millpond_store::{Change, Item, Result, StoreError, Timestamp, Verdict, Write};
use millpond_store::{judge_group, judge_write};

use crate::cargo::{Moved, Place};
use crate::engine::{RowChange, Table};
use crate::record::{self, Head, Row};
use crate::rowkey;
use crate::shared::{Shared, Sight};

/// A checked write with its row ready, so that the writer has little to do.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub write: Write,
    pub row_key: Bytes,
    pub row: Option<Row>,
}

impl Prepared {
    /// Checks a write and encodes it.
    ///
    /// # Errors
    /// As [`Write::check`].
    pub(crate) fn new(write: Write) -> Result<Self> {
        write.check()?;
        let row_key = rowkey::encode(&write.key);
        let row = match &write.change {
            Change::Put { attributes, expiry, version } => {
                Some(record::encode(&row_key, *version, *expiry, attributes))
            }
            Change::Delete => None,
        };
        Ok(Self { write, row_key, row })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.row_key.len() + self.row.as_ref().map_or(0, Row::len)
    }
}

/// Changes that will be committed together. Later requests see what earlier ones in the batch do.
pub(crate) struct Batch<'a> {
    shared: &'a Shared,
    sight: Sight,
    now: Timestamp,
    items: HashMap<Bytes, Option<Row>>,
    expiry: HashMap<Bytes, Option<Bytes>>,
    /// Rows in cargo files that are replaced or deleted.
    released: Vec<(Bytes, Place)>,
    /// Whether rows are moved within the cargo files.
    moves: bool,
    pub bytes: usize,
    pub deletes: u64,
}

/// What a batch changes.
pub(crate) struct Changes {
    pub items: Vec<(Bytes, Option<Row>)>,
    pub expiry: Vec<RowChange>,
    pub released: Vec<(Bytes, Place)>,
    pub moves: bool,
    /// The rows that are put.
    pub puts: Vec<(Table, Bytes)>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(shared: &'a Shared, now: Timestamp) -> Self {
        let (items, expiry) = (HashMap::new(), HashMap::new());
        Self {
            shared,
            sight: shared.sight(),
            now,
            items,
            expiry,
            released: Vec::new(),
            moves: false,
            bytes: 0,
            deletes: 0,
        }
    }

    /// The row under `key`, expired or not. What is in a cargo file is a stub here.
    fn row(&self, key: &Bytes) -> Result<Option<Bytes>> {
        match self.items.get(key) {
            Some(row) => Ok(row.as_ref().map(Row::whole)),
            None => self
                .sight
                .view
                .get(Table::Items, key)
                .map_err(|error| self.shared.read_error("write", error)),
        }
    }

    /// Judges writes as one group, and takes them up if they are to be applied.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], and [`StoreError::Corrupt`] when a row that decides is damaged.
    pub(crate) fn add(&mut self, writes: &[Prepared]) -> Result<()> {
        self.judge_and_apply(writes).map_err(|error| self.shared.locate(error))
    }

    fn judge_and_apply(&mut self, writes: &[Prepared]) -> Result<()> {
        let mut rows = Vec::with_capacity(writes.len());
        let mut verdict = Verdict::Apply;
        for write in writes {
            let row = self.row(&write.row_key)?;
            let head = row.as_ref().map(|row| record::decode_head(&write.row_key, row));
            let head = head.transpose()?;
            let live = head.filter(|head| self.is_live(*head)).map(|head| head.version);
            match (verdict, judge_write(&write.write, live)) {
                (_, Verdict::AlreadyApplied) => verdict = Verdict::AlreadyApplied,
                (Verdict::Apply, Verdict::Conflict) => verdict = Verdict::Conflict,
                _ => {}
            }
            rows.push((row, head));
        }
        match verdict {
            Verdict::AlreadyApplied => Ok(()),
            Verdict::Conflict => Err(self.conflict(writes, &rows)?),
            Verdict::Apply => {
                for (write, (_, head)) in writes.iter().zip(rows) {
                    self.apply(write, head);
                }
                Ok(())
            }
        }
    }

    fn is_live(&self, head: Head) -> bool {
        !head.expiry.is_some_and(|expiry| expiry.is_past(self.now))
    }

    /// The conflict, with the current items.
    fn conflict(
        &self,
        writes: &[Prepared],
        rows: &[(Option<Bytes>, Option<Head>)],
    ) -> Result<StoreError> {
        let mut items = Vec::with_capacity(rows.len());
        for (write, (row, head)) in writes.iter().zip(rows) {
            let live = head.is_some_and(|head| self.is_live(head));
            let item = row.as_ref().filter(|_| live).map(|row| {
                let (head, attributes) = record::decode(&write.row_key, row, &self.sight.files)?;
                let (version, expiry) = (head.version, head.expiry);
                Ok::<_, StoreError>(Item {
                    key: write.write.key.clone(),
                    attributes,
                    version,
                    expiry,
                })
            });
            items.push(item.transpose()?);
        }
        let plain: Vec<Write> = writes.iter().map(|write| write.write.clone()).collect();
        let judged = judge_group(&plain, |index, _| items.get(index).and_then(Option::as_ref));
        Ok(judged.expect_err("a write of the group was in conflict"))
    }

    fn apply(&mut self, write: &Prepared, before: Option<Head>) {
        self.bytes += write.bytes();
        self.release(&write.row_key, before);
        if let Some(expiry) = before.and_then(|head| head.expiry) {
            self.expiry.insert(rowkey::expiry(expiry, &write.row_key), None);
        }
        if let Change::Put { expiry: Some(expiry), .. } = &write.write.change {
            let key = rowkey::expiry(*expiry, &write.row_key);
            let row = record::seal(&key, &[]);
            self.expiry.insert(key, Some(row));
        }
        if write.row.is_some() || before.is_some() {
            self.deletes += u64::from(write.row.is_none());
            self.items.insert(write.row_key.clone(), write.row.clone());
        }
    }

    fn release(&mut self, row_key: &Bytes, before: Option<Head>) {
        if let Some(place) = before.and_then(|head| head.place) {
            self.released.push((row_key.clone(), place));
        }
    }

    /// Moves rows to the current cargo file, those that are still where they were.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a row is damaged.
    pub(crate) fn relocate(&mut self, rows: &[Moved]) -> Result<usize> {
        let mut moved = 0;
        for Moved { row_key, from, row } in rows {
            let now = self.row(row_key)?;
            let head = now.map(|now| record::decode_head(row_key, &now)).transpose()?;
            if head.is_some_and(|head| head.place == Some(*from)) {
                self.release(row_key, head);
                self.bytes += row.len();
                self.items.insert(row_key.clone(), Some(Row::from(row.clone())));
                self.moves = true;
                moved += 1;
            }
        }
        Ok(moved)
    }

    /// Removes items that have expired, given their keys in the expiry table. Each is looked at again: it may
    /// have been replaced since.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a row is damaged.
    pub(crate) fn sweep(&mut self, due: &[Bytes]) -> Result<usize> {
        let mut swept = 0;
        for key in due {
            let Some((expiry, row_key)) = rowkey::split_expiry(key) else {
                return Err(record::damaged(Table::Expiry, key, "the key is too short"));
            };
            let row = self.row(&row_key)?;
            let head = row.map(|row| record::decode_head(&row_key, &row)).transpose()?;
            if !expiry.is_past(self.now) {
                continue;
            }
            if head.is_some_and(|head| head.expiry == Some(expiry)) {
                self.release(&row_key, head);
                self.items.insert(row_key, None);
                self.deletes += 1;
                swept += 1;
            }
            self.expiry.insert(key.clone(), None);
            self.deletes += 1;
        }
        Ok(swept)
    }

    /// Puts rows into each table that no reader looks at, before and behind all others. The engine replays journals
    /// from the newest row that its tables hold; when a compaction has removed the newest deletes, it would replay them
    /// all. And it can compact in small steps only what lies between the first and the last row of its last level.
    pub(crate) fn fence(&mut self) {
        for key in rowkey::items_fences() {
            let row = record::seal(&key, &[]);
            self.items.insert(key, Some(row.into()));
        }
        for key in rowkey::expiry_fences() {
            let row = record::seal(&key, &[]);
            self.expiry.insert(key, Some(row));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.expiry.is_empty()
    }

    /// What is to be committed.
    pub(crate) fn into_changes(self) -> Changes {
        let mut puts = Vec::with_capacity(self.items.len());
        let items: Vec<_> = self.items.into_iter().collect();
        puts.extend(
            items
                .iter()
                .filter(|(_, row)| row.is_some())
                .map(|(key, _)| (Table::Items, key.clone())),
        );
        let expiry = self.expiry.into_iter().map(|(key, value)| {
            if value.is_some() {
                puts.push((Table::Expiry, key.clone()));
            }
            RowChange { table: Table::Expiry, key, value }
        });
        let expiry = expiry.collect();
        Changes { items, expiry, released: self.released, moves: self.moves, puts }
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::{Attributes, Environment, Expect, Expiry, Key, VirtualClock};

    use super::*;
    use crate::open::open_writer;
    use crate::options::Options;

    /// Between the sweeper's look and the writer's turn an item may have been replaced.
    #[test]
    fn a_sweep_looks_again_at_what_it_was_told_to_remove() {
        let directory = tempfile::tempdir().unwrap();
        let clock = VirtualClock::new(Timestamp::from_millis(0));
        let environment = Environment::simulated(clock, 1);
        let options = Options::new(directory.path().join("store"));
        let writer = open_writer(&options, environment.clock.clone()).unwrap();
        let put = |seconds| {
            let key = Key::new("p", b"k".as_slice()).unwrap();
            let write = Write::put(key, Attributes::new(), Expect::Any, environment.version());
            Prepared::new(write.expires(Expiry::from_secs(seconds))).unwrap()
        };
        let mut batch = Batch::new(&writer.shared, Timestamp::from_millis(15_000));
        let (old, new) = (put(10), put(20));
        let key = rowkey::expiry(Expiry::from_secs(10), &old.row_key);
        batch.add(std::slice::from_ref(&old)).unwrap();
        batch.add(std::slice::from_ref(&new)).unwrap();
        assert_eq!(batch.sweep(&[key]).unwrap(), 0);
        let row = batch.row(&new.row_key).unwrap();
        assert_eq!(row, new.row.as_ref().map(Row::whole), "the new item was removed");
    }
}
