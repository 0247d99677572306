//! What lanes cost on DynamoDB, in units as the service reports them: `cargo xtask cost`.
//!
//! A queue's message is appended, found by a relaxed scan, read, claimed by an update of its row and removed by
//! finishing; a log's record is appended and read. The figures are for each message.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::cargo::Objects;
use millpond_lanes::{Ground, Lane as _, LaneConfig, Message, SequencedLane, UnorderedLane};
use millpond_store::{Environment, Meter};
use object_store::memory::InMemory;

use crate::support::Setup;
use crate::support::cost::{Cost, Costs, body, judge, most};

struct Case {
    name: &'static str,
    bytes: usize,
    batch: usize,
    objects: bool,
    /// The most, from the project's targets.
    most: Cost,
}

async fn ground(case: &Case) -> (Setup, Ground, Costs) {
    let setup = Setup::new().await;
    let objects = Meter::new();
    let mut ground = Ground::new(Arc::new(setup.store.clone()), &Environment::system());
    if case.objects {
        let store = Objects::new(Arc::new(InMemory::new()), "cargo".into());
        ground = ground.with_objects(store.metered(objects.clone()));
    }
    let messages = (ROUNDS * case.batch) as f64;
    let costs = Costs { meter: setup.store.meter().clone(), objects, messages };
    (setup, ground, costs)
}

const ROUNDS: usize = 10;

async fn queue(case: &Case) -> Cost {
    let (_setup, ground, costs) = ground(case).await;
    let retention = Some(Duration::from_secs(4 * 24 * 3_600));
    let config = LaneConfig { retention, ..LaneConfig::QUEUE };
    let lane = UnorderedLane::open(&ground, "orders/client-0001", config).unwrap();
    println!("{} ({} bytes, {} a call)", case.name, case.bytes, case.batch);
    let message = Message { head: body(40), body: body(case.bytes), ..Message::default() };
    for _ in 0..ROUNDS {
        let sent = lane.append(vec![message.clone(); case.batch]).await.unwrap();
        assert!(sent.iter().all(Result::is_ok));
    }
    let mut total = costs.of("append");
    // As a consumer that receives batch by batch: it scans from where it was.
    let mut next = Some(lane.scan().unwrap().limit(1).relaxed());
    let mut segments = Vec::new();
    while let Some(scan) = next.filter(|_| segments.len() < ROUNDS) {
        let page = lane.page(scan).await.unwrap();
        segments.extend(page.segments);
        next = page.next;
    }
    assert_eq!(segments.len(), ROUNDS);
    total = total.plus(costs.of("scan"));
    let mut claimed = Vec::new();
    for segment in &segments {
        // A lease: 16 bytes of token and time, and 4 for each message.
        claimed.push(lane.update(segment, vec![1; 16 + 4 * case.batch].into()).await.unwrap());
    }
    total = total.plus(costs.of("claim"));
    for segment in &claimed {
        assert_eq!(lane.load(segment).await.unwrap().len(), case.batch);
    }
    total = total.plus(costs.of("load"));
    for segment in &claimed {
        lane.finish(segment).await.unwrap();
    }
    total.plus(costs.of("finish"))
}

async fn log(case: &Case) -> (Cost, Cost) {
    let (_setup, ground, costs) = ground(case).await;
    let lane = SequencedLane::open(&ground, "topic/0", LaneConfig::LOG).unwrap();
    println!("{} ({} bytes, {} a call)", case.name, case.bytes, case.batch);
    lane.tail().await.unwrap();
    let _ = costs.of("open");
    for _ in 0..ROUNDS {
        let sent = lane.append(vec![Message::new(body(case.bytes)); case.batch]).await.unwrap();
        assert!(sent.iter().all(Result::is_ok));
    }
    let append = costs.of("append");
    let page = lane.page(lane.scan().unwrap().relaxed()).await.unwrap();
    for segment in &page.segments {
        lane.load(segment).await.unwrap();
    }
    (append, costs.of("read"))
}

#[tokio::test]
async fn a_queue_message_costs_at_most_its_target() {
    let cases = [
        Case {
            name: "1 KB, batches",
            bytes: 1_024,
            batch: 10,
            objects: false,
            most: most(1.45, 0.5, 0.0, 0.0),
        },
        Case {
            name: "1 KB, batches, objects",
            bytes: 1_024,
            batch: 10,
            objects: true,
            most: most(0.35, 0.5, 0.1, 0.1),
        },
        Case {
            name: "1 KB, one by one",
            bytes: 1_024,
            batch: 1,
            objects: false,
            most: most(5.0, 1.5, 0.0, 0.0),
        },
        Case {
            name: "100 bytes, batches",
            bytes: 100,
            batch: 10,
            objects: false,
            most: most(0.6, 0.5, 0.0, 0.0),
        },
        Case {
            name: "64 KB",
            bytes: 65_536,
            batch: 1,
            objects: false,
            most: most(68.0, 20.0, 0.0, 0.0),
        },
        Case {
            name: "64 KB, objects",
            bytes: 65_536,
            batch: 1,
            objects: true,
            most: most(3.0, 1.5, 1.0, 1.0),
        },
    ];
    for case in &cases {
        let cost = queue(case).await;
        judge(case.name, cost, case.most);
    }
}

#[tokio::test]
async fn a_log_record_costs_at_most_its_target() {
    let case = Case {
        name: "log, objects",
        bytes: 1_024,
        batch: 100,
        objects: true,
        most: most(0.02, 0.0, 0.01, 0.0),
    };
    let (append, read) = log(&case).await;
    judge("log append", append, case.most);
    judge("log read", read, most(0.02, 0.02, 0.0, 0.01));
}
