//! All cargo files: what readers see of them, and what the writer keeps of them.
//!
//! ```text
//! cargo   key: file (u64) · value: checksum (u32) · end (u64) · bytes in use (u64)
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use millpond_store::StoreError;

use super::file::{Appender, CargoFile, OpenFiles};
use super::place::{Place, encode_head};
use crate::engine::{EngineError, RowChange, Table};
use crate::faults::DiskFaults;
use crate::options::CargoOptions;
use crate::record::{self, Row, STUB_BYTES_MAX};

/// The files that the rows of one view may point at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Arc<BTreeMap<u64, Arc<CargoFile>>>);

impl Files {
    /// The row that `place` names, checked.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], which names the file, when the row is not there or damaged.
    pub(crate) fn read(&self, key: &[u8], place: Place) -> Result<Bytes, StoreError> {
        let Some(file) = self.0.get(&place.file) else {
            let detail = format!("it is in cargo file {}, which is not known", place.file);
            return Err(record::damaged(Table::Items, key, &detail));
        };
        let shown = file.path.display();
        let row =
            file.read(place.at, place.length as usize).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound => {
                    StoreError::corrupt(shown.to_string(), format!("at byte {}: {error}", place.at))
                }
                _ => StoreError::Unavailable {
                    operation: "read",
                    detail: format!("{shown}: {error}"),
                    cause: Some(Arc::new(error)),
                },
            })?;
        match record::unseal(Table::Items, key, row.clone()) {
            Ok(_) if row.clone().try_get_u32() == Ok(place.sum) => Ok(row),
            Ok(_) => Err(StoreError::corrupt(
                shown.to_string(),
                format!("at byte {}: another row than the one that was written there", place.at),
            )),
            Err(error) => Err(StoreError::corrupt(
                shown.to_string(),
                format!("at byte {}: {error}", place.at),
            )),
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<CargoFile>> {
        self.0.get(&number)
    }
}

/// How much of a file is there and in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fill {
    pub end: u64,
    pub used: u64,
}

fn encode(number: u64, fill: Option<Fill>) -> RowChange {
    let key = Bytes::copy_from_slice(&number.to_be_bytes());
    let value = fill.map(|fill| {
        let content = (u128::from(fill.end) << 64) | u128::from(fill.used);
        record::seal(&key, &content.to_be_bytes())
    });
    RowChange { table: Table::Cargo, key, value }
}

fn decode(key: &Bytes, value: Bytes) -> Result<(u64, Fill), StoreError> {
    let malformed = || record::damaged(Table::Cargo, key, "it is no row of a cargo file");
    let number = key.clone().try_get_u64().map_err(|_| malformed())?;
    let mut content = record::unseal(Table::Cargo, key, value)?;
    let end = content.try_get_u64().map_err(|_| malformed())?;
    let used = content.try_get_u64().map_err(|_| malformed())?;
    Ok((number, Fill { end, used }))
}

#[derive(Debug)]
struct Held {
    file: Arc<CargoFile>,
    fill: Fill,
    /// Whether its row in the table is behind.
    changed: bool,
}

/// What the writer keeps of all files.
#[derive(Debug)]
pub(crate) struct Hold {
    directory: PathBuf,
    held: BTreeMap<u64, Held>,
    /// The number of the file that is appended to, or that comes next.
    current: u64,
    appender: Option<Appender>,
    synced: bool,
    open: Arc<OpenFiles>,
    faults: Option<Arc<DiskFaults>>,
    files: Files,
    options: CargoOptions,
}

/// How a hold is opened.
#[derive(Debug)]
pub(crate) struct Load {
    /// Whether commits will be synced.
    pub synced: bool,
    /// Whether the last acknowledged commit was.
    pub was_synced: bool,
    pub faults: Option<Arc<DiskFaults>>,
    pub options: CargoOptions,
}

impl Hold {
    /// Opens all files that the table names, and removes the others.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], which names the file, when one is missing or too short.
    pub(crate) fn load(
        directory: &Path,
        load: Load,
        rows: Vec<(Bytes, Bytes)>,
    ) -> Result<Self, StoreError> {
        let Load { synced, was_synced, faults, options } = load;
        let open = Arc::new(OpenFiles::default());
        let mut held = BTreeMap::new();
        for (key, value) in rows {
            let (number, fill) = decode(&key, value)?;
            let file = CargoFile::new(directory, number, fill.end, &open);
            check_length(&file, fill, was_synced)?;
            held.insert(number, Held { file, fill, changed: false });
        }
        let current = held.last_key_value().map_or(1, |(number, _)| *number);
        let (directory, files) = (directory.to_path_buf(), Files::default());
        let mut hold =
            Self { directory, held, current, appender: None, synced, open, faults, files, options };
        hold.renew_files();
        hold.tidy_up().map_err(|error| StoreError::Unavailable {
            operation: "open",
            detail: format!("{}: {error}", hold.directory.display()),
            cause: Some(Arc::new(error)),
        })?;
        Ok(hold)
    }

