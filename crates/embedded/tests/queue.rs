//! Queues over the embedded engine.
#![allow(clippy::unwrap_used, reason = "a test's helper: a failure ends the test")]

mod common;

use std::sync::Arc;

use common::Kept;
use millpond_embedded::Durability;
use millpond_testing::Subject;
use millpond_testing::queue_model::Setting;
use millpond_testing::queue_operations::operations;
use millpond_testing::queue_runs;
use proptest::prelude::{ProptestConfig, any, proptest};

async fn embedded() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move {
            let fast = Durability::UnsafeNoSync;
            Arc::new(Kept::open(&environment, |options| options.durability(fast)).await) as _
        })
    })
    .await
}

millpond_testing::queue_suite!(embedded);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn agrees_with_the_model(
        strict in any::<bool>(),
        dead_letters in any::<bool>(),
        operations in operations(60),
    ) {
        let setting = Setting { strict, dead_letters, faults: None };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { queue_runs::check(&embedded().await, setting, operations).await });
    }

    #[test]
    fn agrees_with_the_model_under_faults(
        strict in any::<bool>(),
        dead_letters in any::<bool>(),
        seed in any::<u64>(),
        operations in operations(60),
    ) {
        let setting = Setting { strict, dead_letters, faults: Some(seed) };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { queue_runs::check(&embedded().await, setting, operations).await });
    }
}
