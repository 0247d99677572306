//! A failure before and after every single request, to the store and to the object store, of each operation of the log.
//!
//! For each operation the number of its requests is counted once; then it is run again and again with a fault at each
//! of them in turn, alone or followed by more so that retries are used up. Then the store is well again, the operation
//! is tried again as its caller would, and nothing may be lost, doubled, stranded or out of order.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_log::{
    AppendOptions, Consumer, ConsumerOptions, GroupConfig, Log, LogError, ProducerId, Result, Seek,
    Sequence, Start, Topic, TopicConfig,
};
use millpond_store::{Certainty, FaultPlan, Faulty, Store};
use object_store::memory::InMemory;

use crate::faulty_objects::{FaultyObjects, ObjectFault};
use crate::log_suite::{LogSubject, append, number, read_all, record};
use crate::sweep::{is_remote, plans};

/// Requests at most for one operation: more would be a defect of its own.
const REQUESTS_MAX: u64 = 80;

/// More than the retries of all layers together.
const STORM: u64 = 60;

const LEASE: Duration = Duration::from_secs(30);

/// What is tried. Each is also what its caller does to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Append(usize),
    AppendOnce(usize),
    Grow,
    Trim,
    Sweep,
    Delete,
    CreateGroup,
    Join,
    Take,
    Poll,
    Checkpoint,
    Release,
    Reset,
}

const OPERATIONS: [Operation; 17] = [
    Operation::Create,
    Operation::Append(10),
    Operation::Append(3_000),
    Operation::Append(20_000),
    Operation::AppendOnce(10),
    Operation::AppendOnce(3_000),
    Operation::AppendOnce(20_000),
    Operation::Grow,
    Operation::Trim,
    Operation::Sweep,
    Operation::Delete,
    Operation::CreateGroup,
    Operation::Join,
    Operation::Take,
    Operation::Poll,
    Operation::Checkpoint,
    Operation::Release,
];

struct World<'a> {
    world: &'a LogSubject,
    faulty: Arc<Faulty<Arc<dyn Store>>>,
    objects: Arc<FaultyObjects>,
    log: Log,
    name: String,
    topic: Topic,
    consumer: Consumer,
}

impl<'a> World<'a> {
    /// A topic with four records of 9,000 bytes in partition 0, of which two are due, and a worker that has read some.
    async fn new(world: &'a LogSubject, operation: Operation) -> Self {
        let environment = world.subject.impatient();
        let faulty = Arc::new(Faulty::new(world.subject.store.clone(), &environment));
        let inner = world.objects.clone().unwrap_or_else(|| Arc::new(InMemory::new()));
        let objects = FaultyObjects::new(inner);
        let ground = Ground::new(faulty.clone(), &environment)
            .with_objects(Objects::new(objects.clone(), "faults".into()));
        let log = Log::new(&ground);
        let name = world.name();
        let config =
            TopicConfig { retention_bytes: Some(18_000), ..TopicConfig::with_partitions(2) };
        let topic = log.create(&name, config).await.unwrap();
        for n in 0..4 {
            append(&topic, 0, vec![record(n, 9_000)]).await;
        }
        let options = ConsumerOptions { lease: LEASE, ..ConsumerOptions::default() };
        let consumer = topic.consumer("g", options).await.unwrap();
        if operation == Operation::Sweep {
            topic.trim().await.unwrap();
            world.subject.clock.advance(Duration::from_secs(2 * 3_600));
            consumer.beat().await.unwrap();
        }
        if operation != Operation::Take {
            consumer.balance().await.unwrap();
        }
        if matches!(operation, Operation::Checkpoint | Operation::Release) {
            consumer.poll(consumer.held()[0], 3).await.unwrap();
        }
        Self { world, faulty, objects, log, name, topic, consumer }
    }

    fn calm(&self) {
        self.faulty.follow(FaultPlan::None);
        self.objects.follow([]);
    }

