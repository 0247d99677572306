//! The store's contract, over HTTP, on an engine within the test process.

use crate::support::world::dynoxide;
use millpond_testing::{store_conformance, store_model};
use proptest::prelude::{ProptestConfig, proptest};

store_conformance!(dynoxide);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_the_model(operations in store_model::operations(60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { store_model::check(&dynoxide().await, operations).await });
    }
}
