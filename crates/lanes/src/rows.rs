//! What both kinds of lane do with their rows.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_store::limits::{GROUP_BYTES_MAX, GROUP_WRITES_MAX};
use millpond_store::{
    Backoff, Change, Conflict, Environment, Expect, Expiry, Partition, Profile, Result, Retrying,
    Store, StoreError, Write,
};

use crate::append::{Append, Slot};
use crate::cargo::{CargoRef, Hold, Placement};
use crate::config::{Ground, LaneConfig};
use crate::limits::{LANE_NAME_BYTES_MAX, STATE_BYTES_MAX};
use crate::message::Message;
use crate::scan::{Scan, SegmentPage};
use crate::segment::{Husk, IndexPlace, Kind, Place, Row, Segment};

/// A backend retries by itself what it can; this is for what comes through, so a few attempts are enough.
const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(20), longest: Duration::from_secs(1), attempts_max: 4 };

/// Cargo outlives the rows that name it, so that clocks that differ a little do no harm.
const CARGO_KEPT_LONGER: Duration = Duration::from_secs(60 * 60);

/// How a segment is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// At once.
    Delete,
    /// Leaving a husk until then, or for good.
    Husk(Option<Expiry>),
}

#[derive(Debug, Clone)]
pub struct Rows {
    pub store: Arc<dyn Store>,
    pub profile: Profile,
    pub environment: Environment,
    pub config: LaneConfig,
    pub lane: Partition,
    kind: Kind,
    hold: Hold,
}

impl Rows {
    pub fn open(ground: &Ground, name: &str, config: LaneConfig, kind: Kind) -> Result<Self> {
        Self::open_with_shelf(ground, name, config, kind, None)
    }

    /// The same, with the place of objects that several lanes share.
    pub fn open_with_shelf(
        ground: &Ground,
        name: &str,
        config: LaneConfig,
        kind: Kind,
        shelf: Option<Partition>,
    ) -> Result<Self> {
        StoreError::check_size("lane name", name.len(), LANE_NAME_BYTES_MAX)?;
        let lane = Partition::new(name)?;
        let environment = ground.environment.clone();
        let retrying = Retrying::new(Arc::clone(&ground.store), &environment, BACKOFF);
        let store: Arc<dyn Store> = Arc::new(retrying);
        let (objects, least) = (ground.objects.clone(), config.object_bytes_min);
        let hold = Hold::new(Arc::clone(&store), objects, least, lane.clone(), shelf)?;
        let profile = store.profile();
        Ok(Self { store, profile, environment, config, lane, kind, hold })
    }

    fn expiry(&self, append: &Append, kept_longer: Duration) -> Option<Expiry> {
        let retention = self.config.retention?;
        Some(Expiry::at(append.appended.plus(retention).plus(kept_longer)))
    }

    /// The row that an append makes at `place`, and its cargo when that does not travel in the row.
    fn row_of(&self, append: &Append, place: Place) -> Result<(Segment, Placement)> {
        let index = if append.index_in_row() {
            IndexPlace::Row(append.index.clone().into())
        } else {
            IndexPlace::Cargo(append.index.len())
        };
        let len = append.stored_len();
        let expiry = match self.kind {
            Kind::Unordered if self.config.rows_expire => self.expiry(append, Duration::ZERO),
            // The last row of a sequenced lane holds the tail and must never end by itself.
            Kind::Unordered | Kind::Sequenced => None,
        };
        let ends = self.config.retention.map(|retention| append.appended.plus(retention));
        let mut segment = Segment {
            place,
            id: append.id,
            count: append.count,
            appended: append.appended,
            state: Bytes::new(),
            ends,
            cargo: CargoRef::Items { len },
            version: append.version,
            expiry,
            carry: append.carry,
            index,
            sum: Segment::checksum(append.id, append.appended, &append.index, &[&append.cargo]),
        };
        let bare = self.put(&segment, Expect::Absent)?.size() + self.config.state_bytes_reserved;
        let placement = match (self.hold.place(bare, len), append.slot) {
            (Placement::Inline, _) => Placement::Inline,
            (_, Some(slot)) => Placement::Shared(slot),
            (other, None) => other,
        };
        match placement {
            Placement::Inline => segment.cargo = CargoRef::Inline(append.stored()),
            Placement::Object => segment.cargo = CargoRef::Object { len },
            Placement::Shared(Slot { object, offset }) => {
                segment.cargo = CargoRef::Shared { object, offset, len };
            }
            Placement::Items => {}
        }
        Ok((segment, placement))
    }

    fn put(&self, segment: &Segment, expect: Expect) -> Result<Write> {
        let key = Row::key(&self.lane, segment.place)?;
        let put = Write::put(key, segment.attributes(), expect, segment.version);
        Ok(match segment.expiry {
            Some(expiry) => put.expires(expiry),
            None => put,
        })
    }

