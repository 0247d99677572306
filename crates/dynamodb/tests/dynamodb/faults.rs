//! What the network and the service do to requests, and what becomes of the operations.

use std::time::Duration;

use crate::support::proxy::{Fault, error_body};
use crate::support::{HASTY, Setup, key};
use millpond_dynamodb::DynamoDbStore;
use millpond_store::{Certainty, Environment, Expect, Query, Store as _, StoreError, Write};

fn throttle() -> Fault {
    Fault::error(400, "ThrottlingException")
}

fn all_attempts(fault: &Fault) -> Vec<Fault> {
    vec![fault.clone(); HASTY.attempts_max as usize]
}

#[tokio::test]
async fn throttling_is_retried_and_every_request_is_counted() {
    let setup = Setup::new().await;
    let write = setup.put(&key("a"), 1, Expect::Absent);
    setup.faults([throttle(), Fault::error(400, "ProvisionedThroughputExceededException")]);
    setup.store.write(write.clone()).await.unwrap();
    assert_eq!(setup.current(&key("a")).await, write.item());
    assert_eq!(setup.store.meter().read().total().requests, 3);
}

#[tokio::test]
async fn endless_throttling_ends_in_a_definite_error() {
    let setup = Setup::new().await;
    let partition = key("a").partition;
    let put = |sort: &str| setup.put(&key(sort), 1, Expect::Absent);
    let is_throttled = |error: &StoreError| matches!(error, StoreError::Throttled { .. });

    setup.faults(all_attempts(&throttle()));
    assert!(setup.store.get(&key("a")).await.is_err_and(|error| is_throttled(&error)));
    setup.faults(all_attempts(&throttle()));
    let queried = setup.store.query(Query::new(partition)).await;
    assert!(queried.is_err_and(|error| is_throttled(&error)));
    setup.faults(all_attempts(&throttle()));
    assert!(setup.store.write(put("a")).await.is_err_and(|error| is_throttled(&error)));
    setup.faults(all_attempts(&throttle()));
    let group = setup.store.write_all(vec![put("a"), put("b")]).await;
    assert!(group.is_err_and(|error| is_throttled(&error)));
    setup.faults(all_attempts(&throttle()));
    let pair = vec![setup.put(&key("a"), 1, Expect::Any), setup.put(&key("b"), 1, Expect::Any)];
    let each = setup.store.write_each(pair).await.unwrap();
    assert!(each.iter().all(|outcome| outcome.as_ref().is_err_and(is_throttled)), "{each:?}");

    assert_eq!(setup.proxy.left(), 0, "an operation gave up early");
    assert!(setup.stored("p").await.is_empty(), "a throttled write was applied");
}

/// One failure before or after each request of each kind of write: it ends as if nothing had happened.
#[tokio::test]
async fn one_failure_never_loses_or_repeats_a_write() {
    let faults = [
        throttle(),
        Fault::error(500, "InternalServerError"),
        Fault::ForwardThenAnswer(500, error_body("InternalServerError")),
        Fault::ForwardThenAnswer(503, error_body("ServiceUnavailable")),
        Fault::DropBefore,
        Fault::DropAfter,
    ];
    let setup = Setup::new().await;
    for (round, fault) in faults.iter().enumerate() {
        let sort = |name: &str| key(&format!("{round}/{name}"));
        let once = || setup.faults([fault.clone()]);
        let check = async |write: &Write| {
            assert_eq!(setup.proxy.left(), 0, "{fault:?} did not happen");
            assert_eq!(setup.current(&write.key).await, write.item(), "after {fault:?}");
        };

        let made = setup.put(&sort("a"), 1, Expect::Absent);
        once();
        setup.store.write(made.clone()).await.unwrap();
        check(&made).await;
        let changed = setup.put(&sort("a"), 2, Expect::Version(made.version().unwrap()));
        once();
        setup.store.write(changed.clone()).await.unwrap();
        check(&changed).await;
        let forced = setup.put(&sort("a"), 3, Expect::Any);
        once();
        setup.store.write(forced.clone()).await.unwrap();
        check(&forced).await;
        let removed = Write::delete(sort("a"), Expect::Any);
        once();
        setup.store.write(removed.clone()).await.unwrap();
        check(&removed).await;

        let group = vec![
            setup.put(&sort("b"), 1, Expect::Absent),
            setup.put(&sort("c"), 1, Expect::Any),
            Write::delete(sort("a"), Expect::Absent),
        ];
        once();
        setup.store.write_all(group.clone()).await.unwrap();
        check(&group[0]).await;
        check(&group[1]).await;

        let each: Vec<_> =
            ["d", "e", "f"].map(|name| setup.put(&sort(name), 1, Expect::Any)).into();
        once();
        let outcomes = setup.store.write_each(each.clone()).await.unwrap();
        assert!(outcomes.iter().all(Result::is_ok), "{fault:?}: {outcomes:?}");
        check(&each[2]).await;
    }
}

