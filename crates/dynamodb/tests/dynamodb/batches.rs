//! Independent writes: batches, and what the service leaves over.

use crate::support::proxy::Fault;
use crate::support::{HASTY, Setup, key};
use millpond_store::{Expect, Operation, Store as _, StoreError, Write};

fn writes(setup: &Setup, count: usize, expect: Expect) -> Vec<Write> {
    (0..count).map(|n| setup.put(&key(&format!("{n:03}")), 1, expect)).collect()
}

#[tokio::test]
async fn unprocessed_writes_are_sent_again_and_only_those() {
    let setup = Setup::new().await;
    setup.faults([Fault::Unprocessed(20), Fault::Unprocessed(3)]);
    let outcomes = setup.store.write_each(writes(&setup, 25, Expect::Any)).await.unwrap();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(setup.stored("p").await.len(), 25);
    let sizes: Vec<usize> = setup
        .proxy
        .requests()
        .iter()
        .map(|(_, body)| body["RequestItems"]["things"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [25, 20, 3]);
    let used = setup.store.meter().take().of(Operation::WriteEach);
    assert_eq!((used.requests, used.write_units), (3, 25.0));
}

#[tokio::test]
async fn what_stays_unprocessed_is_throttled_and_the_rest_is_written() {
    let setup = Setup::new().await;
    setup.faults(vec![Fault::Unprocessed(2); HASTY.attempts_max as usize]);
    let outcomes = setup.store.write_each(writes(&setup, 10, Expect::Any)).await.unwrap();
    for (index, outcome) in outcomes.iter().enumerate() {
        let throttled = matches!(outcome, Err(StoreError::Throttled { .. }));
        assert_eq!(throttled, index >= 8, "write {index}: {outcome:?}");
        assert_eq!(outcome.is_ok(), index < 8, "write {index}: {outcome:?}");
    }
    assert_eq!(setup.stored("p").await.len(), 8);
}

#[tokio::test]
async fn writes_go_in_batches_of_25_and_conditional_ones_alone() {
    let setup = Setup::new().await;
    setup.store.write_each(writes(&setup, 60, Expect::Any)).await.unwrap();
    assert_eq!(setup.proxy.actions(), ["BatchWriteItem"; 3]);
    let again = setup.store.write_each(writes(&setup, 3, Expect::Absent)).await.unwrap();
    assert!(again.iter().all(|outcome| outcome.as_ref().is_err_and(StoreError::is_conflict)));
    assert_eq!(setup.proxy.actions(), ["PutItem"; 3]);
}

#[tokio::test]
async fn a_write_that_spoils_its_batch_fails_alone() {
    let setup = Setup::new().await;
    let odd = Fault::error(400, "ValidationException");
    // The batch is refused, and so is the second of its writes, sent alone.
    setup.faults([odd.clone(), Fault::None, odd]);
    let outcomes = setup.store.write_each(writes(&setup, 4, Expect::Any)).await.unwrap();
    let failed: Vec<bool> = outcomes.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, true, false, false]);
    assert_eq!(setup.stored("p").await.len(), 3);
}

#[tokio::test]
async fn a_refused_batch_tells_each_write_why() {
    let setup = Setup::new().await;
    setup.faults([Fault::error(400, "AccessDeniedException")]);
    let outcomes = setup.store.write_each(writes(&setup, 5, Expect::Any)).await.unwrap();
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("dynamodb:BatchWriteItem"), "{error}");
    }
}