    /// Writes an append's cargo and then its row, or both at once where that is cheap.
    pub async fn write_append(&self, append: &mut Append, place: Place) -> Result<()> {
        let (segment, placement) = self.row_of(append, place)?;
        let mut rows = vec![self.put(&segment, Expect::Absent)?];
        rows.extend(marks(append, place));
        rows.extend(append.beside_at(place));
        match placement {
            Placement::Inline | Placement::Shared(_) => {}
            Placement::Object => {
                if !append.stowed {
                    self.hold.stow_object(append.id, append.stored()).await?;
                }
            }
            Placement::Items => {
                let expiry = self.expiry(append, CARGO_KEPT_LONGER);
                let mut writes =
                    self.hold.item_writes(append.id, &append.stored(), append.version, expiry)?;
                if self.profile.groups_cheap && fits_group(&writes, &rows) {
                    writes.append(&mut rows);
                    return self.store.write_all(writes).await;
                }
                if !append.stowed {
                    self.hold.stow_items(writes).await?;
                }
            }
        }
        append.stowed = true;
        match rows.pop() {
            Some(row) if rows.is_empty() => self.store.write(row).await,
            last => {
                rows.extend(last);
                self.store.write_all(rows).await
            }
        }
    }

    pub async fn get(&self, place: Place) -> Result<Option<Segment>> {
        let item = self.store.get(&Row::key(&self.lane, place)?).await?;
        match item.map(|item| Row::decode(self.kind, &item)).transpose()? {
            Some(Row::Segment(segment)) => Ok(Some(segment)),
            Some(Row::Husk(_)) | None => Ok(None),
        }
    }

    /// What a refused append found at its place.
    pub(crate) fn refused_row(&self, error: &StoreError, place: Place) -> Result<Option<Row>> {
        let StoreError::Conflict(conflicts) = error else { return Ok(None) };
        let key = Row::key(&self.lane, place)?;
        let at_place = |conflict: &&Conflict| conflict.key == key;
        let current = conflicts.iter().find(at_place).and_then(|found| found.current.as_ref());
        current.map(|item| Row::decode(self.kind, item)).transpose()
    }

    pub fn scan(&self) -> Result<Scan> {
        Scan::all(&self.lane)
    }

    pub async fn page(&self, scan: Scan) -> Result<SegmentPage> {
        let page = self.store.query(scan.0).await?;
        let mut segments = Vec::with_capacity(page.items.len());
        let (mut first, mut last) = (None, None);
        for item in &page.items {
            let row = Row::decode(self.kind, item)?;
            first = first.or(Some(row.place()));
            last = Some(row.place());
            if let Row::Segment(segment) = row {
                segments.push(segment);
            }
        }
        Ok(SegmentPage { segments, first, last, next: page.next.map(Scan) })
    }

    /// Whether an append's cargo would travel outside its row.
    pub fn needs_room(&self, append: &Append) -> Result<bool> {
        let (_, placement) = self.row_of(append, Place::Number(u64::MAX))?;
        Ok(placement != Placement::Inline)
    }

    /// The last row before `end`, or of all, husks included.
    pub(crate) async fn last_row(&self, end: Option<Place>) -> Result<Option<Row>> {
        let mut scan = self.scan()?.reverse().limit(1);
        if let Some(end) = end {
            scan = scan.to(end)?;
        }
        let mut next = Some(scan.0);
        while let Some(query) = next {
            let page = self.store.query(query).await?;
            if let Some(item) = page.items.first() {
                return Row::decode(self.kind, item).map(Some);
            }
            next = page.next;
        }
        Ok(None)
    }

    /// Replaces a segment's delivery state, if nobody has changed the row since it was read.
    pub async fn update(&self, segment: &Segment, state: Bytes) -> Result<Segment> {
        StoreError::check_size("delivery state", state.len(), STATE_BYTES_MAX)?;
        let version = self.environment.version();
        let updated = Segment { state, version, ..segment.clone() };
        self.store.write(self.put(&updated, Expect::Version(segment.version))?).await?;
        Ok(updated)
    }

    /// The current row after a conflict, when it is still a segment.
    pub fn current(&self, error: &StoreError) -> Result<Option<Segment>> {
        let StoreError::Conflict(conflicts) = error else { return Ok(None) };
        // The row is the last of a group: what else was written with it is not a segment.
        let of_lane = |conflict: &&Conflict| conflict.key.partition == self.lane;
        let found = conflicts.iter().find(of_lane);
        match found.and_then(|conflict| conflict.current.as_ref()) {
            Some(item) => match Row::decode(self.kind, item)? {
                Row::Segment(segment) => Ok(Some(segment)),
                Row::Husk(_) => Ok(None),
            },
            None => Ok(None),
        }
    }