/// The service itself knows a group of deletes again, which leaves no version to be known by.
#[tokio::test]
async fn a_group_of_deletes_whose_answer_was_lost_is_known_again() {
    let setup = Setup::new().await;
    let mut group = Vec::new();
    for sort in ["a", "b"] {
        let put = setup.put(&key(sort), 1, Expect::Absent);
        setup.store.write(put.clone()).await.unwrap();
        group.push(Write::delete(key(sort), Expect::Version(put.version().unwrap())));
    }
    setup.faults([Fault::DropAfter]);
    setup.store.write_all(group).await.unwrap();
    assert!(setup.stored("p").await.is_empty());
}

#[tokio::test]
async fn a_conflict_after_an_unknown_attempt_says_so() {
    let setup = Setup::new().await;
    let theirs = setup.put(&key("a"), 1, Expect::Absent);
    setup.store.write(theirs.clone()).await.unwrap();

    setup.faults([Fault::DropBefore]);
    let late = setup.store.write(setup.put(&key("a"), 2, Expect::Absent)).await.unwrap_err();
    assert_eq!(late.certainty(), Certainty::Unknown);
    let StoreError::Conflict(conflicts) = late else { panic!("expected a conflict, got {late:?}") };
    assert!(conflicts.after_unknown());
    assert_eq!(conflicts.first().current, theirs.item());

    let certain = setup.store.write(setup.put(&key("a"), 2, Expect::Absent)).await.unwrap_err();
    assert_eq!(certain.certainty(), Certainty::Definite);

    // A delete leaves nothing to be known by: its own success looks like somebody else's.
    let delete = Write::delete(key("a"), Expect::Version(theirs.version().unwrap()));
    setup.faults([Fault::DropAfter]);
    let unclear = setup.store.write(delete).await.unwrap_err();
    assert!(matches!(&unclear, StoreError::Conflict(conflicts) if conflicts.after_unknown()));
    assert_eq!(setup.current(&key("a")).await, None);
}

#[tokio::test]
async fn failures_without_end_are_unknown_for_writes_only() {
    let faults = [Fault::DropBefore, Fault::error(500, "InternalServerError")];
    let setup = Setup::new().await;
    for fault in &faults {
        setup.faults(all_attempts(fault));
        let error = setup.store.get(&key("a")).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        setup.faults(all_attempts(fault));
        let error = setup.store.write(setup.put(&key("a"), 1, Expect::Any)).await.unwrap_err();
        assert!(matches!(error, StoreError::UnknownOutcome { .. }), "{error:?}");
        setup.faults(all_attempts(fault));
        let group = ["a", "b"].map(|sort| setup.put(&key(sort), 1, Expect::Any));
        let error = setup.store.write_all(group.into()).await.unwrap_err();
        assert!(matches!(error, StoreError::UnknownOutcome { .. }), "{error:?}");
        assert_eq!(setup.proxy.left(), 0);
    }
    // Unknown once, then refused for good: still unknown.
    setup.faults([Fault::DropBefore, Fault::error(400, "AccessDeniedException")]);
    let error = setup.store.write(setup.put(&key("a"), 1, Expect::Any)).await.unwrap_err();
    assert_eq!(error.certainty(), Certainty::Unknown);
}

#[tokio::test]
async fn an_attempt_that_is_never_answered_times_out_and_is_retried() {
    let short = Duration::from_millis(300);
    let setup = Setup::with(|config| config.attempt_timeout(short)).await;
    let write = setup.put(&key("a"), 1, Expect::Absent);
    setup.faults([Fault::Hang]);
    setup.store.write(write.clone()).await.unwrap();
    assert_eq!(setup.current(&key("a")).await, write.item());

    setup.faults(all_attempts(&Fault::Hang));
    let error = setup.store.write(setup.put(&key("b"), 1, Expect::Absent)).await.unwrap_err();
    assert!(matches!(error, StoreError::UnknownOutcome { .. }), "{error:?}");
    assert_eq!(setup.proxy.left(), 0);
}

#[tokio::test]
async fn an_operation_ends_in_time_though_attempts_are_left() {
    let setup = Setup::with(|config| config.operation_timeout(Duration::ZERO)).await;
    setup.faults([throttle()]);
    let error = setup.store.get(&key("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Throttled { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_connection_is_definite() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let environment = Environment::system();
    let config = crate::support::config(&nobody, "things");
    let store = DynamoDbStore::open(config, &environment).await.unwrap();
    let write = Write::delete(key("a"), Expect::Any);
    let error = store.write(write).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(store.meter().read().total().requests, u64::from(HASTY.attempts_max));
}
