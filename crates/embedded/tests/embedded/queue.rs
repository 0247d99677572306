//! Queues over the embedded engine.

use crate::common::unsynced;
use millpond_testing::queue_model::Setting;
use millpond_testing::queue_operations::operations;
use millpond_testing::queue_runs;
use proptest::prelude::{ProptestConfig, any, proptest};

millpond_testing::queue_suite!(unsynced);

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
        runtime.block_on(async { queue_runs::check(&unsynced().await, setting, operations).await });
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
        runtime.block_on(async { queue_runs::check(&unsynced().await, setting, operations).await });
    }
}
