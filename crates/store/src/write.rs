//! The one write primitive: compare-and-swap.

use std::collections::HashSet;

use crate::attributes::Attributes;
use crate::error::{Conflict, Result, StoreError};
use crate::item::{Expiry, Item, Version, item_size};
use crate::key::Key;
use crate::limits::{EACH_WRITES_MAX, GROUP_BYTES_MAX, GROUP_WRITES_MAX, ITEM_BYTES_MAX};

/// What a write expects to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// No item, or one past its expiry.
    Absent,
    /// The item in exactly this version.
    Version(Version),
    /// Whatever is there.
    Any,
}

/// What a write does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Puts an item, replacing all of what was there.
    Put {
        /// What it says.
        attributes: Attributes,
        /// When it ends, if ever.
        expiry: Option<Expiry>,
        /// The version it will have: fresh for each write, the same when that write is retried.
        version: Version,
    },
    /// Removes the item.
    Delete,
}

/// A conditional change of one item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Which item.
    pub key: Key,
    /// What to do.
    pub change: Change,
    /// Under which condition.
    pub expect: Expect,
}

impl Write {
    /// Puts an item that will have `version`.
    #[must_use]
    pub const fn put(key: Key, attributes: Attributes, expect: Expect, version: Version) -> Self {
        Self { key, change: Change::Put { attributes, expiry: None, version }, expect }
    }

    /// Removes an item.
    #[must_use]
    pub const fn delete(key: Key, expect: Expect) -> Self {
        Self { key, change: Change::Delete, expect }
    }

    /// The same put with an expiry; a delete has none and stays as it is.
    #[must_use]
    pub fn expires(mut self, at: Expiry) -> Self {
        if let Change::Put { expiry, .. } = &mut self.change {
            *expiry = Some(at);
        }
        self
    }

    /// The version of the item that the write makes.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        match self.change {
            Change::Put { version, .. } => Some(version),
            Change::Delete => None,
        }
    }

    /// The item that the write makes.
    #[must_use]
    pub fn item(&self) -> Option<Item> {
        match &self.change {
            Change::Put { attributes, expiry, version } => Some(Item {
                key: self.key.clone(),
                attributes: attributes.clone(),
                version: *version,
                expiry: *expiry,
            }),
            Change::Delete => None,
        }
    }

    /// The size of what is written, by DynamoDB's rules.
    #[must_use]
    pub fn size(&self) -> usize {
        let nothing = Attributes::new();
        match &self.change {
            Change::Put { attributes, expiry, .. } => item_size(&self.key, attributes, *expiry),
            Change::Delete => item_size(&self.key, &nothing, None),
        }
    }

    /// Checks names and sizes.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] or [`StoreError::TooLarge`], which name what is wrong.
    pub fn check(&self) -> Result<()> {
        if let Change::Put { attributes, .. } = &self.change {
            attributes.check()?;
        }
        StoreError::check_size("item", self.size(), ITEM_BYTES_MAX)
    }
}

/// Checks the writes of an atomic group.
///
/// # Errors
/// [`StoreError::Invalid`] or [`StoreError::TooLarge`], which name what is wrong.
pub fn check_group(writes: &[Write]) -> Result<()> {
    check_count("atomic group", writes, GROUP_WRITES_MAX)?;
    let bytes = writes.iter().map(Write::size).sum();
    StoreError::check_size("atomic group", bytes, GROUP_BYTES_MAX)?;
    writes.iter().try_for_each(Write::check)
}

/// Checks the number and keys of independent writes; each write is checked on its own, with an outcome of its
/// own.
///
/// # Errors
/// [`StoreError::Invalid`] or [`StoreError::TooLarge`], which name what is wrong.
pub fn check_each(writes: &[Write]) -> Result<()> {
    check_count("independent writes", writes, EACH_WRITES_MAX)
}

fn check_count(what: &'static str, writes: &[Write], limit: usize) -> Result<()> {
    if writes.len() > limit {
        return Err(StoreError::TooLarge { what, size: writes.len(), unit: "writes", limit });
    }
    let mut keys = HashSet::with_capacity(writes.len());
    match writes.iter().find(|write| !keys.insert(&write.key)) {
        Some(twice) => {
            Err(StoreError::invalid(what, format!("name the key {} more than once", twice.key)))
        }
        None => Ok(()),
    }
}

/// What becomes of a write, given what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Do it.
    Apply,
    /// It has been done: the item that it makes is there already.
    AlreadyApplied,
    /// Its expectation does not hold.
    Conflict,
}

/// Judges one write against the live item under its key, as every backend must.
#[must_use]
pub fn judge_write(write: &Write, current: Option<Version>) -> Verdict {
    if current.is_some() && current == write.version() {
        return Verdict::AlreadyApplied;
    }
    let holds = match write.expect {
        Expect::Absent => current.is_none(),
        Expect::Version(version) => current == Some(version),
        Expect::Any => true,
    };
    if holds { Verdict::Apply } else { Verdict::Conflict }
}

/// Judges an atomic group against the live items under its keys, as every backend must: since a group is
/// applied whole, one put found under its own version shows that all of it was applied.
///
/// # Errors
/// [`StoreError::Conflict`] with every expectation that does not hold.
pub fn judge_group<'a>(
    writes: &[Write],
    mut current: impl FnMut(usize, &Write) -> Option<&'a Item>,
) -> Result<Verdict> {
    let mut conflicts = Vec::new();
    let mut verdict = Verdict::Apply;
    for (index, write) in writes.iter().enumerate() {
        let item = current(index, write);
        match judge_write(write, item.map(|item| item.version)) {
            Verdict::Apply => {}
            Verdict::AlreadyApplied => verdict = Verdict::AlreadyApplied,
            Verdict::Conflict => {
                conflicts.push(Conflict { index, key: write.key.clone(), current: item.cloned() });
            }
        }
    }
    if verdict == Verdict::AlreadyApplied || conflicts.is_empty() {
        return Ok(verdict);
    }
    let first = conflicts.remove(0);
    Err(StoreError::conflicts(first, conflicts))
}
