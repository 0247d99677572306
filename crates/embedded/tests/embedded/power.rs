//! Loss of power: of a commit that was being written, any of its disk sectors may be there and any may not.
//!
//! Each commit is synced before it is acknowledged and before the next one is written, so only one can be torn.
//! Whatever is left of it, the store opens, with everything acknowledged and the torn commit whole or not at all.
#![allow(clippy::cast_possible_truncation, reason = "lengths of small files")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{SMALL_CARGO, manual, numbers, open, open_small_cargo, put};
use millpond_embedded::{DiskFaults, EmbeddedStore};
use millpond_store::{Change, Environment, Rng as _, SeededRng, Store as _, Write};
use tempfile::tempdir;

const SECTOR: usize = 512;
const IMAGES: usize = 150;

/// A put of 900 bytes, so that a group of them has many sectors. The bytes are what the engine's journal ends a batch
/// with, so that a torn one looks as if others came behind it.
fn large(number: u64) -> Write {
    let mut write = put("large", number);
    if let Change::Put { attributes, .. } = &mut write.change {
        attributes.set("cargo", b"FJL\x03".repeat(225));
    }
    write
}

fn journal(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory.join("engine")).unwrap();
    let journals = entries.map(|entry| entry.unwrap().path());
    let mut journals: Vec<_> =
        journals.filter(|path| path.extension().is_some_and(|end| end == "jnl")).collect();
    assert_eq!(journals.len(), 1, "a small store has one journal");
    journals.remove(0)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The number of bytes that two files have in common at their beginning.
fn common_bytes(before: &[u8], after: &[u8]) -> usize {
    before.iter().zip(after).take_while(|(before, after)| before == after).count()
}

/// What is on disk of a file when some of the sectors written since are lost, its length being anything from what it
/// was to what it has become.
fn torn(rng: &SeededRng, before: &[u8], after: &[u8], likely: f64) -> Vec<u8> {
    let same = common_bytes(before, after);
    let some = same + rng.below((after.len() - same) as u64) as usize;
    let grown = if rng.chance(0.5) { after.len() } else { some };
    let mut image = before.to_vec();
    image.resize(grown.max(before.len()), 0);
    for sector in same / SECTOR..image.len().min(after.len()).div_ceil(SECTOR) {
        let bytes = sector * SECTOR..((sector + 1) * SECTOR).min(image.len()).min(after.len());
        if rng.chance(likely) && bytes.start < bytes.end {
            image[bytes.clone()].copy_from_slice(&after[bytes]);
        }
    }
    image
}

/// The same for a commit that writes to a cargo file. That file is synced before the journal is written: as long as it
/// is not, the journal is as before, and then all of it is there.
#[tokio::test]
async fn a_commit_with_cargo_that_was_torn_is_there_whole_or_not_at_all() {
    let directory = tempdir().unwrap();
    let (live, before) = (directory.path().join("live"), directory.path().join("before"));
    acknowledged(&live).await.close().await;
    let store = open_small_cargo(&live).await.unwrap();
    store.write(large(2)).await.unwrap();
    copy(&live, &before);

    // The commit stops where it would sync the cargo file: nothing is in the journal yet.
    let stopped = directory.path().join("stopped");
    copy(&before, &stopped);
    let faults = DiskFaults::new();
    let options = manual(&stopped).cargo(SMALL_CARGO).faults(Arc::clone(&faults));
    let failing = EmbeddedStore::open(options, &Environment::system()).await.unwrap();
    let journal_before = fs::read(journal(&stopped)).unwrap();
    faults.fail_cargo(faults.cargo_calls() + 2);
    failing.write_all((3..=8).map(large).collect()).await.unwrap_err();
    failing.close().await;
    assert_eq!(fs::read(journal(&stopped)).unwrap(), journal_before, "the order is wrong");

    store.write_all((3..=8).map(large).collect()).await.unwrap();
    store.close().await;
    let written = |path: &Path| fs::read(path.join("cargo/1")).unwrap();
    let (cargo, cargo_after) = (written(&before), written(&live));
    assert!(cargo_after.len() - cargo.len() > 10 * SECTOR);
    let (synced, mut after) =
        (fs::read(journal(&before)).unwrap(), fs::read(journal(&live)).unwrap());
    after.truncate(after.iter().rposition(|byte| *byte != 0).unwrap() + 1);

    let rng = SeededRng::new(21);
    let (mut whole, mut none) = (0, 0);
    for number in 0..IMAGES {
        let likely = [0.5, 0.9, 1.0, 0.1][number / 2 % 4];
        let image = directory.path().join(format!("torn-{number}"));
        copy(&before, &image);
        if number % 2 == 0 {
            fs::write(image.join("cargo/1"), torn(&rng, &cargo, &cargo_after, likely)).unwrap();
        } else {
            fs::write(image.join("cargo/1"), &cargo_after).unwrap();
            fs::write(journal(&image), torn(&rng, &synced, &after, likely)).unwrap();
        }
        for number_of_opening in 0..2 {
            let store = open_small_cargo(&image).await;
            let store = store.unwrap_or_else(|error| panic!("image {number}: {error}"));
            assert_eq!(numbers(&store, "p").await.unwrap(), [1, 2, 3], "image {number}");
            let mut found = numbers(&store, "large").await.unwrap();
            found.retain(|n| *n < 9 || number_of_opening == 0);
            match found.as_slice() {
                [1, 2] => none += 1,
                [1, 2, 3, 4, 5, 6, 7, 8] => whole += 1,
                part => panic!("image {number}: a commit is there in part: {part:?}"),
            }
            // It goes on from there, over what was lost.
            store.write(large(9)).await.unwrap();
            store.close().await;
        }
        fs::remove_dir_all(image).unwrap();
    }
    assert!(whole >= 10 && none >= 100, "{whole} whole and {none} without, of {IMAGES}");
}