    async fn operate(&self, operation: Operation) -> Result<()> {
        let (log, topic, consumer) = (&self.log, &self.topic, &self.consumer);
        let held = || consumer.held().first().copied();
        match operation {
            Operation::Create => {
                log.create(&format!("{}-new", self.name), TopicConfig::default()).await.map(|_| ())
            }
            Operation::Append(bytes) => {
                let options = AppendOptions::default();
                topic.append_to(1, vec![record(77, bytes)], &options).await.map(|_| ())
            }
            Operation::AppendOnce(bytes) => {
                let producer = ProducerId::new("p").unwrap();
                let sequence = Some(Sequence { producer, first: 0 });
                let options = AppendOptions { sequence, fence: Some(3) };
                topic.append_to(1, vec![record(77, bytes)], &options).await.map(|_| ())
            }
            Operation::Grow => log.grow(&self.name, 3).await,
            Operation::Trim => topic.trim().await.map(|_| ()),
            Operation::Sweep => topic.sweep(false).await.map(|_| ()),
            Operation::Delete => log.delete(&self.name).await,
            Operation::CreateGroup => {
                let config = GroupConfig { start: Start::Latest, ..GroupConfig::default() };
                topic.create_group("late", &config).await
            }
            Operation::Join => topic.consumer("h", ConsumerOptions::default()).await.map(|_| ()),
            Operation::Take => consumer.balance().await.map(|_| ()),
            Operation::Poll => consumer.poll(held().unwrap(), 3).await.map(|_| ()),
            Operation::Checkpoint => consumer.checkpoint(held().unwrap(), 3).await,
            Operation::Release => match held() {
                Some(held) => consumer.release(held).await,
                None => Ok(()),
            },
            Operation::Reset => topic.reset("g", None, Seek::Earliest).await,
        }
    }

    /// What must be true after the operation was tried, and tried again if it failed.
    async fn check(&self, operation: Operation, outcome: Result<()>, case: &str) {
        let other = Log::new(&self.world.ground(&self.world.subject.impatient()));
        if operation == Operation::Delete {
            // Gone already is what its caller wanted.
            let is_gone = matches!(outcome, Ok(()) | Err(LogError::UnknownTopic { .. }));
            assert!(is_gone, "{case}: {outcome:?}");
            assert!(!other.list().await.unwrap().contains(&self.name), "{case}");
            let listed = self.objects_left().await;
            assert_eq!(listed, 0, "{case}: {listed} objects are stranded");
            return;
        }
        let topic = self.log.topic(&self.name).await.unwrap_or_else(|e| panic!("{case}: {e}"));
        // Nothing is lost: what retention leaves is there, dense and intact.
        let numbers: Vec<u64> = read_all(&topic, 0).await.iter().map(number).collect();
        let first = if matches!(operation, Operation::Trim | Operation::Sweep) { 2 } else { 0 };
        assert!(numbers.iter().copied().eq(first..4), "{case}: {numbers:?}");
        let appended = read_all(&topic, 1).await.len();
        match (operation, &outcome) {
            (Operation::AppendOnce(_), _) => assert_eq!(appended, 1, "{case}"),
            (Operation::Append(_), Ok(())) => assert_eq!(appended, 1, "{case}"),
            (Operation::Append(_), Err(error)) => {
                let unknown = error.certainty() == Certainty::Unknown;
                assert!(unknown && appended <= 1, "{case}: {appended} after {error}");
            }
            _ => assert_eq!(appended, 0, "{case}"),
        }
        if !matches!(operation, Operation::Append(_)) {
            outcome.unwrap_or_else(|error| panic!("{case}: {error}"));
        }
        // Nothing is in the way of the next append, and no number is skipped.
        assert_eq!(append(&topic, 1, vec![record(5, 10)]).await, appended as u64, "{case}");
        self.check_group(operation, &topic, case).await;
    }

