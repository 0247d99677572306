//! Cargo files: large items are written once, are there after reopening, and leave no waste behind.

use std::fs;
use std::sync::Arc;

use crate::common::{
    Kept, SMALL_CARGO, cargo_files, delete, key, numbers, open, open_small_cargo, put_bytes,
};
use millpond_embedded::Durability;
use millpond_store::{Change, Environment, Expect, Expiry, Store, StoreError, Timestamp};
use millpond_store::{VirtualClock, Write};
use millpond_testing::{Subject, lane_model, store_model};
use proptest::prelude::{ProptestConfig, proptest};
use tempfile::tempdir;

const LARGE: usize = 1_000;

async fn assert_there(store: &dyn Store, numbers: impl IntoIterator<Item = u64>) {
    for n in numbers {
        let item = store.get(&key("p", n)).await.unwrap().unwrap();
        let Change::Put { attributes, .. } = put_bytes("p", n, LARGE).change else { panic!() };
        assert_eq!(item.attributes, attributes, "{n} was changed");
    }
}

#[tokio::test]
async fn large_items_are_in_files_and_there_after_reopening() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open_small_cargo(&path).await.unwrap();
    for n in 0..20 {
        store.write(put_bytes("p", n, LARGE)).await.unwrap();
    }
    let files = cargo_files(&path);
    assert!(files.len() >= 2, "20 KB are in {files:?}");
    assert!(files.values().sum::<u64>() >= 20 * LARGE as u64, "{files:?}");
    assert_there(&store, 0..20).await;
    store.close().await;
    // Whatever the options are, what is there can be read.
    let store = open(&path).await.unwrap();
    assert_there(&store, 0..20).await;
    assert_eq!(numbers(&store, "p").await.unwrap(), (0..20).collect::<Vec<_>>());
    store.close().await;
    let store = open_small_cargo(&path).await.unwrap();
    store.write(put_bytes("p", 20, LARGE)).await.unwrap();
    assert_there(&store, 0..21).await;
}

#[tokio::test]
async fn a_conflict_shows_the_large_item_that_is_there() {
    let store = Kept::open(&Environment::system(), |options| options.cargo(SMALL_CARGO)).await;
    store.write(put_bytes("p", 1, LARGE)).await.unwrap();
    let again = Write { expect: Expect::Absent, ..put_bytes("p", 1, LARGE) };
    let outcome = store.write(again).await;
    let Err(StoreError::Conflict(conflicts)) = outcome else { panic!("{outcome:?}") };
    let current = conflicts.first().current.as_ref().unwrap();
    assert_eq!(current.attributes.bytes("cargo").unwrap().len(), LARGE);
}

/// Deleted, replaced and expired: each way to become waste removes the file in the end.
#[tokio::test]
async fn a_file_of_waste_is_removed() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let clock = VirtualClock::new(Timestamp::from_millis(1_000_000));
    let environment = Environment::simulated(clock.clone(), 3);
    let options = crate::common::manual(&path).cargo(SMALL_CARGO);
    let store = millpond_embedded::EmbeddedStore::open(options, &environment).await.unwrap();
    for n in 0..30 {
        let expires = put_bytes("p", n, LARGE).expires(Expiry::from_secs(1_010));
        let write = if n % 3 == 0 { expires } else { put_bytes("p", n, LARGE) };
        store.write(write).await.unwrap();
    }
    let before = cargo_files(&path);
    for n in 0..30 {
        match n % 3 {
            1 => store.write(delete("p", n)).await.unwrap(),
            2 => store.write(put_bytes("p", n, 10)).await.unwrap(),
            _ => {}
        }
    }
    clock.advance(std::time::Duration::from_secs(11));
    assert_eq!(store.sweep_step().await.unwrap(), 10);
    let after = cargo_files(&path);
    assert_eq!(after.len(), 1, "only the current file stays: {after:?} of {before:?}");
    store.reclaim().await.unwrap();
    assert!(cargo_files(&path).is_empty(), "the current file was waste too");
    assert_eq!(numbers(&store, "p").await.unwrap().len(), 10);
}

#[tokio::test]
async fn items_are_moved_out_of_files_that_are_mostly_waste() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open_small_cargo(&path).await.unwrap();
    for n in 0..100 {
        store.write(put_bytes("p", n, LARGE)).await.unwrap();
    }
    let versions = versions(&store, (0..100).step_by(5)).await;
    for n in (0..100).filter(|n| n % 5 != 0) {
        store.write(delete("p", n)).await.unwrap();
    }
    let before: u64 = cargo_files(&path).values().sum();
    store.reclaim().await.unwrap();
    let after: u64 = cargo_files(&path).values().sum();
    assert!(before > 100_000 && after < 40_000, "{before} bytes became {after}");
    assert_there(&store, (0..100).step_by(5)).await;
    assert_eq!(self::versions(&store, (0..100).step_by(5)).await, versions);
    store.close().await;
    let store = open_small_cargo(&path).await.unwrap();
    assert_there(&store, (0..100).step_by(5)).await;
    assert_eq!(numbers(&store, "p").await.unwrap().len(), 20);
}