    /// Removes what no commit names: whole files, and what is behind the end of the current one.
    fn tidy_up(&mut self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            if number.is_some_and(|number| !self.held.contains_key(&number)) {
                fs::remove_file(entry.path())?;
            }
        }
        if let Some(held) = self.held.get(&self.current) {
            let faults = self.faults.clone();
            let appender = Appender::resume(&held.file.path, held.fill.end, faults)?;
            // What a killed process wrote and did not sync can be read now, so it has to be on disk too.
            appender.sync()?;
            self.appender = Some(appender);
        }
        Ok(())
    }

    /// The files as of the last commit.
    pub(crate) fn files(&self) -> Files {
        self.files.clone()
    }

    /// Which rows are large.
    pub(crate) const fn is_large(&self, row: &Row) -> bool {
        row.len() >= self.options.item_bytes_min && row.len() >= STUB_BYTES_MAX
    }

    /// Whether large rows with so many bytes are worth a sync of their own.
    pub(crate) const fn is_worth(&self, bytes: usize) -> bool {
        bytes >= self.options.commit_bytes_min
    }

    /// Appends rows and syncs them; returns where each is.
    pub(crate) fn stow(&mut self, rows: &[(&Bytes, &Row)]) -> Result<Vec<Place>, EngineError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let (number, mut end) = self.make_ready().map_err(EngineError::Io)?;
        let mut parts = Vec::with_capacity(rows.len() * 6);
        let mut places = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            let length = u32::try_from(row.len()).expect("a checked item is below 400 KiB");
            let head = encode_head(key, length);
            let at = end + head.len() as u64;
            end = at + u64::from(length);
            places.push(Place { file: number, at, length, sum: row.sum() });
            parts.push(head);
            parts.extend(row.parts().iter().cloned());
        }
        let appender = self.appender.as_mut().ok_or(EngineError::Stopped)?;
        appender.append(&parts).map_err(EngineError::Io)?;
        if self.synced {
            appender.sync().map_err(EngineError::Io)?;
        }
        if let Some(held) = self.held.get_mut(&number) {
            held.fill.end = end;
            held.file.set_end(end);
            held.changed = true;
            for ((key, _), place) in rows.iter().zip(&places) {
                held.fill.used += place.record_bytes(key);
            }
        }
        Ok(places)
    }

    /// A row that was committed earlier is replaced or deleted.
    pub(crate) fn release(&mut self, key: &[u8], place: Place) {
        if let Some(held) = self.held.get_mut(&place.file) {
            held.fill.used = held.fill.used.saturating_sub(place.record_bytes(key));
            held.changed = true;
        }
    }

    /// The current file with room in it, and its end.
    fn make_ready(&mut self) -> io::Result<(u64, u64)> {
        if let Some(held) = self.held.get(&self.current) {
            if held.fill.end < self.options.file_bytes && self.appender.is_some() {
                return Ok((self.current, held.fill.end));
            }
            self.close_current()?;
        }
        let number = self.current;
        let file = CargoFile::new(&self.directory, number, 0, &self.open);
        self.appender = Some(Appender::create(&file.path, self.faults.clone())?);
        let fill = Fill { end: 0, used: 0 };
        self.held.insert(number, Held { file, fill, changed: true });
        self.renew_files();
        Ok((number, 0))
    }

    /// Nothing is appended to the current file any more.
    pub(crate) fn close_current(&mut self) -> io::Result<()> {
        if let Some(held) = self.held.get_mut(&self.current) {
            held.changed = true;
            if let Some(appender) = self.appender.take() {
                // Also where commits are not synced: what is older than the current file is on disk.
                appender.sync()?;
            }
            self.current += 1;
        }
        Ok(())
    }

    fn renew_files(&mut self) {
        let files = self.held.iter().map(|(number, held)| (*number, Arc::clone(&held.file)));
        self.files = Files(Arc::new(files.collect()));
    }

    /// The changes of the table that belong into the same commit as what was stowed and released, and the files that
    /// are waste once it is done.
    pub(crate) fn table_changes(&mut self) -> (Vec<RowChange>, Vec<u64>) {
        let (mut changes, mut waste) = (Vec::new(), Vec::new());
        for (number, held) in self.held.iter_mut().filter(|(_, held)| held.changed) {
            held.changed = false;
            let is_waste = held.fill.used == 0 && *number != self.current;
            changes.push(encode(*number, (!is_waste).then_some(held.fill)));
            if is_waste {
                waste.push(*number);
            }
        }
        (changes, waste)
    }

    /// Forgets files that no committed row names any more. Readers of older views keep them.
    pub(crate) fn discard(&mut self, waste: &[u64]) {
        for number in waste {
            if let Some(held) = self.held.remove(number) {
                held.file.discard();
            }
        }
        if !waste.is_empty() {
            self.renew_files();
        }
    }

    /// Whether the table is behind.
    pub(crate) fn is_changed(&self) -> bool {
        self.held.values().any(|held| held.changed)
    }

    /// The closed file with the least in use, given that this is at most half of it. The current file is closed when
    /// it is wasteful itself, and large enough for that to matter.
    pub(crate) fn find_wasteful(&mut self) -> io::Result<Option<u64>> {
        let wasteful = |held: &Held| held.fill.used <= held.fill.end / 2;
        if let Some(held) = self.held.get(&self.current)
            && wasteful(held)
            && held.fill.end >= self.options.step_bytes
        {
            self.close_current()?;
        }
        let closed = self.held.iter().filter(|(number, _)| **number != self.current);
        let worst = closed.filter(|(_, held)| held.fill.used > 0 && wasteful(held));
        Ok(worst.min_by_key(|(_, held)| held.fill.used).map(|(number, _)| *number))
    }
}

fn check_length(file: &CargoFile, fill: Fill, was_synced: bool) -> Result<(), StoreError> {
    let place = file.path.display().to_string();
    let remedy = "restore the directory from a backup";
    let length = fs::metadata(&file.path)
        .map_err(|error| StoreError::corrupt(place.clone(), format!("{error}; {remedy}")))?
        .len();
    // Without syncs a loss of power may have cost the end; who reads it is told.
    if length < fill.end && was_synced {
        let detail = format!("it has {length} bytes, and had {}; {remedy}", fill.end);
        return Err(StoreError::corrupt(place, detail));
    }
    Ok(())
}
