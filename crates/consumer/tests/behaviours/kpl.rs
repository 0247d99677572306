//! Aggregates of the Kinesis Producer Library.

use std::time::Duration;

use millpond_consumer::source::Aggregate;
use millpond_consumer::{HashRange, Message, Order, Outcome, Reason};
use millpond_store::{Environment, Monotonic};
use serde_json::json;

use crate::support::events::{self, event, kinesis_at};
use crate::support::{World, is};

/// An aggregate of messages `{"n": 0}`, `{"n": 1}`…, with keys of their own.
pub fn aggregate(count: u64) -> Aggregate {
    let record = |n: u64| millpond_consumer::source::AggregatedRecord {
        partition_key_index: n % 10,
        explicit_hash_key_index: None,
        data: json!({"n": n}).to_string().into(),
    };
    Aggregate {
        partition_keys: (0..10).map(|key| format!("key-{key}")).collect(),
        explicit_hash_keys: vec![],
        records: (0..count).map(record).collect(),
    }
}

fn record(data: &[u8]) -> String {
    event(vec![kinesis_at(events::STREAM, events::SHARD, "100", "a", data)])
}

#[tokio::test]
async fn user_records_run_in_sub_sequence_order_with_zero_first() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).order(Order::PerShard).build().unwrap();
    let (_, report) = world.deliver(&consumer, &record(&aggregate(25).to_bytes())).await;
    assert_eq!((report.records, report.messages), (1, 25));
    let expected: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    assert_eq!(world.calls.of("index"), expected);
}

#[tokio::test]
async fn a_half_done_aggregate_skips_what_is_finished() {
    let world = World::new();
    let plan = |message: &Message| {
        if is(message, 0) && message.attempt() == 1 { Outcome::retry("no") } else { Outcome::Done }
    };
    let consumer = world.planned(plan).order(Order::None).build().unwrap();
    let event = record(&aggregate(50).to_bytes());
    assert_eq!(world.failures(&consumer, &event).await, ["100"]);
    world.calls.take();
    assert!(world.failures(&consumer, &event).await.is_empty());
    assert_eq!(world.calls.of("index"), ["0"], "only the first user record, whose number is 0");
}

#[tokio::test]
async fn a_broken_aggregate_and_a_bad_checksum_are_dead_records_each_with_its_reason() {
    let good = aggregate(3).to_bytes();
    let mut flipped = good.to_vec();
    flipped[20] ^= 0x40;
    let mut unknown_key = aggregate(3);
    unknown_key.records[1].partition_key_index = 77;
    for (data, reason) in [
        (flipped, "the aggregate's checksum does not match its bytes"),
        (good[..15].to_vec(), "the aggregate has only 15 bytes"),
        (
            unknown_key.to_bytes().to_vec(),
            "user record 1 of the aggregate names partition key 77, of 10",
        ),
    ] {
        let world = World::new();
        let consumer = world.planned(|_| Outcome::Done).build().unwrap();
        let (_, report) = world.deliver(&consumer, &record(&data)).await;
        assert!(report.is_complete());
        assert_eq!(world.records.letters()[0].detail, reason);
    }
}

#[tokio::test]
async fn one_bad_user_record_does_not_take_its_aggregate_along() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).build().unwrap();
    let mut aggregate = aggregate(3);
    aggregate.records[1].data = "{".into();
    let (_, report) = world.deliver(&consumer, &record(&aggregate.to_bytes())).await;
    assert_eq!((report.finished, report.dead[&Reason::Unusable]), (3, 1));
    assert_eq!(world.calls.of("index").len(), 2);
    let letter = &world.records.letters()[0];
    assert_eq!((letter.sub, letter.payload().unwrap()), (1, "{".into()));
}

