//! A look at fjall's journals before fjall replays them.
//!
//! fjall 3.1.13 covers the rows of a batch with a checksum, but not the batch's place in the order (its sequence
//! number): a flipped bit there would bring deleted rows back. It also cuts a journal at the first place that makes
//! no sense, or gives up there, whether that is the torn end of a crash or damage to what was acknowledged. So:
//! - sequence numbers must rise, and must lie between what the commit rows of the batch and of the next one say;
//! - commit numbers must follow one another without a gap, through all journals;
//! - only the end of the last journal may be torn, which means that nothing was written behind it.
//!
//! ```text
//! batch   1 (u8) · rows (u32) · sequence number (u64) · rows · 3 (u8) · XXH3-64 of the rows · "FJL" 3
//! row     2 (u8) · type (u8) · 0 (u8) · table (u64) · key length (u16) · value length (u32, twice) · key · value
//! ```
//! Numbers are little-endian. What was never written is zero.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use bytes::Buf;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::EngineError;
use crate::commits::{self, CommitRow};

const END_MAGIC: &[u8] = b"FJL\x03";
/// Tables are numbered in the order of their creation; 0 is fjall's own.
const COMMITS_TABLE: u64 = 3;

/// Between a view and the next batch only flushes and compactions take sequence numbers: a handful.
const SEQUENCE_STEP_MAX: u64 = 1_000_000;

/// What the journals hold.
#[derive(Debug, Default)]
pub(crate) struct JournalEnd {
    /// The last commit; nothing when no commit is in a journal.
    pub commit: Option<u64>,
    /// The journal with a torn end, and where its whole batches end.
    torn: Option<(PathBuf, u64)>,
}

impl JournalEnd {
    /// Cuts off a torn end.
    pub(crate) fn cut(&self) -> io::Result<()> {
        let Some((path, length)) = &self.torn else { return Ok(()) };
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(*length)?;
        file.sync_all()
    }
}

struct Batch {
    sequence: u64,
    commit: CommitRow,
}

/// Checks all journals.
///
/// # Errors
/// [`EngineError::Damaged`], which names the file and the place.
pub(super) fn check_all(directory: &Path) -> Result<JournalEnd, EngineError> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(directory).map_err(EngineError::Io)? {
        let path = entry.map_err(EngineError::Io)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(number) = name.strip_suffix(".jnl") {
            journals.push((number.parse::<u64>().unwrap_or(u64::MAX), path));
        }
    }
    journals.sort();
    let mut end = JournalEnd::default();
    let mut before = None;
    let last = journals.last().map(|(number, _)| *number);
    for (number, path) in journals {
        let bytes = read_written(&path).map_err(EngineError::Io)?;
        let whole = check(&path, &bytes, &mut before)?;
        let rest = written(bytes.get(whole..).unwrap_or_default());
        if !rest.is_empty() {
            let commit = before.as_ref().map_or(0, |batch: &Batch| batch.commit.number);
            if Some(number) != last || is_written_behind(rest, commit) {
                return Err(damaged(&path, whole, "a batch is broken"));
            }
            end.torn = Some((path, whole as u64));
        }
    }
    end.commit = before.map(|batch: Batch| batch.commit.number);
    Ok(end)
}

