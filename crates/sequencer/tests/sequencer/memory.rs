//! The sequencer over the in-memory store.

use std::sync::Arc;

use millpond_store::{Environment, MemoryStore};
use millpond_testing::{Subject, sequencer_model};
use proptest::prelude::{ProptestConfig, proptest};

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

millpond_testing::sequencer_suite!(memory);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn agrees_with_the_model(operations in sequencer_model::operations(80), seed in 0..u64::MAX) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { sequencer_model::check(&memory().await, operations, seed).await });
    }
}

/// Seeds that are kept, since they failed once or found a mutation, and fresh ones.
#[test]
fn writers_with_faults_lose_and_repeat_nothing() {
    let fresh = Environment::system().rng.next_u64();
    for seed in KEPT_SEEDS.iter().copied().chain((0..40).map(|n| fresh.wrapping_add(n))) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            sequencer_model::check_with_faults(&memory().await, 60, seed).await;
        });
    }
}

const KEPT_SEEDS: &[u64] = &[1, 2, 3];
