//! The log over the embedded engine.
#![allow(clippy::unwrap_used, reason = "a test's helper: a failure ends the test")]

mod common;

use std::sync::Arc;

use common::Kept;
use millpond_embedded::Durability;
use millpond_testing::log_suite::LogSubject;
use millpond_testing::{Subject, log_model};
use proptest::prelude::{ProptestConfig, any, proptest};

async fn embedded() -> LogSubject {
    let subject = Subject::new(|environment| {
        Box::pin(async move {
            let fast = Durability::UnsafeNoSync;
            Arc::new(Kept::open(&environment, |options| options.durability(fast)).await) as _
        })
    });
    LogSubject::bare(subject.await)
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
