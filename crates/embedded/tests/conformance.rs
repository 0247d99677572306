//! The embedded store keeps the store's contract.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in test code a broken expectation ends the test"
)]

mod common;

use std::sync::Arc;

use common::Kept;
use millpond_embedded::Durability;
use millpond_testing::{Subject, isolation, store_model};
use proptest::prelude::{ProptestConfig, proptest};

async fn durable() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(Kept::open(&environment, |options| options).await) as _ })
    })
    .await
}

async fn unsafe_no_sync() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move {
            let fast = Durability::UnsafeNoSync;
            Arc::new(Kept::open(&environment, |options| options.durability(fast)).await) as _
        })
    })
    .await
}

mod synced {
    use super::*;
    millpond_testing::store_conformance!(durable);
}

mod unsynced {
    use super::*;
    millpond_testing::store_conformance!(unsafe_no_sync);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_look_whole_to_readers() {
    isolation::groups_look_whole_to_readers(&durable().await).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { store_model::check(&unsafe_no_sync().await, operations).await });
    }
}