    /// A segment's messages, checked.
    pub async fn load(&self, segment: &Segment) -> Result<Vec<Message>> {
        let mut stored = self.hold.fetch(segment.id, &segment.cargo).await?;
        let index = match &segment.index {
            IndexPlace::Row(bytes) => bytes.clone(),
            IndexPlace::Cargo(len) if *len <= stored.len() => stored.split_to(*len),
            IndexPlace::Cargo(_) => {
                return Err(segment.corrupt("its cargo is shorter than its index"));
            }
        };
        if Segment::checksum(segment.id, segment.appended, &index, &[&stored]) != segment.sum {
            return Err(segment.corrupt("its checksum does not match"));
        }
        let messages = segment.decode_index(&index)?.cut(&stored);
        messages.ok_or_else(|| segment.corrupt("its cargo is not of the length its index says"))
    }

    /// Removes a segment, if nobody has changed the row since it was read.
    pub(crate) async fn remove(
        &self,
        segment: &Segment,
        removal: Removal,
        also: Vec<Write>,
    ) -> Result<Option<Husk>> {
        let expect = Expect::Version(segment.version);
        let (row, husk) = match removal {
            Removal::Delete => (Write::delete(Row::key(&self.lane, segment.place)?, expect), None),
            Removal::Husk(expiry) => {
                let (place, id, count) = (segment.place, segment.id, segment.count);
                let (version, carry) = (self.environment.version(), segment.carry);
                let husk = Husk { place, id, count, version, expiry, carry };
                (self.put_husk(&husk, expect)?, Some(husk))
            }
        };
        let expires = self.config.retention.is_some();
        let mut deletes = self.hold.item_deletes(segment.id, &segment.cargo, expires)?;
        let mut rows = also;
        rows.push(row);
        if self.profile.groups_cheap && deletes.len() + rows.len() <= GROUP_WRITES_MAX {
            rows.append(&mut deletes);
        }
        if rows.len() > 1 {
            self.store.write_all(rows).await?;
        } else if let Some(row) = rows.pop() {
            self.store.write(row).await?;
        }
        self.discard_items(deletes).await;
        self.hold.discard_object(segment.id, &segment.cargo).await;
        Ok(husk)
    }

    /// Rewrites a husk, to end at another time.
    pub(crate) fn put_husk(&self, husk: &Husk, expect: Expect) -> Result<Write> {
        let key = Row::key(&self.lane, husk.place)?;
        let put = Write::put(key, husk.attributes(), expect, husk.version);
        Ok(match husk.expiry {
            Some(expiry) => put.expires(expiry),
            None => put,
        })
    }

    /// Removes the row that an append made, if nobody has touched it. The append can then be made anew.
    pub async fn undo(&self, append: &mut Append, place: Place) -> Result<()> {
        let expect = Expect::Version(append.version);
        let row = Write::delete(Row::key(&self.lane, place)?, expect);
        let mut group: Vec<Write> =
            append.marks.iter().map(|(_, once)| Write::delete(once.key.clone(), expect)).collect();
        if let Some(Write { key, change: Change::Put { version, .. }, .. }) = &append.terms.beside {
            group.push(Write::delete(key.clone(), Expect::Version(*version)));
        }
        if group.is_empty() {
            self.store.write(row).await?;
        } else {
            // With the row go its marks, or the append made anew would find them and take itself for a repeat.
            group.push(row);
            self.store.write_all(group).await?;
        }
        append.stowed = false;
        append.version = self.environment.version();
        Ok(())
    }

    async fn discard_items(&self, deletes: Vec<Write>) {
        if deletes.is_empty() {
            return;
        }
        let outcomes = self.store.write_each(deletes).await;
        if let Err(error) = outcomes.and_then(|each| each.into_iter().collect::<Result<()>>()) {
            tracing::warn!(lane = %self.lane, %error, "cargo items are left to the sweep");
        }
    }
}

/// The marks that go with an append at `place`.
fn marks(append: &Append, place: Place) -> impl Iterator<Item = Write> {
    let first = match place {
        Place::Number(first) => first,
        Place::Id(_) => 0,
    };
    append.marks.iter().map(move |(at, once)| {
        let number = i64::try_from(first + *at as u64).unwrap_or(i64::MAX);
        let attributes = once.note.clone().with("num", number);
        let kept = Expiry::at(append.appended.plus(once.kept));
        Write::put(once.key.clone(), attributes, Expect::Absent, append.version).expires(kept)
    })
}

fn fits_group(cargo: &[Write], rows: &[Write]) -> bool {
    let bytes: usize = cargo.iter().chain(rows).map(Write::size).sum();
    cargo.len() + rows.len() <= GROUP_WRITES_MAX && bytes <= GROUP_BYTES_MAX
}
