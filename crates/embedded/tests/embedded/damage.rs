//! Damaged files: whatever is cut off or flipped, the store says so or holds exactly what was committed.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

use crate::common::{delete, key, numbers, open, open_small_cargo, put, put_bytes};
use millpond_store::{Change, Expiry, Result, Store, StoreError};
use tempfile::{tempdir, tempdir_in};

/// How many places are damaged at a time.
const WORKERS: usize = 4;

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn read_files(root: &Path, below: &Path, files: &mut Files) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            read_files(root, &path, files);
        } else {
            files.insert(path.clone(), fs::read(root.join(&path)).unwrap());
        }
    }
}

fn write_files(root: &Path, files: &Files) {
    for (path, content) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A small store with rows of every kind in tables, files of large rows, cargo files and the journal.
async fn fixture(path: &Path) -> Files {
    let store = open(path).await.unwrap();
    let large = |n| put_bytes("large", n, 600);
    store.write_all(vec![put("p", 1), put("p", 2), large(1)]).await.unwrap();
    store.write(put("p", 3).expires(Expiry::from_secs(u64::MAX))).await.unwrap();
    store.write(delete("p", 2)).await.unwrap();
    store.reclaim().await.unwrap();
    store.close().await;
    // Opening cuts the journal, which was made with room for 64 MB, to its content.
    let store = open_small_cargo(path).await.unwrap();
    store.write(large(3)).await.unwrap();
    store.write_all(vec![large(3), large(4)]).await.unwrap();
    store.close().await;
    let store = open(path).await.unwrap();
    store.write_all(vec![put("p", 4), put("p", 5)]).await.unwrap();
    store.write(delete("p", 1)).await.unwrap();
    store.write(large(2)).await.unwrap();
    store.close().await;
    let mut files = Files::new();
    read_files(path, Path::new(""), &mut files);
    assert!(files.contains_key(Path::new("cargo/1")), "large rows are not in a cargo file");
    files
}

/// Everything that the store holds.
async fn contents(path: &Path) -> Result<(Vec<i64>, Vec<i64>, usize)> {
    let store = open(path).await?;
    let found = (numbers(&store, "p").await?, numbers(&store, "large").await?);
    let mut single = 0;
    for n in 1..=5 {
        single += usize::from(store.get(&key("p", n)).await?.is_some());
    }
    for n in 1..=4 {
        let item = store.get(&key("large", n)).await?.unwrap();
        let Change::Put { attributes, .. } = put_bytes("large", n, 600).change else { panic!() };
        assert_eq!(item.attributes, attributes);
    }
    store.sweep_step().await?;
    store.close().await;
    Ok((found.0, found.1, single))
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(u8),
    CutOff,
}

/// What is wrong with the answer to one damage, if anything.
async fn judge(path: &Path, what: &str) -> Option<String> {
    match contents(path).await {
        Ok(found) if found == (vec![3, 4, 5], vec![1, 2, 3, 4], 3) => None,
        Ok(found) => Some(format!("{what}: silently changed to {found:?}")),
        Err(damage @ StoreError::Corrupt { .. })
            if damage.to_string().contains(path.to_str().unwrap()) =>
        {
            None
        }
        Err(StoreError::Misconfigured { problem, .. })
            if problem.contains(path.to_str().unwrap()) =>
        {
            None
        }
        Err(other) => Some(format!("{what}: unclear: {other:?}")),
    }
}

/// Damages one place after another in a directory of its own; returns what was answered wrongly.
fn damage_all(directory: &Path, files: &Files, places: &[(&PathBuf, usize)]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = directory.join("store");
    let mut wrong = Vec::new();
    for (number, (file, at)) in places.iter().enumerate() {
        // A different bit from place to place, and every eighth place is also cut off.
        let bit = u8::try_from(number % 8).unwrap();
        let damages = [Some(Damage::Flip(bit)), (bit == 0).then_some(Damage::CutOff)];
        for damage in damages.into_iter().flatten() {
            let mut damaged = files.clone();
            let content = damaged.get_mut(*file).unwrap();
            match damage {
                Damage::Flip(bit) => content[*at] ^= 1 << bit,
                Damage::CutOff => content.truncate(*at),
            }
            write_files(&path, &damaged);
            let what = format!("{damage:?} at {at} of {}", file.display());
            let judged = catch_unwind(AssertUnwindSafe(|| runtime.block_on(judge(&path, &what))));
            wrong.extend(judged.unwrap_or_else(|_| Some(format!("{what}: panicked"))));
            fs::remove_dir_all(&path).unwrap();
        }
    }
    wrong
}

#[test]
fn every_damage_is_noticed_or_harmless() {
    // In memory where that is possible: thousands of stores are made and synced.
    let directory = tempdir_in("/dev/shm").or_else(|_| tempdir()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let files = runtime.block_on(fixture(&directory.path().join("fixture")));
    let places: Vec<_> = files
        .iter()
        .flat_map(|(path, content)| (0..content.len()).map(move |at| (path, at)))
        .collect();
    println!("{} bytes in {} files are damaged one by one", places.len(), files.len());
    // Damaged files make the engine panic now and then; the store turns that into errors, without the noise.
    std::panic::set_hook(Box::new(|_| ()));
    let wrong: Vec<String> = thread::scope(|scope| {
        let parts = places.chunks(places.len().div_ceil(WORKERS)).enumerate();
        let workers: Vec<_> = parts
            .map(|(worker, part)| {
                let own = directory.path().join(worker.to_string());
                let files = &files;
                scope.spawn(move || damage_all(&own, files, part))
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let _ = std::panic::take_hook();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
