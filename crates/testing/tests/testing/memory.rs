//! The in-memory store keeps the store's contract.

use std::sync::Arc;

use millpond_store::MemoryStore;
use millpond_testing::{Subject, isolation, store_model};
use proptest::prelude::{ProptestConfig, proptest};

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

millpond_testing::store_conformance!(memory);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_look_whole_to_readers() {
    isolation::groups_look_whole_to_readers(&memory().await).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { store_model::check(&memory().await, operations).await });
    }
}
