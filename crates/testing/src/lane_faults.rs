//! A failure before and after every single request of each lane operation.
//!
//! For each operation the number of its requests is counted once; then it is run again and again with a fault at
//! each of them in turn, alone or followed by more so that retries are used up. After a failure the world moves on
//! (nothing, another writer, a consumer), the operation is tried again as its caller would, and every message must
//! have been delivered or be there exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use millpond_lanes::cargo::Objects;
use millpond_lanes::{
    Append, Ground, Lane as _, LaneConfig, Message, Segment, SequencedLane, UnorderedLane,
};
use millpond_store::{Fault, FaultPlan, Faulty, Result, Store};
use object_store::memory::InMemory;

use crate::lane_suite::{message, segments};
use crate::subject::Subject;

const FAULTS: [Fault; 5] =
    [Fault::Conflict, Fault::Definite, Fault::Throttle, Fault::UnknownBefore, Fault::UnknownAfter];

/// What happens between a failure and the next try.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    Nothing,
    AnotherWriter,
    Consumer,
}

/// Requests at most for one operation: more would be a defect of its own.
const REQUESTS_MAX: u64 = 12;

enum AnyLane {
    Unordered(UnorderedLane),
    Sequenced(SequencedLane),
}

impl AnyLane {
    fn open(ground: &Ground, sequenced: bool, name: &str) -> Self {
        if sequenced {
            Self::Sequenced(SequencedLane::open(ground, name, LaneConfig::QUEUE).unwrap())
        } else {
            Self::Unordered(UnorderedLane::open(ground, name, LaneConfig::QUEUE).unwrap())
        }
    }

    async fn append(&self, append: &mut Append) -> Result<()> {
        match self {
            Self::Unordered(lane) => lane.append_prepared(append).await.map(|_| ()),
            Self::Sequenced(lane) => lane.append_prepared(append).await.map(|_| ()),
        }
    }

    async fn segments(&self) -> Vec<Segment> {
        match self {
            Self::Unordered(lane) => segments(lane).await,
            Self::Sequenced(lane) => segments(lane).await,
        }
    }

    async fn load(&self, segment: &Segment) -> Vec<Message> {
        match self {
            Self::Unordered(lane) => lane.load(segment).await.unwrap(),
            Self::Sequenced(lane) => lane.load(segment).await.unwrap(),
        }
    }

    async fn update(&self, segment: &Segment) -> Result<Segment> {
        let state = Bytes::from_static(b"claimed");
        match self {
            Self::Unordered(lane) => lane.update(segment, state).await,
            Self::Sequenced(lane) => lane.update(segment, state).await,
        }
    }

    async fn finish(&self, segment: &Segment) -> Result<()> {
        match self {
            Self::Unordered(lane) => lane.finish(segment).await,
            Self::Sequenced(lane) => lane.finish(segment).await,
        }
    }
}

struct World<'a> {
    subject: &'a Subject,
    faulty: Arc<Faulty<Arc<dyn Store>>>,
    ground: Ground,
    sequenced: bool,
    lane: AnyLane,
    name: String,
    delivered: BTreeMap<Bytes, usize>,
}

impl<'a> World<'a> {
    fn new(subject: &'a Subject, sequenced: bool, objects: bool) -> Self {
        let environment = subject.impatient();
        let faulty = Arc::new(Faulty::new(subject.store.clone(), &environment));
        let mut ground = Ground::new(faulty.clone(), &environment);
        if objects {
            let store = Objects::new(Arc::new(InMemory::new()), "cargo".into());
            ground = ground.with_objects(store);
        }
        let name = subject.partition().as_str().to_owned();
        let lane = AnyLane::open(&ground, sequenced, &name);
        Self { subject, faulty, ground, sequenced, lane, name, delivered: BTreeMap::new() }
    }

    fn append_of(&self, number: u64, bytes: usize) -> Append {
        Append::new(&self.subject.environment, &[message(number, bytes)]).unwrap()
    }

    /// Another process's handle.
    fn other(&self) -> AnyLane {
        AnyLane::open(&self.ground, self.sequenced, &self.name)
    }

    async fn meanwhile(&mut self, what: Meanwhile) {
        self.faulty.follow(FaultPlan::None);
        match what {
            Meanwhile::Nothing => {}
            Meanwhile::AnotherWriter => {
                let mut append = self.append_of(77, 40);
                self.other().append(&mut append).await.unwrap();
            }
            Meanwhile::Consumer => self.consume().await,
        }
    }

    /// Takes, delivers and removes everything that is there.
    async fn consume(&mut self) {
        let lane = self.other();
        for segment in lane.segments().await {
            let claimed = lane.update(&segment).await.unwrap();
            for message in lane.load(&claimed).await {
                *self.delivered.entry(message.head).or_default() += 1;
            }
            lane.finish(&claimed).await.unwrap();
        }
    }

