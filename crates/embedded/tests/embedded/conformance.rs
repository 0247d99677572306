//! The embedded store keeps the store's contract.

use std::sync::Arc;

use crate::common::{Kept, unsynced};
use millpond_testing::{Subject, isolation, store_model};
use proptest::prelude::{ProptestConfig, proptest};

async fn durable() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(Kept::open(&environment, |options| options).await) as _ })
    })
    .await
}

mod synced {
    use super::*;
    millpond_testing::store_conformance!(durable);
}

mod fast {
    use super::*;
    millpond_testing::store_conformance!(unsynced);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_look_whole_to_readers() {
    isolation::groups_look_whole_to_readers(&durable().await).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { store_model::check(&unsynced().await, operations).await });
    }
}