    /// After a lease, another worker takes every partition, and finds the checkpoint where it was or was put.
    async fn check_group(&self, operation: Operation, topic: &Topic, case: &str) {
        let options = ConsumerOptions { lease: LEASE, ..ConsumerOptions::default() };
        let heir = topic.consumer("g", options).await.unwrap();
        for _ in 0..3 {
            heir.balance().await.unwrap();
            self.world.subject.clock.advance(LEASE / 2);
            heir.beat().await.unwrap();
        }
        heir.balance().await.unwrap();
        assert_eq!(heir.held().len(), 2, "{case}: a partition is stranded");
        let place = topic.describe_group("g").await.unwrap().partitions.remove(0);
        let expected = match operation {
            Operation::Checkpoint => 3,
            // It took the partition after the trim.
            Operation::Sweep => 2,
            _ => 0,
        };
        assert_eq!(place.checkpoint, expected, "{case}");
    }

    async fn objects_left(&self) -> usize {
        use futures::TryStreamExt as _;
        use object_store::ObjectStore as _;
        let listed: Vec<_> = self.objects.list(Some(&"faults".into())).try_collect().await.unwrap();
        listed.iter().filter(|object| object.location.as_ref().contains(&self.name)).count()
    }
}

/// Every operation, a fault at each of its requests.
pub async fn every_request_of_every_log_operation_may_fail(world: &LogSubject) {
    let mut cases = 0;
    for operation in OPERATIONS.into_iter().chain([Operation::Reset]) {
        let calm = World::new(world, operation).await;
        calm.calm();
        calm.operate(operation).await.unwrap_or_else(|e| panic!("{operation:?}: {e}"));
        let (requests, object_requests) = (calm.faulty.requests(), calm.objects.requests());
        assert!((1..=REQUESTS_MAX).contains(&requests), "{requests} requests: {operation:?}");
        for (name, plan) in plans(&*world.subject.store, requests, STORM) {
            let case = format!("{operation:?}, {name}");
            try_one(world, operation, &case, |world| world.faulty.follow(plan.clone())).await;
            cases += 1;
        }
        for at in 0..object_requests {
            for fault in [ObjectFault::Before, ObjectFault::After] {
                for storm in storms(world, at as usize) {
                    let plan: Vec<_> = (at..=at + storm).map(|later| (later, fault)).collect();
                    let case = format!("{operation:?}, object {fault:?} at {at}, {storm} more");
                    try_one(world, operation, &case, |world| world.objects.follow(plan.clone()))
                        .await;
                    cases += 1;
                }
            }
        }
    }
    assert!(cases >= 150, "too few cases: {cases}");
}

/// How many requests to the object store fail behind the first: none, and more than retries get out of; over a network
/// one of the two, in turn.
fn storms(world: &LogSubject, turn: usize) -> Vec<u64> {
    match (is_remote(&*world.subject.store), turn % 2) {
        (false, _) => vec![0, STORM],
        (true, 0) => vec![0],
        (true, _) => vec![STORM],
    }
}

async fn try_one(
    subject: &LogSubject,
    operation: Operation,
    case: &str,
    harm: impl Fn(&World<'_>),
) {
    let world = World::new(subject, operation).await;
    world.calm();
    harm(&world);
    let mut outcome = world.operate(operation).await;
    world.calm();
    if operation == Operation::Trim {
        // However it ended, what is missing is a prefix.
        read_all(&world.topic, 0).await;
    }
    for _ in 0..3 {
        match &outcome {
            // Who may not send twice stops at an outcome that is unknown.
            Err(error)
                if matches!(operation, Operation::Append(_))
                    && error.certainty() == Certainty::Unknown =>
            {
                break;
            }
            Err(_) => outcome = world.operate(operation).await,
            Ok(()) => break,
        }
    }
    // A call that was answered with success although others were refused may have left work: the next one does it.
    if matches!(operation, Operation::Trim | Operation::Sweep | Operation::Take) {
        outcome = world.operate(operation).await;
    }
    world.check(operation, outcome, case).await;
}
