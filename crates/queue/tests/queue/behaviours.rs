//! Queues over the in-memory store.

use std::sync::Arc;

use millpond_store::MemoryStore;
use millpond_testing::Subject;
use millpond_testing::queue_model::Setting;
use millpond_testing::queue_operations::operations;
use millpond_testing::queue_runs;
use proptest::prelude::{ProptestConfig, any, proptest};

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

millpond_testing::queue_suite!(memory);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn agrees_with_the_model(
        strict in any::<bool>(),
        dead_letters in any::<bool>(),
        operations in operations(60),
    ) {
        let setting = Setting { strict, dead_letters, faults: None };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { queue_runs::check(&memory().await, setting, operations).await });
    }

    #[test]
    fn agrees_with_the_model_under_faults(
        strict in any::<bool>(),
        dead_letters in any::<bool>(),
        seed in any::<u64>(),
        operations in operations(60),
    ) {
        let setting = Setting { strict, dead_letters, faults: Some(seed) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { queue_runs::check(&memory().await, setting, operations).await });
    }
}
