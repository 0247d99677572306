//! A failing disk and a panicking writer stop the store; opening it again decides.

use std::sync::Arc;

use crate::common::{
    SMALL_CARGO, delete, key, manual, numbers, open, open_small_cargo, put, put_bytes, refusal,
};
use millpond_embedded::{DiskFaults, EmbeddedStore};
use millpond_store::{Certainty, Environment, Partition, Query, Store, StoreError};
use tempfile::tempdir;

const GROUPS: u64 = 6;
/// The commit with which a store opens.
const OPENING: u64 = 1;

async fn open_with(path: &std::path::Path, faults: &Arc<DiskFaults>) -> EmbeddedStore {
    let options = manual(path).faults(Arc::clone(faults));
    EmbeddedStore::open(options, &Environment::system()).await.unwrap()
}

async fn assert_stopped(store: &EmbeddedStore) {
    let query = Query::new(Partition::new("p").unwrap());
    let refusals = [
        refusal(store.get(&key("p", 0)).await),
        refusal(store.query(query).await),
        refusal(store.write(put("p", 99)).await),
        refusal(store.write_all(vec![put("p", 98), put("p", 99)]).await),
        refusal(store.write_each(vec![put("p", 99)]).await.unwrap().remove(0)),
        refusal(store.sweep_step().await),
        refusal(store.reclaim().await),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, StoreError::Poisoned { .. }), "{refusal:?}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Failure {
    Before,
    After,
    Panic,
}

/// For each commit of a run, and each way to fail: what was acknowledged before is there after reopening, the
/// group that failed is there whole or not at all, and nothing else is.
#[tokio::test]
async fn a_failure_at_any_commit_loses_nothing_acknowledged() {
    for failure in [Failure::Before, Failure::After, Failure::Panic] {
        for failing in 0..GROUPS {
            let directory = tempdir().unwrap();
            let path = directory.path().join("store");
            let faults = DiskFaults::new();
            let store = open_with(&path, &faults).await;
            let commit = OPENING + 1 + failing;
            match failure {
                Failure::Before => faults.fail_before(commit),
                Failure::After => faults.fail_after(commit),
                Failure::Panic => faults.panic_at(commit),
            }
            let mut expected = Vec::new();
            for group in 0..failing {
                store.write_all((0..3).map(|n| put("p", group * 3 + n)).collect()).await.unwrap();
                expected.extend((0..3).map(|n| i64::try_from(group * 3 + n).unwrap()));
            }
            let group = (0..3).map(|n| put("p", failing * 3 + n)).collect();
            let error = refusal(store.write_all(group).await);
            assert_eq!(error.certainty(), Certainty::Unknown, "{error:?}");
            assert_stopped(&store).await;
            store.close().await;

            let store = open(&path).await.unwrap();
            if failure == Failure::After {
                expected.extend((0..3).map(|n| i64::try_from(failing * 3 + n).unwrap()));
            }
            assert_eq!(numbers(&store, "p").await.unwrap(), expected, "{failure:?} at {commit}");
            store.write(delete("p", 0)).await.unwrap();
        }
    }
}

/// Everybody who waits for the failing commit is told, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_wait_are_told() {
    let directory = tempdir().unwrap();
    let faults = DiskFaults::new();
    let store = open_with(&directory.path().join("store"), &faults).await;
    faults.fail_before(OPENING + 20);
    let writers = (0..32).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut acknowledged = 0;
            loop {
                match store.write(put("p", writer * 1_000 + acknowledged)).await {
                    Ok(()) => acknowledged += 1,
                    Err(StoreError::Poisoned { .. } | StoreError::UnknownOutcome { .. }) => return,
                    Err(other) => panic!("unexpected: {other:?}"),
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        millpond_testing::bounded("a writer", writer).await.unwrap();
    }
    assert_stopped(&store).await;
}

/// For each call on a cargo file, writes and syncs: what was acknowledged before is there after reopening, the group
/// that failed is not, since nothing may point at what is not on disk.
#[tokio::test]
async fn a_failure_at_any_call_on_a_cargo_file_loses_nothing_acknowledged() {
    let group = |group: u64| (0..3).map(|n| put_bytes("p", group * 3 + n, 900)).collect::<Vec<_>>();
    let mut failed = 0;
    for failing in 1.. {
        let directory = tempdir().unwrap();
        let path = directory.path().join("store");
        let faults = DiskFaults::new();
        faults.fail_cargo(failing);
        let options = manual(&path).cargo(SMALL_CARGO).faults(Arc::clone(&faults));
        let store = EmbeddedStore::open(options, &Environment::system()).await.unwrap();
        let mut outcomes = Vec::new();
        for n in 0..GROUPS {
            outcomes.push(store.write_all(group(n)).await);
        }
        let acknowledged = outcomes.iter().take_while(|outcome| outcome.is_ok()).count();
        if acknowledged == outcomes.len() {
            assert!(faults.cargo_calls() < failing);
            break;
        }
        failed += 1;
        let error = refusal(outcomes.remove(acknowledged));
        assert_eq!(error.certainty(), Certainty::Unknown, "{error:?}");
        assert_stopped(&store).await;
        store.close().await;

        let store = open(&path).await.unwrap();
        let expected: Vec<_> = (0..i64::try_from(acknowledged * 3).unwrap()).collect();
        assert_eq!(numbers(&store, "p").await.unwrap(), expected, "call {failing}");
        store.close().await;
        // What the failed commit left is out of the way.
        let store = open_small_cargo(&path).await.unwrap();
        store.write_all(group(acknowledged as u64)).await.unwrap();
        let expected: Vec<_> = (0..i64::try_from(acknowledged * 3 + 3).unwrap()).collect();
        assert_eq!(numbers(&store, "p").await.unwrap(), expected, "call {failing}");
    }
    assert!(failed >= 2 * GROUPS, "each group is written and synced; {failed} calls failed");
}