#[tokio::test]
async fn a_dead_user_record_can_be_redriven_by_itself() {
    let world = World::new();
    let plan =
        |message: &Message| if is(message, 7) { Outcome::reject("bad") } else { Outcome::Done };
    let consumer = world.planned(plan).build().unwrap();
    world.deliver(&consumer, &record(&aggregate(30).to_bytes())).await;
    let letter = &world.dead()[0];
    assert_eq!(letter.payload().unwrap(), r#"{"n":7}"#);
    let raw = letter.raw.as_ref().unwrap().bytes().unwrap();
    assert!(raw.len() < 1_000, "the letter carries one user record, not the aggregate");
    world.calls.take();
    let mended = world.planned(|_| Outcome::Done).order(Order::None).build().unwrap();
    let event = format!(r#"{{"Records":[{}]}}"#, std::str::from_utf8(&raw).unwrap());
    world.deliver(&mended, &event).await;
    assert_eq!(world.calls.of("index"), ["7"]);
}

#[tokio::test]
async fn user_records_of_another_shard_are_left_to_it_when_its_range_is_known() {
    let world = World::new();
    let half = u128::MAX / 2;
    let calls = world.calls.clone();
    let consumer = |range| {
        let handler = calls.handler("index", |_| Outcome::Done);
        let builder = World::new().builder().one("index", handler);
        builder.hash_range(events::SHARD, range).order(Order::None).build().unwrap()
    };
    let lower = consumer(HashRange { first: 0, last: half });
    let upper = consumer(HashRange { first: half + 1, last: u128::MAX });
    let event = record(&aggregate(30).to_bytes());
    let (_, below) = world.deliver(&lower, &event).await;
    let (_, above) = world.deliver(&upper, &event).await;
    assert_eq!(below.messages + above.messages, 30, "each in one of them");
    assert_eq!((below.elsewhere, above.elsewhere), (above.messages, below.messages));
    assert!(below.messages > 0 && above.messages > 0);
}

/// The processor's time that this thread took so far, which what else runs on the machine does not change; where the system does
/// not tell it, the time of the clock.
fn spent(environment: &Environment) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(
        || environment.clock.monotonic().since(Monotonic::from_origin(Duration::ZERO)),
        Duration::from_nanos,
    )
}

/// Eight times the user records take eight to ten times the processor's time; with ten nanoseconds for each pair of them, it would be
/// 27 times. The best of three rounds counts.
#[tokio::test]
async fn sixteen_thousand_user_records_take_linear_time() {
    let system = Environment::system();
    let mut best = [Duration::MAX; 2];
    for _ in 0..3 {
        for (count, best) in [2_000, 16_000].into_iter().zip(&mut best) {
            let world = World::new();
            // One fails, so that all come again and are saved.
            let plan = |message: &Message| {
                if is(message, 0) { Outcome::retry("no") } else { Outcome::Done }
            };
            let consumer = world.planned(plan).build().unwrap();
            let event = record(&aggregate(count).to_bytes());
            let before = spent(&system);
            let (_, report) = world.deliver_at_once(&consumer, &event).await;
            *best = (*best).min(spent(&system) - before);
            assert_eq!(report.messages, count as usize);
        }
    }
    let [small, large] = best;
    assert!(large < small * 16, "{small:?} for 2,000, {large:?} for 16,000");
}

#[tokio::test]
async fn two_thousand_user_records_take_linear_work() {
    // Counted, not timed: reads and writes of the store, and calls, for the same work in one aggregate.
    let mut costs = Vec::new();
    for count in [500, 1_000, 2_000] {
        let world = World::new();
        let plan =
            |message: &Message| if is(message, 0) { Outcome::retry("no") } else { Outcome::Done };
        let consumer = world.planned(plan).order(Order::None).build().unwrap();
        let event = record(&aggregate(count).to_bytes());
        let (_, report) = world.deliver_at_once(&consumer, &event).await;
        assert_eq!(report.saved, count as usize, "a row for each, since all come again");
        let (_, report) = world.deliver_at_once(&consumer, &event).await;
        assert_eq!((report.finished_before, report.saved), (count as usize - 1, 1));
        let used = world.meter.take().total();
        assert_eq!(world.calls.of("index").len(), count as usize + 1);
        costs.push((used.bytes, used.requests));
    }
    let [small, middle, large] = costs[..] else { panic!("three runs") };
    assert!(middle.0 < small.0 * 21 / 10 && large.0 < middle.0 * 21 / 10, "{costs:?}");
    assert!(large.1 < small.1 + 10, "requests hardly grow: {costs:?}");
}
