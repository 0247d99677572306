//! The world of the conformance suite, for a store that talks to a real server.

use std::sync::Arc;

use millpond_dynamodb::{DynamoDbStore, TableOptions};
use millpond_testing::{Subject, with_real_waits};

use super::engine::Engine;

/// A store whose engine lives as long as the test's runtime.
pub async fn dynoxide() -> Subject {
    let engine = Engine::start().await;
    let config = super::config(&engine.endpoint(), "conformance");
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
