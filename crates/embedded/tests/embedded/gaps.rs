//! Deleted rows neither hide live ones nor slow reads down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Kept, delete, key, put, write_all};
use millpond_embedded::Durability;
use millpond_store::{Environment, Partition, Query, Store};

/// One writer moves a window of live rows over a small ring of keys, both ways, so that keys are put into ranges
/// that readers just found empty; each step is one atomic group. What a query finds must be the window of a step
/// between its beginning and its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_never_miss_a_row_that_was_put_into_a_known_gap() {
    const RING: u64 = 24;
    const LIVE: u64 = 3;
    const STEPS: u64 = 4_000;
    let environment = Environment::system();
    let fast = Durability::UnsafeNoSync;
    let store = Arc::new(Kept::open(&environment, |options| options.durability(fast)).await);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicBool::new(false));

    // The window at a step: forward for a while, then backward, and so on.
    let at = |step: u64| {
        let phase = step % 80;
        if phase < 40 { phase } else { 80 - phase }
    };
    let window = move |step: u64| {
        let mut rows: Vec<u64> = (0..LIVE).map(|n| (at(step) + n) % RING).collect();
        rows.sort_unstable();
        rows
    };
    write_all(store.as_ref(), window(0).into_iter().map(|n| put("p", n))).await;

    let mut readers = Vec::new();
    for reverse in [false, true, false] {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        let acknowledged = Arc::clone(&acknowledged);
        readers.push(tokio::spawn(async move {
            let mut reads = 0_u64;
            while !done.load(Ordering::SeqCst) {
                let before = acknowledged.load(Ordering::SeqCst);
                let query = Query::new(Partition::new("p").unwrap());
                let query = if reverse { query.reverse() } else { query };
                let page = store.query(query).await.unwrap();
                let after = acknowledged.load(Ordering::SeqCst);
                let mut rows: Vec<u64> = page
                    .items
                    .iter()
                    .map(|item| item.attributes.number("n").unwrap().unsigned_abs())
                    .collect();
                rows.sort_unstable();
                // One more than acknowledged may be visible: it is on its way.
                let possible = (before..=after + 1).any(|step| window(step) == rows);
                assert!(possible, "steps {before} to {after}: {rows:?}");
                reads += 1;
            }
            reads
        }));
    }
    // Flushes and compactions go on meanwhile: they must not show half of a group.
    readers.push(tokio::spawn({
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        async move {
            while !done.load(Ordering::SeqCst) {
                store.store.reclaim().await.unwrap();
            }
            0
        }
    }));
    for step in 1..=STEPS {
        let (old, new) = (window(step - 1), window(step));
        let mut group: Vec<_> =
            new.iter().filter(|n| !old.contains(n)).map(|n| put("p", *n)).collect();
        group.extend(old.iter().filter(|n| !new.contains(n)).map(|n| delete("p", *n)));
        store.write_all(group).await.unwrap();
        acknowledged.store(step, Ordering::SeqCst);
    }
    done.store(true, Ordering::SeqCst);
    let mut reads = 0;
    for reader in readers {
        reads += reader.await.unwrap();
    }
    assert!(reads > 100, "the readers hardly ran: {reads} reads");
}

/// A count, not a time: after many deletes at either end a query steps over what it knows to be empty.
#[tokio::test]
async fn rows_around_deleted_ones_are_found_from_both_ends() {
    let environment = Environment::system();
    let fast = Durability::UnsafeNoSync;
    let store = Kept::open(&environment, |options| options.durability(fast)).await;
    write_all(&store, (0..3_000).map(|n| put("p", n))).await;
    write_all(&store, (0..1_000).map(|n| delete("p", n))).await;
    write_all(&store, (2_000..3_000).map(|n| delete("p", n))).await;
    let query = Query::new(Partition::new("p").unwrap()).limit(2);
    for _ in 0..3 {
        let first = store.query(query.clone()).await.unwrap().items;
        assert_eq!(first[0].key, key("p", 1_000));
        let last = store.query(query.clone().reverse()).await.unwrap().items;
        assert_eq!(last[0].key, key("p", 1_999));
    }
    // Into both gaps, and behind everything.
    write_all(&store, [5, 2_500, 9_000].map(|n| put("p", n))).await;
    let first = store.query(query.clone()).await.unwrap().items;
    assert_eq!([&first[0].key, &first[1].key], [&key("p", 5), &key("p", 1_000)]);
    let last = store.query(query.reverse()).await.unwrap().items;
    assert_eq!([&last[0].key, &last[1].key], [&key("p", 9_000), &key("p", 2_500)]);
}
