//! Objects that no row names are found and removed, and nothing else is.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::cargo::{Objects, Sweep, sweep};
use millpond_lanes::{Ground, Lane as _, LaneConfig, LaneKind, SequencedLane, UnorderedLane};
use millpond_store::{
    Environment, Fault, FaultPlan, Faulty, MemoryStore, Meter, Operation, VirtualClock,
};
use millpond_testing::lane_suite::{message, segments};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

async fn orphans_are_swept(objects: Arc<dyn ObjectStore>) {
    let clock = VirtualClock::automatic(Environment::system().now());
    let environment = Environment::simulated(clock.clone(), 9);
    let faulty = Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let meter = Meter::new();
    let ground = Ground::new(faulty.clone(), &environment)
        .with_objects(Objects::new(objects.clone(), "cargo".into()).metered(meter.clone()));
    let lane = SequencedLane::open(&ground, "a/b", LaneConfig::QUEUE).unwrap();
    let unordered = UnorderedLane::open(&ground, "other", LaneConfig::QUEUE).unwrap();
    lane.append(vec![message(0, 20_000)]).await.unwrap().remove(0).unwrap();
    lane.append(vec![message(1, 20_000)]).await.unwrap().remove(0).unwrap();
    unordered.append(vec![message(0, 20_000)]).await.unwrap().remove(0).unwrap();

    // Two appends whose row never came: their objects are orphans.
    // (The second one looks at the tail first, since the first one failed.)
    for n in 2..4 {
        faulty.follow(FaultPlan::Script((n - 2..8).map(|at| (at, Fault::Definite)).collect()));
        lane.append(vec![message(n, 20_000)]).await.unwrap().remove(0).unwrap_err();
    }
    faulty.follow(FaultPlan::None);
    let foreign = Path::from("cargo").join("a/b").join("notes.txt");
    objects.put(&foreign, "not ours".into()).await.unwrap();
    assert_eq!(meter.read().of(Operation::ObjectPut).requests, 5);

    let dry = Sweep::new("a/b", LaneKind::Sequenced);
    let young = sweep(&ground, &dry).await.unwrap();
    assert_eq!((young.objects, young.named, young.young, young.orphans), (5, 2, 2, 0));

    clock.advance(Duration::from_secs(2 * 3_600));
    let found = sweep(&ground, &dry).await.unwrap();
    assert_eq!(
        (found.named, found.young, found.orphans, found.removed, found.foreign),
        (2, 0, 2, 0, 1)
    );
    assert!(found.orphan_bytes >= 40_000);
    let swept = sweep(&ground, &Sweep { dry_run: false, ..dry.clone() }).await.unwrap();
    assert_eq!((swept.orphans, swept.removed), (2, 2));
    let again = sweep(&ground, &Sweep { dry_run: false, ..dry }).await.unwrap();
    assert_eq!((again.objects, again.named, again.orphans, again.foreign), (3, 2, 0, 1));

    // What rows name is still there, and goes with its segment.
    for segment in segments(&lane).await {
        lane.load(&segment).await.unwrap();
        lane.finish(&segment).await.unwrap();
    }
    let left = sweep(&ground, &Sweep::new("a/b", LaneKind::Sequenced)).await.unwrap();
    assert_eq!((left.objects, left.foreign), (1, 1));
    let other = sweep(&ground, &Sweep::new("other", LaneKind::Unordered)).await.unwrap();
    assert_eq!((other.objects, other.named), (1, 1), "another lane's object was touched");
}

#[tokio::test]
async fn orphans_in_memory_are_swept() {
    orphans_are_swept(Arc::new(InMemory::new())).await;
}

#[tokio::test]
async fn orphans_in_files_are_swept() {
    let directory = tempfile::tempdir().unwrap();
    orphans_are_swept(Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap())).await;
}

#[tokio::test]
async fn cargo_without_its_object_store_says_what_to_do() {
    let environment = Environment::system();
    let store = Arc::new(MemoryStore::new(&environment));
    let bare = Ground::new(store, &environment);
    let with = bare.clone().with_objects(Objects::new(Arc::new(InMemory::new()), Path::default()));
    let lane = SequencedLane::open(&with, "lane", LaneConfig::QUEUE).unwrap();
    lane.append(vec![message(0, 20_000)]).await.unwrap().remove(0).unwrap();
    let lane = SequencedLane::open(&bare, "lane", LaneConfig::QUEUE).unwrap();
    let segment = segments(&lane).await.remove(0);
    let error = lane.load(&segment).await.unwrap_err();
    assert!(error.to_string().contains("object store"), "{error}");
    assert!(sweep(&bare, &Sweep::new("lane", LaneKind::Sequenced)).await.is_err());
}
