//! Cargo in S3, over S3's own protocol: lanes on DynamoDB with their cargo in a bucket of a server on this machine.

use std::sync::Arc;

use millpond_lanes::cargo::{self, CargoRef, Sweep, sweep};
use millpond_lanes::{Ground, Lane as _, LaneConfig, LaneKind, SequencedLane};
use millpond_store::StoreError;
use millpond_testing::lane_suite::{message, segments};

use crate::support::Setup;
use crate::support::buckets::{open, serve};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cargo_goes_to_a_bucket_and_comes_back() {
    let buckets = tempfile::tempdir().unwrap();
    std::fs::create_dir(buckets.path().join("cargo")).unwrap();
    let address = serve(buckets.path()).await;
    let setup = Setup::new().await;
    let ground = Ground::new(Arc::new(setup.store.clone()), &setup.environment);
    let with = |secret: &str| {
        let objects = open(address, secret);
        ground.clone().with_objects(cargo::Objects::new(objects.store, objects.prefix))
    };

    let good = with("test-secret");
    let lane = SequencedLane::open(&good, "orders/eu", LaneConfig::QUEUE).unwrap();
    for number in 0..4 {
        let sent =
            lane.append(vec![message(number, 600_000), message(100 + number, 10)]).await.unwrap();
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }
    let found = segments(&lane).await;
    let objects = found.iter().filter(|segment| matches!(segment.cargo, CargoRef::Object { .. }));
    assert_eq!(objects.count(), 4);
    for (number, segment) in (0..).zip(found.iter().filter(|segment| segment.cargo.len() > 100_000))
    {
        let messages = lane.load(segment).await.unwrap();
        assert_eq!(messages.first(), Some(&message(number, 600_000)));
    }
    let report = sweep(&good, &Sweep::new("orders/eu", LaneKind::Sequenced)).await.unwrap();
    assert_eq!((report.objects, report.named, report.orphans), (4, 4, 0));
    for segment in &found {
        lane.finish(segment).await.unwrap();
    }
    let report = sweep(&good, &Sweep::new("orders/eu", LaneKind::Sequenced)).await.unwrap();
    assert_eq!(report.objects, 0, "finished segments left objects");

    // With a wrong secret nothing is appended, and the error says what to do.
    let bad = SequencedLane::open(&with("wrong"), "orders/us", LaneConfig::QUEUE).unwrap();
    let refused = bad.append(vec![message(0, 20_000)]).await.unwrap().remove(0).unwrap_err();
    assert!(matches!(refused, StoreError::Misconfigured { .. }), "{refused}");
    assert!(segments(&bad).await.is_empty());
}
