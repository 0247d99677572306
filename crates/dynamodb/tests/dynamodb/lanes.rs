//! Lanes over DynamoDB, on an engine within the test process.

use crate::support::world::dynoxide;
use millpond_testing::{lane_model, lane_suite};
use proptest::prelude::{ProptestConfig, proptest};

lane_suite!(dynoxide);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn agrees_with_the_model(operations in lane_model::operations(30)) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { lane_model::check(&dynoxide().await, operations).await });
    }
}
