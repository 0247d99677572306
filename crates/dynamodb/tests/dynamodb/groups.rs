//! Atomic groups: how transactions are cancelled, and what is sent.

use crate::support::proxy::Fault;
use crate::support::{HASTY, Setup, key};
use millpond_store::{Expect, Store as _, StoreError};
use serde_json::{Value, json};

/// A cancelled transaction of two writes, the second one for this reason.
fn cancelled(code: &str) -> Fault {
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
        "CancellationReasons": [
            { "Code": "None", "Message": null },
            { "Code": code, "Message": format!("{code}, said the proxy") },
        ],
    });
    Fault::Answer(400, body)
}

fn pair(setup: &Setup) -> Vec<millpond_store::Write> {
    ["a", "b"].map(|sort| setup.put(&key(sort), 1, Expect::Absent)).into()
}

#[tokio::test]
async fn what_may_pass_is_retried() {
    let setup = Setup::new().await;
    for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
        setup.faults(vec![cancelled(code); HASTY.attempts_max as usize]);
        let error = setup.store.write_all(pair(&setup)).await.unwrap_err();
        assert!(matches!(error, StoreError::Throttled { .. }), "{code}: {error:?}");
        assert!(error.to_string().contains(code), "{error}");
        assert_eq!(setup.proxy.left(), 0, "gave up early on {code}");
    }
    assert!(setup.stored("p").await.is_empty());
    setup.faults([cancelled("TransactionConflict"), cancelled("ThrottlingError")]);
    setup.store.write_all(pair(&setup)).await.unwrap();
    assert_eq!(setup.stored("p").await.len(), 2);
}

#[tokio::test]
async fn what_will_not_pass_is_not_retried() {
    let setup = Setup::new().await;
    for (code, misconfigured) in
        [("ValidationError", false), ("ItemCollectionSizeLimitExceeded", true)]
    {
        setup.faults([cancelled(code)]);
        let error = setup.store.write_all(pair(&setup)).await.unwrap_err();
        let found = matches!(error, StoreError::Misconfigured { .. });
        assert_eq!(found, misconfigured, "{error:?}");
        assert!(error.to_string().contains(code), "{error}");
    }
    assert!(setup.stored("p").await.is_empty());
}

#[tokio::test]
async fn a_conflict_reported_without_items_is_looked_up() {
    let setup = Setup::new().await;
    let there = setup.put(&key("b"), 7, Expect::Absent);
    setup.store.write(there.clone()).await.unwrap();
    setup.faults([cancelled("ConditionalCheckFailed")]);
    let error = setup.store.write_all(pair(&setup)).await.unwrap_err();
    let StoreError::Conflict(conflicts) = error else { panic!("expected a conflict: {error:?}") };
    assert_eq!((conflicts.first().index, &conflicts.first().current), (1, &there.item()));

    // A service that tells nothing, and whose condition failed on our own success.
    let own = pair(&setup);
    setup.untroubled().await.write(own[1].clone()).await.unwrap_err();
    let fresh = vec![setup.put(&key("x"), 1, Expect::Absent), there];
    setup.faults([cancelled("ConditionalCheckFailed")]);
    setup.store.write_all(fresh).await.expect("found under its own version");
}

#[tokio::test]
async fn a_group_of_one_is_a_plain_write_at_half_the_price() {
    let setup = Setup::new().await;
    setup.store.write_all(pair(&setup).split_off(1)).await.unwrap();
    assert_eq!(setup.proxy.actions(), ["PutItem"]);
    let reading = setup.store.meter().take();
    assert_eq!(reading.of(millpond_store::Operation::WriteAll).write_units, 1.0);
}

#[tokio::test]
async fn every_attempt_is_the_same_request() {
    let setup = Setup::new().await;
    setup.faults([Fault::error(500, "InternalServerError"), Fault::DropBefore]);
    setup.store.write_all(pair(&setup)).await.unwrap();
    let bodies: Vec<Value> = setup.proxy.requests().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies[0]["ClientRequestToken"].is_string());
    assert!(bodies.iter().all(|body| *body == bodies[0]), "a retry differed");
    // Another call is another request, even for the same writes.
    setup.store.write_all(pair(&setup)).await.unwrap_err();
    let other = &setup.proxy.requests()[0].1;
    assert_ne!(other["ClientRequestToken"], bodies[0]["ClientRequestToken"]);
}
