//! Change hints under a clock that stands still, so that nothing but the change itself can wake a waiter, and
//! under one that moves, so that nothing but the poll can.

use std::time::Duration;

use crate::support::engine::Engine;
use crate::support::key;
use millpond_dynamodb::limits::{POLL_LONGEST, POLL_SHORTEST};
use millpond_dynamodb::{DynamoDbStore, TableOptions};
use millpond_store::{Environment, Expect, Store as _, Timestamp, VirtualClock, Write};
use millpond_testing::bounded;

async fn open(clock: &VirtualClock) -> (DynamoDbStore, Engine) {
    let engine = Engine::start().await;
    let environment = Environment::simulated(clock.clone(), 7);
    let config = crate::support::config(&engine.endpoint(), "things");
    let store = DynamoDbStore::open(config, &environment).await.unwrap();
    store.admin().create_table(TableOptions::default()).await.unwrap();
    (store, engine)
}

#[tokio::test]
async fn every_kind_of_write_wakes_who_waits() {
    let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
    let (store, _engine) = open(&clock).await;
    let deletes = || ["a", "b"].map(|sort| Write::delete(key(sort), Expect::Any)).to_vec();
    let partition = key("a").partition;

    let mut hint = store.changed(&partition);
    store.write(deletes().remove(0)).await.unwrap();
    bounded("a hint for a write", hint.wait()).await;
    store.write_all(deletes()).await.unwrap();
    bounded("a hint for a group", hint.wait()).await;
    store.write_each(deletes()).await.unwrap();
    bounded("a hint for independent writes", hint.wait()).await;

    // A conflict changes nothing.
    let never = Expect::Version(millpond_store::Version::from_u64(1));
    store.write(Write::delete(key("a"), never)).await.unwrap_err();
    let still = tokio::spawn(async move { hint.wait().await });
    while clock.sleepers() == 0 && !still.is_finished() {
        tokio::task::yield_now().await;
    }
    assert!(!still.is_finished(), "a conflict woke a waiter");
}

#[tokio::test]
async fn a_waiter_looks_again_by_itself_less_and_less_often() {
    let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
    let (store, _engine) = open(&clock).await;
    let mut hint = store.changed(&key("a").partition);
    let mut wait = POLL_SHORTEST;
    for _ in 0..7 {
        let waiting = tokio::spawn(async move {
            hint.wait().await;
            hint
        });
        while clock.sleepers() == 0 && !waiting.is_finished() {
            tokio::task::yield_now().await;
        }
        clock.advance(wait.saturating_sub(Duration::from_millis(1)));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "woken before {wait:?}");
        clock.advance(Duration::from_millis(1));
        hint = bounded("the poll", waiting).await.unwrap();
        wait = (wait * 2).min(POLL_LONGEST);
    }
    assert_eq!(wait, POLL_LONGEST);
}