    /// Consumes the rest and looks that each of `expected` came exactly once.
    async fn check(mut self, expected: &[u64], case: &str) {
        self.consume().await;
        self.delivered.remove(77_u64.to_be_bytes().as_slice());
        let once = expected.iter().map(|n| (Bytes::from(n.to_be_bytes().to_vec()), 1)).collect();
        assert_eq!(self.delivered, once, "{case}");
        if let AnyLane::Sequenced(lane) = self.other() {
            let before = lane.tail().await.unwrap();
            let next = lane.append(vec![message(78, 5)]).await.unwrap().remove(0).unwrap();
            assert_eq!(next, before, "{case}");
        }
    }
}

fn plans(requests: u64) -> Vec<(String, FaultPlan)> {
    let mut plans = Vec::new();
    for at in 0..requests {
        for fault in FAULTS {
            plans.push((format!("{fault:?} at request {at}"), FaultPlan::once(at, fault)));
            // Faults of which retries do not get out.
            let storm = (at + 1..at + 30).map(|later| (later, Fault::Definite));
            let storm = storm.chain([(at, fault)]).collect();
            plans.push((
                format!("{fault:?} at request {at}, then a storm"),
                FaultPlan::Script(storm),
            ));
        }
    }
    plans
}

/// Every operation of both kinds of lane, with cargo in the row, in items and in an object.
pub async fn every_request_of_every_operation_may_fail(subject: &Subject) {
    for sequenced in [false, true] {
        for (bytes, objects) in [(10, false), (3_000, false), (20_000, true)] {
            let cases = appends(subject, sequenced, bytes, objects).await;
            let more = changes(subject, sequenced, bytes, objects).await;
            assert!(cases >= 30 && more >= 20, "too few cases: {cases} appends, {more} changes");
        }
    }
}

async fn appends(subject: &Subject, sequenced: bool, bytes: usize, objects: bool) -> usize {
    let calm = World::new(subject, sequenced, objects);
    let mut append = calm.append_of(1, bytes);
    calm.faulty.follow(FaultPlan::None);
    calm.lane.append(&mut append).await.unwrap();
    let requests = calm.faulty.requests();
    assert!((1..=REQUESTS_MAX).contains(&requests), "{requests} requests for one append");

    let mut cases = 0;
    for (plan_name, plan) in plans(requests) {
        for meanwhile in [Meanwhile::Nothing, Meanwhile::AnotherWriter, Meanwhile::Consumer] {
            let case =
                format!("append of {bytes}, {plan_name}, {meanwhile:?}, sequenced {sequenced}");
            let mut world = World::new(subject, sequenced, objects);
            let mut append = world.append_of(1, bytes);
            world.faulty.follow(plan.clone());
            let mut outcome = world.lane.append(&mut append).await;
            for _ in 0..3 {
                world.meanwhile(meanwhile).await;
                if outcome.is_ok() {
                    break;
                }
                outcome = world.lane.append(&mut append).await;
            }
            outcome.unwrap_or_else(|error| panic!("{case}: {error}"));
            world.check(&[1], &case).await;
            cases += 1;
        }
    }
    cases
}

/// Updates and finishes: the caller reads again after a failure, as a consumer does.
async fn changes(subject: &Subject, sequenced: bool, bytes: usize, objects: bool) -> usize {
    let mut cases = 0;
    for finish in [false, true] {
        let prepared = async || {
            let world = World::new(subject, sequenced, objects);
            for number in [1, 2] {
                let mut append = world.append_of(number, bytes);
                world.lane.append(&mut append).await.unwrap();
            }
            let segment = world.lane.segments().await.remove(0);
            (world, segment)
        };
        let operate = async |lane: &AnyLane, segment: &Segment| match finish {
            true => lane.finish(segment).await,
            false => lane.update(segment).await.map(|_| ()),
        };
        let (calm, segment) = prepared().await;
        calm.faulty.follow(FaultPlan::None);
        operate(&calm.lane, &segment).await.unwrap();
        let requests = calm.faulty.requests();
        assert!((1..=REQUESTS_MAX).contains(&requests), "{requests} requests for one change");

        for (plan_name, plan) in plans(requests) {
            let case = format!("finish {finish} of {bytes}, {plan_name}, sequenced {sequenced}");
            let (mut world, segment) = prepared().await;
            // What is finished was delivered before.
            let delivered = world.lane.load(&segment).await.remove(0).head;
            world.faulty.follow(plan);
            let outcome = operate(&world.lane, &segment).await;
            world.faulty.follow(FaultPlan::None);
            let there = world.lane.segments().await;
            let found = there.iter().find(|found| found.place == segment.place);
            match (finish, &outcome, found) {
                (_, Ok(()), Some(found)) => assert!(!finish && found.state == "claimed", "{case}"),
                (true, _, None) => {}
                (false, _, None) => panic!("{case}: an update removed the segment"),
                // It failed: either nothing happened, or the whole change did.
                (_, Err(_), Some(found)) => {
                    assert!(found == &segment || found.state == "claimed", "{case}");
                }
            }
            if found.is_none() {
                world.delivered.insert(delivered, 1);
            }
            world.check(&[1, 2], &case).await;
            cases += 1;
        }
    }
    cases
}
