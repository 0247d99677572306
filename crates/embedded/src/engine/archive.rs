//! A look at fjall's files before fjall opens them, for what fjall 3.1.13 does not check itself. The errors name
//! the file.
//!
//! - The list of a table's files (`v7`) has a checksum in `current` that fjall writes and never reads. A flipped
//!   bit in the list could hide rows without a trace.
//! - A table without `current` is taken for one that was never finished, and deleted.
//! - Files end in a table of contents and a trailer. fjall believes the number of entries before it checks the
//!   checksum, and a flipped bit there makes it ask for more memory than there is, which ends the process.
//!
//! Files that the list does not name are what a killed process left; fjall deletes them.
//!
//! ```text
//! current   number of the list (u64) · XXH3-128 of the list · 0 (u8)
//! archive   sections · contents · "SFA!" 1 0 · XXH3-128 of the contents · their place (u64) · their length (u64)
//! contents  "TOC!" · count (u32) · count × ( place (u64) · length (u64) · name length (u16) · name )
//! section "tables" of a list
//!           levels (u8) · for each: runs (u8) · for each: tables (u32) · for each: number (u64) · 25 bytes
//! section "blob_files" of a list
//!           files (u32) · for each: number (u64) · 17 bytes
//! ```
//! Numbers are little-endian.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Buf;
use xxhash_rust::xxh3::xxh3_128;

use super::EngineError;

/// fjall's own list of tables, and our four tables.
const KEYSPACES: u32 = 5;

const TRAILER_BYTES: usize = 6 + 16 + 8 + 8;

/// Contents are a few entries; more than this is damage.
const CONTENTS_BYTES_MAX: u64 = 1024 * 1024;

/// Checks every list, and every file that is in one.
///
/// # Errors
/// [`EngineError::Damaged`], which names the file.
pub(super) fn check_all(directory: &Path) -> Result<(), EngineError> {
    for keyspace in 0..KEYSPACES {
        let keyspace = directory.join("keyspaces").join(keyspace.to_string());
        let listed = read_list(&keyspace)?;
        for (folder, numbers) in [("tables", listed.tables), ("blobs", listed.apart)] {
            for number in numbers {
                let path = keyspace.join(folder).join(number.to_string());
                contents_of(&path).ok_or_else(|| damaged(&path, "its contents make no sense"))?;
            }
        }
    }
    Ok(())
}

fn damaged(path: &Path, why: &str) -> EngineError {
    EngineError::Damaged(format!("{}: {why}", path.display()))
}

/// The files that a list names.
struct Listed {
    tables: Vec<u64>,
    apart: Vec<u64>,
}

fn read_list(keyspace: &Path) -> Result<Listed, EngineError> {
    let read = |path: &Path| fs::read(path).map_err(|error| damaged(path, &error.to_string()));
    let path = keyspace.join("current");
    let (number, sum) = parse_current(&read(&path)?).ok_or_else(|| damaged(&path, "too short"))?;
    let path = keyspace.join(format!("v{number}"));
    let list = read(&path)?;
    if xxh3_128(&list) != sum {
        return Err(damaged(&path, "its checksum does not match"));
    }
    let listed = contents_of(&path).and_then(|contents| {
        let tables = parse_tables(section(&list, &contents, b"tables")?)?;
        let apart = parse_apart(section(&list, &contents, b"blob_files")?)?;
        Some(Listed { tables, apart })
    });
    listed.ok_or_else(|| damaged(&path, "its contents make no sense"))
}

fn parse_current(mut current: &[u8]) -> Option<(u64, u128)> {
    Some((current.try_get_u64_le().ok()?, current.try_get_u128_le().ok()?))
}

fn parse_tables(mut section: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    for _level in 0..section.try_get_u8().ok()? {
        for _run in 0..section.try_get_u8().ok()? {
            for _table in 0..section.try_get_u32_le().ok()? {
                numbers.push(section.try_get_u64_le().ok()?);
                section.split_off(..1 + 16 + 8)?;
            }
        }
    }
    Some(numbers)
}

fn parse_apart(mut section: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    for _file in 0..section.try_get_u32_le().ok()? {
        numbers.push(section.try_get_u64_le().ok()?);
        section.split_off(..1 + 16)?;
    }
    Some(numbers)
}

/// The contents of an archive; nothing when they cannot be read or their checksum does not match.
fn contents_of(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let contents_end = file.metadata().ok()?.len().checked_sub(TRAILER_BYTES as u64)?;
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, contents_end).ok()?;
    let mut trailer = trailer.strip_prefix(b"SFA!\x01\x00")?;
    let sum = trailer.try_get_u128_le().ok()?;
    let (place, length) = (trailer.try_get_u64_le().ok()?, trailer.try_get_u64_le().ok()?);
    if length > CONTENTS_BYTES_MAX || place.checked_add(length)? != contents_end {
        return None;
    }
    let mut contents = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut contents, place).ok()?;
    (xxh3_128(&contents) == sum).then_some(contents)
}

/// The section called `wanted`.
fn section<'a>(archive: &'a [u8], contents: &[u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut contents = contents.strip_prefix(b"TOC!")?;
    for _ in 0..contents.try_get_u32_le().ok()? {
        let place = usize::try_from(contents.try_get_u64_le().ok()?).ok()?;
        let length = usize::try_from(contents.try_get_u64_le().ok()?).ok()?;
        let name_length = usize::from(contents.try_get_u16_le().ok()?);
        if contents.split_off(..name_length)? == wanted {
            return archive.get(place..place.checked_add(length)?);
        }
    }
    None
}
