//! A look at fjall's files before fjall opens them, for what fjall 3.1.13 does not check itself. The errors name
//! the file.
//!
//! - The list of a table's files (`v7`) has a checksum in `current` that fjall writes and never reads. A flipped
//!   bit in the list could hide rows without a trace.
//! - A table without `current` is taken for one that was never finished, and deleted.
//! - Files end in a table of contents and a trailer. fjall believes the number of entries before it checks the
//!   checksum, and a flipped bit there makes it ask for more memory than there is, which ends the process.
//!
//! ```text
//! current: number of the list (u64) · XXH3-128 of the list · 0 (u8)                                 little-endian
//! archive: … · contents · "SFA!" · 1 (u8) · 0 (u8) · XXH3-128 of the contents · place (u64) · length (u64)   little-endian
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::EngineError;

/// fjall's own list of tables, and our three tables.
const KEYSPACES: u32 = 4;

const TRAILER_BYTES: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// Contents are a few entries; more than this is damage.
const CONTENTS_BYTES_MAX: u64 = 1024 * 1024;

/// Checks every archive below fjall's directory.
///
/// # Errors
/// [`EngineError::Damaged`], which names the file.
pub(super) fn check_all(directory: &Path) -> Result<(), EngineError> {
    if !directory.exists() {
        return Ok(());
    }
    for keyspace in 0..KEYSPACES {
        let keyspace = directory.join("keyspaces").join(keyspace.to_string());
        check_list(&keyspace)?;
        for file in entries(&keyspace)? {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match name {
                "tables" | "blobs" => entries(&file)?.iter().try_for_each(|file| check(file))?,
                _ if name.starts_with('v') => check(&file)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Checks the list of a keyspace's files.
fn check_list(keyspace: &Path) -> Result<(), EngineError> {
    let path = keyspace.join("current");
    let damaged =
        |path: &Path, why: &str| Err(EngineError::Damaged(format!("{}: {why}", path.display())));
    let Ok(current) = fs::read(&path) else { return damaged(&path, "it cannot be read") };
    let parts = current.split_first_chunk::<8>().and_then(|(number, rest)| {
        let (sum, _) = rest.split_first_chunk::<16>()?;
        Some((u64::from_le_bytes(*number), u128::from_le_bytes(*sum)))
    });
    let Some((number, sum)) = parts else { return damaged(&path, "it is too short") };
    let path = keyspace.join(format!("v{number}"));
    let Ok(list) = fs::read(&path) else { return damaged(&path, "it cannot be read") };
    if xxhash_rust::xxh3::xxh3_128(&list) != sum {
        return damaged(&path, "its checksum does not match");
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, EngineError> {
    match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()
            .map_err(EngineError::Io),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(EngineError::Io(error)),
    }
}

fn check(path: &Path) -> Result<(), EngineError> {
    match is_whole(path) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(EngineError::Damaged(format!("{}: its contents make no sense", path.display())))
        }
        Err(error) => Err(EngineError::Io(error)),
    }
}

fn is_whole(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let Some(contents_end) = length.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(false);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, contents_end)?;
    let Some((sum, place, contents_length)) = parse(&trailer) else { return Ok(false) };
    if contents_length > CONTENTS_BYTES_MAX
        || place.checked_add(contents_length) != Some(contents_end)
    {
        return Ok(false);
    }
    let mut contents = vec![0; usize::try_from(contents_length).unwrap_or_default()];
    file.read_exact_at(&mut contents, place)?;
    Ok(xxhash_rust::xxh3::xxh3_128(&contents) == sum)
}

fn parse(trailer: &[u8; TRAILER_BYTES]) -> Option<(u128, u64, u64)> {
    let (magic, rest) = trailer.split_first_chunk::<6>()?;
    let (sum, rest) = rest.split_first_chunk::<16>()?;
    let (place, rest) = rest.split_first_chunk::<8>()?;
    let (length, _) = rest.split_first_chunk::<8>()?;
    (magic == b"SFA!\x01\x00").then_some((
        u128::from_le_bytes(*sum),
        u64::from_le_bytes(*place),
        u64::from_le_bytes(*length),
    ))
}
