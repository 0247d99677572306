//! A segment row: many messages in one small item.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `at` | number | when it was appended, ms since 1970 |
//! | `n` | number | how many messages |
//! | `id` | bytes | the append's id (sequenced lanes; in unordered lanes it is the key) |
//! | `idx` | bytes | the [index](crate::Index) |
//! | `idx_len` | number | instead of `idx`: that many bytes of index stand before the cargo |
//! | `cargo` | bytes | the cargo, inline |
//! | `ref` | bytes | instead of `cargo`: the [reference](crate::cargo::CargoRef) to it |
//! | `sum` | number | CRC-32 of id, time (8 bytes, big-endian), index and cargo |
//! | `st` | bytes | the product's delivery state, when there is any |
//! | `end` | number | when its messages end, ms since 1970, when they do |
//! | `f`, `b` | number | what a row of a sequenced lane [hands on](crate::Carry) |
//! | `husk` | number | 1: the segment was removed; only `n`, `id`, `f`, `b`, `at` and this are left |
//!
//! The sort key is `s` and then the id (unordered) or the first message's number in 8 bytes, big-endian
//! (sequenced).

use bytes::Bytes;
use millpond_store::{
    Attributes, Expiry, Item, Key, Partition, Result, SortKey, StoreError, Timestamp, UniqueId,
    Value, Version,
};

use crate::cargo::CargoRef;
use crate::carry::Carry;
use crate::index::Index;

/// The first byte of every segment row's sort key.
pub const ROW_PREFIX: u8 = b's';

/// The two kinds of lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Rows have time-ordered unique ids.
    Unordered,
    /// Rows have the number of their first message.
    Sequenced,
}

/// Where a segment stands in its lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// In an unordered lane: by its id.
    Id(UniqueId),
    /// In a sequenced lane: by the number of its first message.
    Number(u64),
}

impl Place {
    pub(crate) fn sort_key(self) -> Result<SortKey> {
        let mut sort = Vec::with_capacity(1 + UniqueId::LEN);
        sort.push(ROW_PREFIX);
        match self {
            Self::Id(id) => sort.extend_from_slice(id.as_bytes()),
            Self::Number(number) => sort.extend_from_slice(&number.to_be_bytes()),
        }
        SortKey::new(sort)
    }

    fn of(kind: Kind, sort: &SortKey) -> Option<Self> {
        let (first, rest) = sort.as_bytes().split_first()?;
        match kind {
            _ if *first != ROW_PREFIX => None,
            Kind::Unordered => Some(Self::Id(UniqueId::from_bytes(rest.try_into().ok()?))),
            Kind::Sequenced => Some(Self::Number(u64::from_be_bytes(rest.try_into().ok()?))),
        }
    }
}

/// How a segment's index is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IndexPlace {
    Row(Bytes),
    Cargo(usize),
}

/// A segment's row, without its cargo unless that is inline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where it stands.
    pub place: Place,
    /// Which append made it.
    pub id: UniqueId,
    /// How many messages it has.
    pub count: usize,
    /// When it was appended, by its writer's clock.
    pub appended: Timestamp,
    /// The product's delivery state; empty when there is none yet.
    pub state: Bytes,
    /// When its messages end by the lane's retention at the time, if ever.
    pub ends: Option<Timestamp>,
    /// Where its cargo is.
    pub cargo: CargoRef,
    /// The row's version: what the next change of it expects.
    pub version: Version,
    /// When the row ends, if ever.
    pub expiry: Option<Expiry>,
    /// In a sequenced lane: what the row hands on to the next.
    pub carry: Carry,
    pub(crate) index: IndexPlace,
    pub(crate) sum: u32,
}

/// What is left of a removed segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Husk {
    pub place: Place,
    pub id: UniqueId,
    pub count: usize,
    pub version: Version,
    pub expiry: Option<Expiry>,
    pub carry: Carry,
}

/// A row of a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Row {
    Segment(Segment),
    Husk(Husk),
}

impl Segment {
    /// The index, when it is kept in the row, as queues' always are.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    pub fn index(&self) -> Result<Option<Index>> {
        match &self.index {
            IndexPlace::Cargo(_) => Ok(None),
            IndexPlace::Row(bytes) => self.decode_index(bytes).map(Some),
        }
    }

    pub(crate) fn decode_index(&self, bytes: &[u8]) -> Result<Index> {
        Index::decode(bytes, self.appended)
            .filter(|index| index.entries().len() == self.count)
            .ok_or_else(|| self.corrupt("its index cannot be read"))
    }

    /// The number of its first message, in a sequenced lane.
    #[must_use]
    pub const fn first(&self) -> Option<u64> {
        match self.place {
            Place::Number(first) => Some(first),
            Place::Id(_) => None,
        }
    }

    pub(crate) fn corrupt(&self, detail: &str) -> StoreError {
        StoreError::corrupt(format!("segment {:?}", self.place), detail)
    }

    /// The row's attributes.
    pub(crate) fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::new()
            .with("at", number(self.appended.as_millis()))
            .with("n", number(self.count as u64))
            .with("sum", i64::from(self.sum));
        if let Place::Number(_) = self.place {
            attributes.set("id", self.id.as_bytes().to_vec());
            self.carry.add_to(&mut attributes);
        }
        match &self.index {
            IndexPlace::Row(bytes) => attributes.set("idx", bytes.clone()),
            IndexPlace::Cargo(len) => attributes.set("idx_len", number(*len as u64)),
        }
        match (&self.cargo, self.cargo.encode()) {
            (CargoRef::Inline(bytes), _) => attributes.set("cargo", bytes.clone()),
            (_, reference) => attributes.set("ref", reference.unwrap_or_default()),
        }
        if !self.state.is_empty() {
            attributes.set("st", self.state.clone());
        }
        if let Some(ends) = self.ends {
            attributes.set("end", number(ends.as_millis()));
        }
        attributes
    }

    /// The checksum of a segment with these parts.
    pub(crate) fn checksum(
        id: UniqueId,
        appended: Timestamp,
        index: &[u8],
        cargo: &[&[u8]],
    ) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(id.as_bytes());
        hasher.update(&appended.as_millis().to_be_bytes());
        hasher.update(index);
        cargo.iter().for_each(|part| hasher.update(part));
        hasher.finalize()
    }
}

