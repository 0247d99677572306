//! The sequencer over the embedded engine.

use crate::common::unsynced;
use millpond_testing::sequencer_model;
use proptest::prelude::{ProptestConfig, proptest};

millpond_testing::sequencer_suite!(unsynced);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn agrees_with_the_model(operations in sequencer_model::operations(60), seed in 0..u64::MAX) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { sequencer_model::check(&unsynced().await, operations, seed).await });
    }
}
