//! The store's contract, and lanes, on Amazon's own DynamoDB Local, so that two independent engines agree.
//!
//! `cargo xtask dynamodb-local --run -- cargo test -p millpond-dynamodb --test dynamodb local:: -- --ignored` starts it and
//! names its address in `MILLPOND_DYNAMODB_LOCAL`. `cargo xtask test` does so too. Everywhere else these tests are
//! ignored, and counted as such.

use std::sync::Arc;

use millpond_dynamodb::{DynamoDbStore, Role, TableOptions};
use millpond_store::{Attributes, Environment, Expect, Operation, Store as _, Write};
use millpond_testing::{Subject, lane_suite, store_conformance, store_model, with_real_waits};
use proptest::prelude::{ProptestConfig, proptest};

const ENDPOINT: &str = "MILLPOND_DYNAMODB_LOCAL";

async fn local() -> Subject {
    let endpoint = std::env::var(ENDPOINT)
        .unwrap_or_else(|_| panic!("{ENDPOINT} names no endpoint: see the top of this file"));
    let config = crate::support::config(&endpoint, "conformance");
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

/// What the tests with a proxy rely on holds on this engine too.
#[tokio::test]
#[ignore = "needs DynamoDB Local"]
async fn the_table_is_fit_for_every_role_and_units_are_reported() {
    local().await;
    let endpoint = std::env::var(ENDPOINT).unwrap();
    let environment = Environment::system();
    let config = crate::support::config(&endpoint, "conformance");
    let store = DynamoDbStore::open(config, &environment).await.unwrap();
    for role in [Role::Producer, Role::Consumer, Role::Admin] {
        let report = store.admin().verify(role, TableOptions::default()).await.unwrap();
        assert!(report.is_good(), "{report}");
    }
    for (body, write_units) in [(900, 1.0), (1_025, 2.0)] {
        let attributes = Attributes::new().with("body", vec![7; body]);
        let key = crate::support::key("units");
        let put = Write::put(key, attributes, Expect::Any, environment.version());
        let _ = store.meter().take();
        store.write(put).await.unwrap();
        assert_eq!(store.meter().take().of(Operation::Write).write_units, write_units);
    }
}

store_conformance! {
    #[ignore = "needs DynamoDB Local"]
    local
}

lane_suite! {
    #[ignore = "needs DynamoDB Local"]
    local
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    #[ignore = "needs DynamoDB Local"]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { store_model::check(&local().await, operations).await });
    }
}