/// The file up to the hole at its end, if the file system tells of one: a journal is made with room for 64 MB, and to read
/// these as zeros would take longer than everything else that opening does.
fn read_written(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let hole = rustix::fs::seek(&file, SeekFrom::Hole(0));
    let behind = hole.and_then(|hole| rustix::fs::seek(&file, SeekFrom::Data(hole)));
    let end = match (hole, behind) {
        // No bytes are behind the hole.
        (Ok(hole), Err(Errno::NXIO)) => hole,
        _ => u64::MAX,
    };
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(end).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks one journal, and returns where its whole batches end.
fn check(path: &Path, bytes: &[u8], before: &mut Option<Batch>) -> Result<usize, EngineError> {
    let mut rest = bytes;
    loop {
        let at = bytes.len() - rest.len();
        let Some(batch) = parse(&mut rest) else { return Ok(at) };
        if let Some(before) = before {
            if batch.commit.number != before.commit.number + 1 {
                let (was, is) = (before.commit.number, batch.commit.number);
                return Err(damaged(path, at, &format!("commit {is} follows on commit {was}")));
            }
            if before.sequence >= batch.commit.floor {
                return Err(damaged(path, at, "the batch before has a wrong sequence number"));
            }
        }
        if !(0..SEQUENCE_STEP_MAX).contains(&batch.sequence.wrapping_sub(batch.commit.floor)) {
            return Err(damaged(path, at, "the batch has a wrong sequence number"));
        }
        *before = Some(batch);
    }
}

fn damaged(path: &Path, at: usize, what: &str) -> EngineError {
    EngineError::Damaged(format!("{} at byte {at}: {what}", path.display()))
}

/// What was written, without the zeros behind it. Most of a journal was never written: it is made with room for
/// 64 MB.
fn written(mut bytes: &[u8]) -> &[u8] {
    const ZEROS: [u8; 4_096] = [0; 4_096];
    while let Some((front, back)) = bytes.split_last_chunk::<4_096>() {
        if *back != ZEROS {
            break;
        }
        bytes = front;
    }
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

/// Whether a commit was written behind the broken batch with which `rest` begins, `last` being the one before that.
/// Each batch is synced before the next is written, so a batch that was torn by a crash has none behind it. Only a
/// whole batch of a later commit counts: the bytes that end a batch may also stand in a row.
fn is_written_behind(rest: &[u8], last: u64) -> bool {
    let ends = rest.windows(END_MAGIC.len()).enumerate().filter(|(_, bytes)| *bytes == END_MAGIC);
    ends.filter_map(|(at, _)| rest.get(at + END_MAGIC.len()..))
        .filter_map(|mut behind| parse(&mut behind))
        .any(|batch| batch.commit.number > last + 1)
}

/// Takes a whole batch from the front; nothing, and nothing taken, when there is none.
fn parse(rest: &mut &[u8]) -> Option<Batch> {
    let mut at = *rest;
    expect(&mut at, &[1])?;
    let rows = at.try_get_u32_le().ok()?;
    let sequence = at.try_get_u64_le().ok()?;
    let rows_start = at;
    let mut commit = None;
    for _ in 0..rows {
        let (table, key, value) = parse_row(&mut at)?;
        if table == COMMITS_TABLE {
            commit = commits::decode(key, value);
        }
    }
    let rows_bytes = rows_start.get(..rows_start.len() - at.len())?;
    expect(&mut at, &[3])?;
    let sum = at.try_get_u64_le().ok()?;
    expect(&mut at, END_MAGIC)?;
    if xxhash_rust::xxh3::xxh3_64(rows_bytes) != sum {
        return None;
    }
    *rest = at;
    Some(Batch { sequence, commit: commit? })
}

/// Takes a row: its table, key and value.
fn parse_row<'a>(at: &mut &'a [u8]) -> Option<(u64, &'a [u8], &'a [u8])> {
    expect(at, &[2])?;
    at.try_get_u8().ok()?;
    expect(at, &[0])?;
    let table = at.try_get_u64_le().ok()?;
    let key_length = usize::from(at.try_get_u16_le().ok()?);
    let value_length = at.try_get_u32_le().ok()?;
    if at.try_get_u32_le().ok()? != value_length {
        return None;
    }
    let key = at.split_off(..key_length)?;
    let value = at.split_off(..usize::try_from(value_length).ok()?)?;
    Some((table, key, value))
}

fn expect(at: &mut &[u8], bytes: &[u8]) -> Option<()> {
    *at = at.strip_prefix(bytes)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write as _};

    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_hole_at_its_end_and_not_to_one_in_its_middle() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        file.set_len(64 << 20).unwrap();
        file.sync_all().unwrap();
        let bytes = read_written(&path).unwrap();
        // A file system without holes gives zeros.
        assert!(bytes.starts_with(&[7; 10_000]) && bytes.iter().skip(10_000).all(|b| *b == 0));
        file.seek(io::SeekFrom::Start(32 << 20)).unwrap();
        file.write_all(b"behind").unwrap();
        file.sync_all().unwrap();
        let bytes = read_written(&path).unwrap();
        assert_eq!(bytes.get(32 << 20..(32 << 20) + 6), Some(b"behind".as_slice()));
    }
}
