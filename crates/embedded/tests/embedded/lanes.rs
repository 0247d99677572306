//! Lanes over the embedded engine.

use crate::common::unsynced;
use millpond_testing::lane_model;
use proptest::prelude::{ProptestConfig, proptest};

millpond_testing::lane_suite!(unsynced);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_the_model(operations in lane_model::operations(30)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { lane_model::check(&unsynced().await, operations).await });
    }
}
