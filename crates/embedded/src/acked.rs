//! The file `acked`: the number of the last acknowledged commit.
//!
//! It is written after each commit and never synced, so after a power failure it may be older than the journal,
//! but never newer: what it names is on disk. Two slots are written in turn, each in a disk sector of its own, so
//! that a torn write leaves the one before.
//!
//! ```text
//! slot at 0 (even numbers) and at 512 (odd numbers):
//! commit number (u64) · synced (u8: 0 or 1) · checksum (u32, CRC-32 of what is before)
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SLOT_BYTES: usize = 13;
const SLOT_DISTANCE: u64 = 512;
/// Both slots are there from the beginning, so that writing one never needs space.
const FILE_BYTES: u64 = 2 * SLOT_DISTANCE;

/// What the file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Acked {
    /// The last acknowledged commit.
    pub commit: u64,
    /// Whether it was synced before it was acknowledged.
    pub synced: bool,
}

/// The open file.
#[derive(Debug)]
pub(crate) struct AckedFile {
    file: File,
}

impl AckedFile {
    /// Makes the file, with no commit acknowledged.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        file.set_len(FILE_BYTES)?;
        let this = Self { file };
        this.write(Acked { commit: 0, synced: true })?;
        this.file.sync_all()?;
        Ok(this)
    }

    /// Opens the file and reads it; nothing when it holds no valid slot.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Option<Acked>)> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let slots = [0, SLOT_DISTANCE].map(|at| {
            let mut slot = [0; SLOT_BYTES];
            file.read_exact_at(&mut slot, at).ok().and_then(|()| decode(&slot))
        });
        let newest = slots.into_iter().flatten().max_by_key(|acked| acked.commit);
        Ok((Self { file }, newest))
    }

    /// Notes an acknowledged commit.
    pub(crate) fn write(&self, acked: Acked) -> io::Result<()> {
        let at = (acked.commit % 2) * SLOT_DISTANCE;
        self.file.write_all_at(&encode(acked), at)
    }
}

fn encode(acked: Acked) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    let [c0, c1, c2, c3, c4, c5, c6, c7] = acked.commit.to_be_bytes();
    let content = [c0, c1, c2, c3, c4, c5, c6, c7, u8::from(acked.synced)];
    let (head, sum) = slot.split_at_mut(content.len());
    head.copy_from_slice(&content);
    sum.copy_from_slice(&crc32fast::hash(&content).to_be_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_BYTES]) -> Option<Acked> {
    let (content, sum) = slot.split_last_chunk::<4>()?;
    if crc32fast::hash(content) != u32::from_be_bytes(*sum) {
        return None;
    }
    let (commit, synced) = content.split_first_chunk::<8>()?;
    Some(Acked { commit: u64::from_be_bytes(*commit), synced: synced == [1] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_valid_slot_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("acked");
        let file = AckedFile::create(&path).unwrap();
        assert_eq!(AckedFile::open(&path).unwrap().1, Some(Acked { commit: 0, synced: true }));
        for commit in 1..=7 {
            file.write(Acked { commit, synced: commit != 7 }).unwrap();
        }
        assert_eq!(AckedFile::open(&path).unwrap().1, Some(Acked { commit: 7, synced: false }));

        file.file.write_all_at(b"torn", SLOT_DISTANCE).unwrap();
        assert_eq!(AckedFile::open(&path).unwrap().1, Some(Acked { commit: 6, synced: true }));
        file.file.write_all_at(b"torn", 0).unwrap();
        assert_eq!(AckedFile::open(&path).unwrap().1, None);
    }
}
