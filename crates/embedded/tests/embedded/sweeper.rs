//! Expired items are removed in bounded steps, and only they.

use std::time::Duration;

use crate::common::{delete, key, manual, put, write_all};
use millpond_embedded::EmbeddedStore;
use millpond_store::{Clock, Environment, Expect, Expiry, Store, Timestamp, VirtualClock, Write};
use tempfile::{TempDir, tempdir};

const START: u64 = 1_000;

async fn store() -> (TempDir, VirtualClock, EmbeddedStore) {
    let directory = tempdir().unwrap();
    let clock = VirtualClock::new(Timestamp::from_millis(START * 1_000));
    let environment = Environment::simulated(clock.clone(), 5);
    let options = manual(directory.path().join("store"));
    let store = EmbeddedStore::open(options, &environment).await.unwrap();
    (directory, clock, store)
}

fn ending(number: u64, seconds: u64) -> Write {
    put("p", number).expires(Expiry::from_secs(seconds))
}

#[tokio::test]
async fn sweeping_takes_what_is_due_in_bounded_steps() {
    let (_kept, clock, store) = store().await;
    write_all(&store, (0..1_500).map(|n| ending(n, START + 10))).await;
    write_all(&store, (1_500..1_600).map(|n| ending(n, START + 20))).await;
    write_all(&store, (1_600..1_610).map(|n| put("p", n))).await;
    assert_eq!(store.sweep_step().await.unwrap(), 0, "nothing is due");

    clock.advance(Duration::from_secs(10));
    assert_eq!(store.sweep_step().await.unwrap(), 1_000);
    assert_eq!(store.sweep_step().await.unwrap(), 500);
    assert_eq!(store.sweep_step().await.unwrap(), 0);
    clock.advance(Duration::from_secs(10));
    assert_eq!(store.sweep_step().await.unwrap(), 100);

    // With the clock set back, only what was removed stays absent.
    clock.set_wall(Timestamp::from_millis(START * 1_000));
    assert_eq!(clock.now(), Timestamp::from_millis(START * 1_000));
    for n in 0..1_600 {
        assert_eq!(store.get(&key("p", n)).await.unwrap(), None, "{n} was left over");
    }
    assert_eq!(
        crate::common::numbers(&store, "p").await.unwrap(),
        (1_600..1_610).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn an_item_with_a_new_expiry_or_none_is_not_swept_for_its_old_one() {
    let (_kept, clock, store) = store().await;
    for n in 0..4 {
        store.write(ending(n, START + 10)).await.unwrap();
    }
    store.write(ending(0, START + 30)).await.unwrap();
    store.write(put("p", 1)).await.unwrap();
    store.write(delete("p", 2)).await.unwrap();
    clock.advance(Duration::from_secs(10));
    // An expired item may be replaced before it is swept.
    let again = Write { expect: Expect::Absent, ..ending(3, START + 40) };
    store.write(again).await.unwrap();
    assert_eq!(store.sweep_step().await.unwrap(), 0, "every old entry went with its item");
    clock.set_wall(Timestamp::from_millis(START * 1_000));
    assert_eq!(crate::common::numbers(&store, "p").await.unwrap(), [0, 1, 3]);
    clock.set_wall(Timestamp::from_millis((START + 35) * 1_000));
    assert_eq!(crate::common::numbers(&store, "p").await.unwrap(), [1, 3]);
    assert_eq!(store.sweep_step().await.unwrap(), 1);
}

#[tokio::test]
async fn a_page_full_of_expired_items_is_cut_and_continues() {
    let (_kept, clock, store) = store().await;
    write_all(&store, (0..10_050).map(|n| ending(n, START + 1))).await;
    write_all(&store, (10_050..10_060).map(|n| put("p", n))).await;
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        crate::common::numbers(&store, "p").await.unwrap(),
        (10_050..10_060).collect::<Vec<_>>()
    );
}
