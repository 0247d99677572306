//! The log over the embedded engine.

use crate::common::unsynced;
use millpond_testing::log_model;
use millpond_testing::log_suite::LogSubject;
use proptest::prelude::{ProptestConfig, any, proptest};

async fn embedded() -> LogSubject {
    LogSubject::bare(unsynced().await)
}

millpond_testing::log_suite!(embedded);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_the_model(operations in log_model::operations(50), faults in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async { log_model::check(&embedded().await, operations, faults).await });
    }
}