impl Husk {
    pub fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::new().with("husk", 1).with("n", number(self.count as u64));
        if let Place::Number(_) = self.place {
            attributes.set("id", self.id.as_bytes().to_vec());
            self.carry.add_to(&mut attributes);
        }
        attributes
    }
}

impl Row {
    /// The key of the row at `place` in `lane`.
    pub fn key(lane: &Partition, place: Place) -> Result<Key> {
        Ok(Key::of(lane.clone(), place.sort_key()?))
    }

    /// Reads a row.
    pub fn decode(kind: Kind, item: &Item) -> Result<Self> {
        Self::read(kind, item).map_err(|error| {
            StoreError::corrupt(format!("segment row {}", item.key), error.to_string())
        })
    }

    fn read(kind: Kind, item: &Item) -> Result<Self> {
        let wrong = |detail: &str| StoreError::corrupt("row", detail);
        let attributes = &item.attributes;
        let place = Place::of(kind, &item.key.sort).ok_or_else(|| wrong("not a segment's key"))?;
        let id = match place {
            Place::Id(id) => id,
            Place::Number(_) => attributes
                .bytes("id")?
                .as_ref()
                .try_into()
                .map(UniqueId::from_bytes)
                .map_err(|_| wrong("its id is not 16 bytes"))?,
        };
        let count = size(attributes, "n")?;
        let (version, expiry) = (item.version, item.expiry);
        let carry = match place {
            Place::Id(_) => Carry::default(),
            Place::Number(_) => Carry::read(attributes)?,
        };
        if attributes.get("husk").is_some() {
            return Ok(Self::Husk(Husk { place, id, count, version, expiry, carry }));
        }
        let appended = attributes.number("at")?;
        let appended = u64::try_from(appended).map_err(|_| wrong("its time is negative"))?;
        let sum = attributes.number("sum")?;
        let sum = u32::try_from(sum).map_err(|_| wrong("its checksum is not one"))?;
        let index = match attributes.get("idx") {
            Some(Value::Bytes(bytes)) => IndexPlace::Row(bytes.clone()),
            _ => IndexPlace::Cargo(size(attributes, "idx_len")?),
        };
        let cargo = match attributes.get("cargo") {
            Some(Value::Bytes(bytes)) => CargoRef::Inline(bytes.clone()),
            _ => CargoRef::decode(attributes.bytes("ref")?)
                .ok_or_else(|| wrong("its cargo reference cannot be read"))?,
        };
        let state = match attributes.get("st") {
            Some(Value::Bytes(bytes)) => bytes.clone(),
            Some(_) => return Err(wrong("its state is not bytes")),
            None => Bytes::new(),
        };
        let ends = match attributes.get("end") {
            Some(_) => Some(Timestamp::from_millis(size(attributes, "end")? as u64)),
            None => None,
        };
        let appended = Timestamp::from_millis(appended);
        Ok(Self::Segment(Segment {
            place,
            id,
            count,
            appended,
            state,
            ends,
            cargo,
            version,
            expiry,
            carry,
            index,
            sum,
        }))
    }

    pub const fn place(&self) -> Place {
        match self {
            Self::Segment(segment) => segment.place,
            Self::Husk(husk) => husk.place,
        }
    }

    pub const fn id(&self) -> UniqueId {
        match self {
            Self::Segment(segment) => segment.id,
            Self::Husk(husk) => husk.id,
        }
    }

    pub const fn carry(&self) -> Carry {
        match self {
            Self::Segment(segment) => segment.carry,
            Self::Husk(husk) => husk.carry,
        }
    }

    /// The number behind the row's last message, in a sequenced lane.
    pub fn end(&self) -> Result<u64> {
        let count = match self {
            Self::Segment(segment) => segment.count,
            Self::Husk(husk) => husk.count,
        };
        match self.place() {
            Place::Number(first) => first.checked_add(count as u64),
            Place::Id(_) => None,
        }
        .ok_or_else(|| StoreError::corrupt(format!("segment {:?}", self.place()), "it has no end"))
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn size(attributes: &Attributes, name: &str) -> Result<usize> {
    usize::try_from(attributes.number(name)?)
        .map_err(|_| StoreError::corrupt("row", format!("its {name} is negative")))
}
