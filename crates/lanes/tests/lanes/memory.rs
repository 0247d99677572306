//! Lanes over the in-memory store.

use std::sync::Arc;

use millpond_store::MemoryStore;
use millpond_testing::{Subject, lane_model};
use proptest::prelude::{ProptestConfig, proptest};

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

millpond_testing::lane_suite!(memory);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn agrees_with_the_model(operations in lane_model::operations(40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { lane_model::check(&memory().await, operations).await });
    }
}
