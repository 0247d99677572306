//! Group commit: what it joins, what order it keeps, what it does when the store fails or is slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use millpond_lanes::{
    Given, Ground, Lane as _, LaneConfig, Message, Once, Segment, SequencedLane, UnorderedLane,
};
use millpond_store::{
    Attributes, Environment, Fault, FaultPlan, Faulty, Key, Latency, MemoryStore, Query, Slow,
    Store, StoreError, Timestamp, VirtualClock,
};
use millpond_testing::lane_suite::{message, segments};

fn environment() -> (Environment, VirtualClock) {
    let clock = VirtualClock::automatic(Timestamp::from_millis(1_700_000_000_000));
    (Environment::simulated(clock.clone(), 4), clock)
}

#[tokio::test]
async fn what_arrives_during_an_append_becomes_the_next_segment() {
    let (environment, _) = environment();
    let latency = Latency { base: Duration::from_millis(5), jitter: Duration::ZERO };
    let slow = Slow::new(MemoryStore::new(&environment), &Environment::system(), latency);
    let ground = Ground::new(Arc::new(slow), &environment);
    let lane = UnorderedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    let sent = join_all((0..100).map(|n| lane.append(vec![message(n, 10)]))).await;
    assert!(sent.into_iter().all(|outcomes| outcomes.unwrap()[0].is_ok()));
    let counts: Vec<_> = segments(&lane).await.iter().map(|found| found.count).collect();
    assert_eq!(counts.iter().sum::<usize>(), 100);
    assert!(counts.len() <= 3, "segments of {counts:?}");
    assert!(counts.iter().all(|count| *count <= 64), "segments of {counts:?}");

    let alone = UnorderedLane::open(&ground, "alone", LaneConfig::QUEUE).unwrap();
    for n in 0..3 {
        alone.append(vec![message(n, 10)]).await.unwrap().remove(0).unwrap();
    }
    assert_eq!(segments(&alone).await.len(), 3, "nobody waits for company");
}

#[tokio::test]
async fn what_is_sent_one_after_another_stays_in_that_order() {
    // Time stands still, and then goes back.
    let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
    let environment = Environment::simulated(clock.clone(), 4);
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    let lane = UnorderedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    let sent: Vec<Message> = (0..60).map(|n| message(n, 10)).collect();
    for (n, message) in sent.iter().enumerate() {
        if n == 30 {
            clock.set_wall(Timestamp::from_millis(1_600_000_000_000));
        }
        lane.append(vec![message.clone()]).await.unwrap().remove(0).unwrap();
    }
    let mut received = Vec::new();
    for segment in segments(&lane).await {
        received.extend(lane.load(&segment).await.unwrap());
    }
    assert_eq!(received, sent);
}

