//! The store's contract, over HTTP, on an engine within the test process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

mod support;

use std::sync::Arc;

use millpond_dynamodb::{DynamoDbStore, TableOptions};
use millpond_testing::{Subject, store_conformance, store_model};
use proptest::prelude::{ProptestConfig, proptest};
use support::engine::Engine;
use support::world::with_real_waits;

/// A store whose engine lives as long as the test's runtime.
async fn dynoxide() -> Subject {
    let engine = Engine::start().await;
    let config = support::config(&engine.endpoint(), "conformance");
    // The runtime of the test ends the engine with everything else it runs.
    tokio::spawn(async move {
        let _engine = engine;
        std::future::pending::<()>().await;
    });
    Subject::new(|environment| {
        Box::pin(async move {
            let environment = with_real_waits(&environment);
            let store = DynamoDbStore::open(config, &environment).await.unwrap();
            store.admin().create_table(TableOptions::default()).await.unwrap();
            Arc::new(store) as _
        })
    })
    .await
}

store_conformance!(dynoxide);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { store_model::check(&dynoxide().await, operations).await });
    }
}