async fn versions(store: &dyn Store, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut versions = Vec::new();
    for n in numbers {
        versions.push(store.get(&key("p", n)).await.unwrap().unwrap().version.to_u64());
    }
    versions
}

/// Readers go on while items are replaced, files removed and items moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_find_items_while_files_come_and_go() {
    let environment = Environment::system();
    let fast = |options: millpond_embedded::Options| {
        options.durability(Durability::UnsafeNoSync).cargo(SMALL_CARGO)
    };
    let store = Arc::new(Kept::open(&environment, fast).await);
    for n in 0..40 {
        store.write(put_bytes("p", n, LARGE)).await.unwrap();
    }
    let mut readers = Vec::new();
    for reader in 0..2 {
        let store = Arc::clone(&store);
        readers.push(tokio::spawn(async move {
            for _ in 0..300 {
                if reader == 0 {
                    assert_eq!(numbers(&*store, "p").await.unwrap().len(), 40);
                } else {
                    assert_there(&*store, 0..40).await;
                }
            }
        }));
    }
    while readers.iter().any(|reader| !reader.is_finished()) {
        for n in (0..40).filter(|n| n % 4 != 0) {
            store.write(put_bytes("p", n, LARGE)).await.unwrap();
        }
        store.store.reclaim().await.unwrap();
    }
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test]
async fn files_that_no_commit_names_are_removed_and_missing_ones_noticed() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open_small_cargo(&path).await.unwrap();
    for n in 0..20 {
        store.write(put_bytes("p", n, LARGE)).await.unwrap();
    }
    store.close().await;
    let (first, length) = cargo_files(&path).into_iter().next().unwrap();
    let (last, end) = cargo_files(&path).into_iter().next_back().unwrap();
    // What a commit that never came left: a new file, and bytes behind the end of the last.
    fs::write(path.join("cargo").join((last + 1).to_string()), "never committed").unwrap();
    let last_path = path.join("cargo").join(last.to_string());
    let longer = [fs::read(&last_path).unwrap(), b"never committed".to_vec()].concat();
    fs::write(&last_path, longer).unwrap();
    let store = open_small_cargo(&path).await.unwrap();
    assert_eq!(cargo_files(&path).into_iter().next_back(), Some((last, end)));
    assert_there(&store, 0..20).await;
    store.close().await;

    let first = path.join("cargo").join(first.to_string());
    let content = fs::read(&first).unwrap();
    fs::write(&first, &content[..content.len() - 1]).unwrap();
    let error = crate::common::refusal(open(&path).await).to_string();
    assert!(error.contains(first.to_str().unwrap()) && error.contains(&length.to_string()));
    fs::remove_file(&first).unwrap();
    let error = crate::common::refusal(open(&path).await).to_string();
    assert!(error.contains(first.to_str().unwrap()) && error.contains("restore"), "{error}");
    fs::write(&first, &content).unwrap();
    assert_there(&open(&path).await.unwrap(), 0..20).await;
}

/// A damaged record is not dropped when the others are moved: the file stays, and reading says why.
#[tokio::test]
async fn moving_stops_at_damage() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open_small_cargo(&path).await.unwrap();
    for n in 0..8 {
        store.write(put_bytes("p", n, LARGE)).await.unwrap();
    }
    store.write(put_bytes("p", 8, LARGE)).await.unwrap();
    for n in 0..6 {
        store.write(delete("p", n)).await.unwrap();
    }
    let first = path.join("cargo/1");
    let mut content = fs::read(&first).unwrap();
    let at = content.len() - LARGE / 2;
    content[at] ^= 1;
    fs::write(&first, content).unwrap();
    for outcome in [store.reclaim().await, store.get(&key("p", 7)).await.map(|_| ())] {
        let error = crate::common::refusal(outcome);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(first.to_str().unwrap()), "{error}");
    }
    assert!(first.exists());
    assert_there(&store, [6, 8]).await;
}

async fn small_cargo() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move {
            let options = |options: millpond_embedded::Options| {
                let all = millpond_embedded::CargoOptions { item_bytes_min: 0, ..SMALL_CARGO };
                options.durability(Durability::UnsafeNoSync).cargo(all)
            };
            Arc::new(Kept::open(&environment, options).await) as _
        })
    })
    .await
}

mod everything_in_cargo {
    use super::*;
    millpond_testing::store_conformance!(small_cargo);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { store_model::check(&small_cargo().await, operations).await });
    }

    #[test]
    fn lanes_agree_with_their_model(operations in lane_model::operations(20)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { lane_model::check(&small_cargo().await, operations).await });
    }
}