/// A store with some acknowledged commits, whose journal has no room that was never written.
async fn acknowledged(path: &Path) -> EmbeddedStore {
    let store = open(path).await.unwrap();
    store.write_all(vec![put("p", 1), put("p", 2), large(1)]).await.unwrap();
    store.close().await;
    // Opening cuts the journal to its content.
    let store = open(path).await.unwrap();
    store.write(put("p", 3)).await.unwrap();
    store
}

#[tokio::test]
async fn a_commit_that_was_torn_is_there_whole_or_not_at_all() {
    let directory = tempdir().unwrap();
    let (live, before) = (directory.path().join("live"), directory.path().join("before"));
    let store = acknowledged(&live).await;
    copy(&live, &before);
    store.write_all((2..=8).map(large).collect()).await.unwrap();
    let after = fs::read(journal(&live)).unwrap();
    store.close().await;

    let synced = fs::read(journal(&before)).unwrap();
    let same = synced.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let end = after.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(end - same > 10 * SECTOR, "the commit has {} bytes only", end - same);

    let rng = SeededRng::new(12);
    let (mut whole, mut none) = (0, 0);
    for number in 0..IMAGES {
        // What the disk held before, as long as the file was or has become.
        let grown =
            if number % 2 == 0 { end } else { same + 1 + rng.below((end - same) as u64) as usize };
        let mut image = synced.clone();
        image.resize(grown.max(synced.len()), 0);
        let likely = [0.5, 0.9, 1.0, 0.1][number % 4];
        for sector in same / SECTOR..end.div_ceil(SECTOR) {
            let bytes = sector * SECTOR..((sector + 1) * SECTOR).min(image.len()).min(end);
            if rng.chance(likely) && bytes.start < bytes.end {
                image[bytes.clone()].copy_from_slice(&after[bytes]);
            }
        }
        let torn = directory.path().join(format!("torn-{number}"));
        copy(&before, &torn);
        fs::write(journal(&torn), image).unwrap();

        let store = open(&torn).await.unwrap_or_else(|error| panic!("image {number}: {error}"));
        assert_eq!(numbers(&store, "p").await.unwrap(), [1, 2, 3], "image {number}");
        match numbers(&store, "large").await.unwrap().as_slice() {
            [1] => none += 1,
            [1, 2, 3, 4, 5, 6, 7, 8] => whole += 1,
            part => panic!("image {number}: a commit is there in part: {part:?}"),
        }
        // It goes on from there.
        store.write(put("p", 4)).await.unwrap();
        store.close().await;
        let store = open(&torn).await.unwrap();
        assert_eq!(numbers(&store, "p").await.unwrap(), [1, 2, 3, 4], "image {number}, again");
        store.close().await;
        fs::remove_dir_all(torn).unwrap();
    }
    assert!(whole >= 10 && none >= 50, "{whole} whole and {none} without, of {IMAGES}");
}
