//! Which messages wait for which.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_consumer::{Message, Order, Outcome, Reason};
use serde_json::{Value, json};

use crate::support::events::{self, event, kinesis, kinesis_at, one_key, stream};
use crate::support::{World, is, name};

#[tokio::test]
async fn shard_order_is_by_sequence_number_as_a_big_integer() {
    let world = World::new();
    let consumer = world.planned(|_| Outcome::Done).order(Order::PerShard).build().unwrap();
    let long = |last: u32| format!("4959033827149025660855969253836157109592157598913658{last:04}");
    let sequences = [long(10), long(9), "10".to_owned(), "9".to_owned()];
    let records = sequences.iter().zip(1_u32..).map(|(sequence, n)| {
        let data = json!({"n": n}).to_string();
        kinesis_at(events::STREAM, events::SHARD, sequence, &format!("key-{n}"), data.as_bytes())
    });
    world.deliver(&consumer, &event(records.collect())).await;
    assert_eq!(world.calls.of("index"), ["4", "3", "2", "1"]);
}

#[tokio::test]
async fn per_key_is_strictly_in_order_and_keys_are_concurrent_up_to_the_limit() {
    let world = World::new();
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak, calls) = (Arc::clone(&running), Arc::clone(&most), world.calls.clone());
    let clock = Arc::clone(&world.environment.clock);
    let handler = move |message: Message| {
        let (now, peak, clock) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&clock));
        calls.note("index", &message);
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
            clock.sleep(Duration::from_millis(10 + message.payload().len() as u64)).await;
            now.fetch_sub(1, Ordering::AcqRel);
        }
    };
    let consumer = world.builder().one("index", handler).concurrency(3).build().unwrap();
    let value = |n: u64| json!({"n": n, "key": n % 5});
    let records = (1..=40).map(|n| kinesis(n, &format!("key-{}", n % 5), &value(n)));
    world.deliver(&consumer, &event(records.collect())).await;
    assert_eq!(most.load(Ordering::Acquire), 3);
    let mut keys: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for n in world.calls.of("index") {
        let n: u64 = n.parse().unwrap();
        keys.entry(n % 5).or_default().push(n);
    }
    assert_eq!(keys.len(), 5);
    assert!(keys.values().all(|order| order.len() == 8 && order.is_sorted()), "{keys:?}");
}

#[tokio::test]
async fn per_key_goes_by_business_key_and_sequence() {
    let world = World::new();
    let consumer = world
        .planned(|_| Outcome::Done)
        .keys(["customer"])
        .sequence(["version"])
        .concurrency(1)
        .build()
        .unwrap();
    // Partition keys and the stream's order say otherwise.
    let values = [("a", json!("10")), ("b", json!(2)), ("a", json!(9)), ("b", json!("1"))];
    let records = values.iter().zip(1..).map(|((customer, version), n)| {
        kinesis(n, &format!("p{n}"), &json!({"n": n, "customer": customer, "version": version}))
    });
    world.deliver(&consumer, &event(records.collect())).await;
    assert_eq!(world.calls.of("index"), ["3", "1", "4", "2"]);
}

#[tokio::test]
async fn keys_with_separators_unicode_and_other_types_never_collide() {
    let pairs: [(Value, Value); 8] = [
        (json!("a|b"), json!("c")),
        (json!("a"), json!("b|c")),
        (json!("1"), json!("x")),
        (json!(1), json!("x")),
        (json!("é"), json!("x")),
        (json!("e\u{301}"), json!("x")),
        (json!("a\",\"b"), json!("c")),
        (json!(["a", "b"]), json!("c")),
    ];
    let world = World::new();
    // Every first message of a key fails: if two keys were one, the second would not be tried.
    let consumer = world.planned(|_| Outcome::retry("no")).keys(["k1", "k2"]).build().unwrap();
    let records = pairs.iter().zip(1..);
    let records =
        records.map(|((k1, k2), n)| kinesis(n, "same", &json!({"n": n, "k1": k1, "k2": k2})));
    world.deliver(&consumer, &event(records.collect())).await;
    assert_eq!(world.calls.of("index").len(), pairs.len());
}

#[tokio::test]
async fn a_failing_message_stops_only_its_chain() {
    let world = World::new();
    let plan =
        |message: &Message| if is(message, 2) { Outcome::retry("no") } else { Outcome::Done };
    let consumer = world.planned(plan).concurrency(1).build().unwrap();
    let record = |(n, key): (u64, &str)| kinesis(n, key, &json!({"n": n}));
    let records = [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "b")];
    let (_, report) =
        world.deliver(&consumer, &event(records.into_iter().map(record).collect())).await;
    assert_eq!(world.calls.of("index"), ["1", "2", "4", "5"]);
    assert_eq!((report.unfinished, report.unstarted), (2, 1));
    // What stood behind it is not counted as tried, and what ran is not run again.
    world.calls.take();
    let rest = [(2, "a"), (3, "a"), (4, "b"), (5, "b")];
    world.deliver(&consumer, &event(rest.into_iter().map(record).collect())).await;
    assert_eq!(world.calls.of("index"), ["2"]);
}

#[tokio::test]
async fn a_rejected_or_exhausted_one_releases_its_chain_in_the_same_run() {
    let world = World::new();
    let plan = |message: &Message| match name(message).as_str() {
        "1" => Outcome::reject("bad"),
        "2" => Outcome::retry("no"),
        _ => Outcome::Done,
    };
    let consumer = world.planned(plan).attempts(2).build().unwrap();
    assert_eq!(world.failures(&consumer, &one_key(1..=3)).await, ["2"]);
    assert_eq!(world.calls.of("index"), ["1", "2"]);
    assert!(world.failures(&consumer, &one_key(2..=3)).await.is_empty());
    assert_eq!(world.calls.of("index"), ["1", "2", "2", "3"]);
    let reasons: Vec<_> = world.dead().iter().map(|letter| letter.reason).collect();
    assert_eq!(reasons, [Reason::Rejected, Reason::Exhausted]);
}

#[tokio::test]
async fn without_an_order_nothing_waits() {
    let world = World::new();
    let plan =
        |message: &Message| if is(message, 1) { Outcome::retry("no") } else { Outcome::Done };
    let consumer = world.planned(plan).order(Order::None).build().unwrap();
    world.deliver(&consumer, &one_key(1..=3)).await;
    assert_eq!(world.calls.of("index").len(), 3);
}

#[tokio::test]
async fn process_all_gets_its_messages_in_order_and_none_that_waits() {
    let world = World::new();
    let plan =
        |message: &Message| if is(message, 2) { Outcome::retry("no") } else { Outcome::Done };
    let consumer = world
        .planned(plan)
        .order(Order::PerShard)
        .all("bulk", world.calls.batches("bulk", |all| vec![Outcome::Done; all.len()]))
        .build()
        .unwrap();
    world.deliver(&consumer, &stream([3, 2, 1])).await;
    // Two is its own task's business; three has not had its turn.
    assert_eq!(world.calls.of("bulk"), ["1", "2"]);
}