#[tokio::test]
async fn segments_keep_their_bounds_and_their_order() {
    let (environment, _) = environment();
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    let lane = SequencedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    // Too many for one segment by number, then by bytes, and one larger than a segment should be.
    let sizes = std::iter::repeat_n(10, 150).chain([100_000; 5]).chain([600_000]).chain([10; 3]);
    let sent: Vec<Message> = (0..).zip(sizes).map(|(n, size)| message(n, size)).collect();
    let numbers = lane.append(sent.clone()).await.unwrap();
    assert!(numbers.into_iter().map(Result::unwrap).eq(0..159));
    let mut received = Vec::new();
    for segment in segments(&lane).await {
        let messages = lane.load(&segment).await.unwrap();
        let bytes: usize = messages.iter().map(Message::size).sum();
        assert!(messages.len() <= 64 && (bytes <= 256 * 1_024 || messages.len() == 1));
        received.extend(messages);
    }
    assert_eq!(received, sent);
    assert!(lane.append(Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn behind_a_failure_nothing_of_the_same_call_is_appended() {
    let (environment, _) = environment();
    let faulty = Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let ground = Ground::new(faulty.clone(), &environment);
    let lane = SequencedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    lane.append(vec![message(0, 10)]).await.unwrap();
    // The call has three segments; all attempts at the second one fail, and then the store is well again.
    let storm: BTreeMap<u64, Fault> = (1..5).map(|request| (request, Fault::Definite)).collect();
    faulty.follow(FaultPlan::Script(storm));
    let outcomes = lane.append((1..=150).map(|n| message(n, 10)).collect()).await.unwrap();
    let (sent, failed) = outcomes.split_at(64);
    assert!(sent.iter().all(Result::is_ok));
    assert!(failed.iter().all(|outcome| matches!(outcome, Err(StoreError::Unavailable { .. }))));
    assert!(outcomes[149].as_ref().unwrap_err().to_string().contains("not tried"));
    let next = lane.append(vec![message(151, 10)]).await.unwrap().remove(0).unwrap();
    assert_eq!(next, 65, "something behind the failure was appended");
}

#[tokio::test]
async fn an_append_that_took_too_long_is_made_anew() {
    let (environment, _) = environment();
    let faulty = Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let ground = Ground::new(faulty.clone(), &environment);
    let open = || SequencedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    let (slow, other) = (open(), open());
    slow.append(vec![message(0, 10)]).await.unwrap();

    // Requests 1 and 2 look at the tail and write; the write takes effect twenty minutes late.
    faulty.follow(FaultPlan::once(0, Fault::Delay(Duration::from_secs(20 * 60))));
    let number = slow.append(vec![message(1, 10)]).await.unwrap().remove(0).unwrap();
    assert_eq!(number, 1);
    assert!(faulty.requests() > 2, "the late row was not taken back");
    let heads: Vec<_> = segments(&other).await.iter().map(Segment::first).collect();
    assert_eq!(heads, [Some(0), Some(1)]);
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_makes_a_writer_look_again() {
    let (environment, clock) = environment();
    let faulty = Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let ground = Ground::new(faulty.clone(), &environment);
    let open = || SequencedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    let (writer, other) = (open(), open());
    writer.append(vec![message(0, 10)]).await.unwrap();
    // Another writer appends two, a consumer finishes them; then the clock jumps past the end of their husks.
    for n in 1..3 {
        other.append(vec![message(n, 10)]).await.unwrap();
    }
    for segment in segments(&other).await {
        other.finish(&segment).await.unwrap();
    }
    clock.set_wall(environment.now().plus(Duration::from_secs(3 * 3_600)));
    let number = writer.append(vec![message(3, 10)]).await.unwrap().remove(0).unwrap();
    assert_eq!(number, 3, "a number was given twice");
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_nothing_with_it() {
    let (environment, _) = environment();
    let latency = Latency { base: Duration::from_millis(2), jitter: Duration::ZERO };
    let store = MemoryStore::new(&environment);
    let slow = Slow::new(store.clone(), &Environment::system(), latency);
    let lane =
        UnorderedLane::open(&Ground::new(Arc::new(slow), &environment), "lane", LaneConfig::QUEUE)
            .unwrap();
    let lane = Arc::new(lane);
    for n in 0..20 {
        let gone = tokio::spawn({
            let lane = lane.clone();
            async move { lane.append(vec![message(n, 10)]).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        let stays = lane.append(vec![message(100 + n, 10)]).await.unwrap();
        assert!(stays[0].is_ok(), "a caller waits for the writer that another one started");
    }
    let partition = millpond_store::Partition::new("lane").unwrap();
    assert!(!store.query(Query::new(partition)).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_marked_append_that_took_too_long_is_not_taken_for_a_repeat() {
    let (environment, _) = environment();
    let faulty = Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let ground = Ground::new(faulty.clone(), &environment);
    let lane = SequencedLane::open(&ground, "lane", LaneConfig::QUEUE).unwrap();
    lane.append(vec![message(0, 10)]).await.unwrap();
    let once = Once {
        key: Key::new("marks", b"1".to_vec()).unwrap(),
        kept: Duration::from_secs(5 * 60 * 60),
        note: Attributes::new(),
    };
    faulty.follow(FaultPlan::once(0, Fault::Delay(Duration::from_secs(20 * 60))));
    let marked = Message { once: Some(once), ..message(1, 10) };
    let given = lane.append_once(vec![marked.clone()]).await.unwrap().remove(0).unwrap();
    assert_eq!(given, Given::New(1), "its own mark was in its way");
    assert_eq!(segments(&lane).await.len(), 2, "the message is lost");
    let again = lane.append_once(vec![marked]).await.unwrap().remove(0).unwrap();
    assert!(matches!(again, Given::Known(_)), "{again:?}");
}
