//! The sequencer over DynamoDB, on an engine within the test process.

use crate::support::world::dynoxide;
use millpond_testing::{sequencer_model, sequencer_suite};
use proptest::prelude::{ProptestConfig, proptest};

sequencer_suite!(dynoxide);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn agrees_with_the_model(operations in sequencer_model::operations(40), seed in 0..u64::MAX) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { sequencer_model::check(&dynoxide().await, operations, seed).await });
    }
}
