//! The sequencer over the embedded engine.
#![allow(clippy::unwrap_used, reason = "a test's helper: a failure ends the test")]

mod common;

use std::sync::Arc;

use common::Kept;
use millpond_embedded::Durability;
use millpond_testing::{Subject, sequencer_model};
use proptest::prelude::{ProptestConfig, proptest};

async fn embedded() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move {
            let fast = Durability::UnsafeNoSync;
            Arc::new(Kept::open(&environment, |options| options.durability(fast)).await) as _
        })
    })
    .await
}

millpond_testing::sequencer_suite!(embedded);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn agrees_with_the_model(operations in sequencer_model::operations(60), seed in 0..u64::MAX) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { sequencer_model::check(&embedded().await, operations, seed).await });
    }
}
