//! What is remembered between deliveries, and what it survives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use millpond_consumer::source::Scope;
use millpond_consumer::state::legacy::LegacyBatch;
use millpond_consumer::state::{
    Address, Change, MessageState, State, StateError, Status, TaskState,
};
use millpond_consumer::{
    JsonLines, Message, Order, Outcome, Position, RecordKey, Sequence, SourceKind,
};
use serde_json::json;

use super::events::{self, event, kinesis_at, stream};
use super::world::{World, is};
use crate::subject::Subject;

/// Messages that fail.
pub fn fails(bad: &'static [u64]) -> impl Fn(&Message) -> Outcome + Send + Sync + Clone + 'static {
    move |message| {
        if bad.iter().any(|n| is(message, *n)) { Outcome::retry("no") } else { Outcome::Done }
    }
}

/// Where the state of the consumer of these tests is.
pub fn address() -> Address {
    let (arn, shard) = (events::STREAM.to_owned(), events::SHARD.to_owned());
    let scope = Scope { kind: SourceKind::Kinesis, arn, shard };
    Address { consumer: "orders".into(), scope: Arc::new(scope) }
}

fn position(n: u64) -> Position {
    Position::of(RecordKey::Sequence(Sequence::from(n), None))
}

/// A redeploy with another role extractor or version keeps finished work.
pub async fn a_redeploy_with_another_role_extractor_or_version_keeps_finished_work(
    subject: &Subject,
) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1])).build().unwrap();
    assert_eq!(world.failures(&consumer, &stream(1..=3)).await, ["1"]);
    world.calls.take();
    let role = stream(1..=3).replace("role/lambda", "role/another");
    assert_eq!(world.failures(&consumer, &role).await, ["1"]);
    let other = world.planned(fails(&[1])).extractor(JsonLines).attempts(5).concurrency(2).build();
    assert_eq!(world.failures(&other.unwrap(), &stream(1..=3)).await, ["1"]);
    assert_eq!(world.calls.of("index"), ["1", "1"]);
}

/// Bisected recut and parallel batches keep progress.
pub async fn bisected_recut_and_parallel_batches_keep_progress(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1, 5])).build().unwrap();
    assert_eq!(world.failures(&consumer, &stream(1..=8)).await, ["1"]);
    world.calls.take();
    assert_eq!(world.failures(&consumer, &stream(1..=4)).await, ["1"]);
    assert_eq!(world.failures(&consumer, &stream(5..=8)).await, ["5"]);
    assert_eq!(world.failures(&consumer, &stream(1..=12)).await, ["1"]);
    // Batches of one shard that interleave, side by side.
    let (odd, even) = (stream([1, 3, 5, 7, 9]), stream([2, 4, 6, 8, 10]));
    let both = async {
        let deadline = world.environment.now().plus(super::world::INVOCATION);
        tokio::join!(
            consumer.handle(odd.as_bytes(), deadline),
            consumer.handle(even.as_bytes(), deadline)
        )
    };
    let (odd, even) = crate::in_virtual_time(&world.clock, &world.watched, both).await;
    assert_eq!(super::world::items(&odd.unwrap().0), ["1"]);
    assert!(super::world::items(&even.unwrap().0).is_empty());
    let counts = world.calls.counts("index");
    let once = |n: u64| counts.get(&n.to_string()).copied();
    assert!((2..=8).filter(|n| *n != 5).all(|n| once(n).is_none()), "{counts:?}");
    assert!((9..=12).all(|n| once(n) == Some(1)), "{counts:?}");
    assert_eq!((once(1), once(5)), (Some(3), Some(3)));
}

/// A stale writer cannot overwrite newer state.
pub async fn a_stale_writer_cannot_overwrite_newer_state(subject: &Subject) {
    let world = World::of(subject);
    let state = world.state();
    let task = |status, attempts| {
        let task = TaskState { status, attempts, ..TaskState::default() };
        MessageState {
            tasks: BTreeMap::from([("index".to_owned(), task)]),
            ..MessageState::default()
        }
    };
    let change = |base, now| vec![Change { position: position(1), base, now }];
    let first =
        state.save(&address(), change(None, task(Status::Pending, 1))).await.remove(0).unwrap();
    // Two deliveries began with the same state. One finishes; the other, slower one failed.
    state
        .save(&address(), change(Some(first.clone()), task(Status::Done, 1)))
        .await
        .remove(0)
        .unwrap();
    let late = state.save(&address(), change(Some(first.clone()), task(Status::Pending, 2))).await;
    assert_eq!(late[0].as_ref().unwrap().state.tasks["index"].status, Status::Done);
    let stored = state.load(&address(), &[position(1)]).await.unwrap().remove(0).unwrap();
    assert_eq!(stored.state.tasks["index"].status, Status::Done);
    // Two that know of nothing: both attempts count.
    let change = |now| vec![Change { position: position(2), base: None, now }];
    for _ in 0..2 {
        state.save(&address(), change(task(Status::Pending, 1))).await.remove(0).unwrap();
    }
    let stored = state.load(&address(), &[position(2)]).await.unwrap().remove(0).unwrap();
    assert_eq!(stored.state.tasks["index"].attempts, 2);
}

/// State expires.
pub async fn state_expires(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1])).attempts(2).build().unwrap();
    world.deliver(&consumer, &stream(1..=2)).await;
    assert_eq!(world.rows(&address()).await.len(), 2);
    world.clock.advance(Duration::from_secs(14 * 24 * 60 * 60 + 1));
    assert!(world.rows(&address()).await.is_empty());
    assert_eq!(world.failures(&consumer, &stream(1..=2)).await, ["1"], "as if for the first time");
}

/// The same stream name in two accounts is separate.
pub async fn the_same_stream_name_in_two_accounts_is_separate(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1])).build().unwrap();
    let here = stream(1..=2);
    let there = here.replace("111122223333", "444455556666");
    for event in [&here, &there] {
        assert_eq!(world.failures(&consumer, event).await, ["1"]);
    }
    assert_eq!(world.calls.counts("index")["2"], 2, "one in each account");
    let other = millpond_consumer::Consumer::builder("other")
        .environment(&world.environment)
        .state(world.state())
        .dead_letters(world.messages.clone())
        .one("index", world.calls.handler("index", |_| Outcome::Done))
        .build()
        .unwrap();
    world.calls.take();
    assert!(world.failures(&other, &here).await.is_empty());
    assert_eq!(world.calls.of("index").len(), 2, "and for each consumer");
}

/// Shards and tables are separate.
pub async fn shards_and_tables_are_separate(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1])).build().unwrap();
    let of_shard = |shard: &str| {
        let record = |n: u64| {
            kinesis_at(
                events::STREAM,
                shard,
                &n.to_string(),
                "k",
                json!({"n": n}).to_string().as_bytes(),
            )
        };
        event((1..=2).map(record).collect())
    };
    for shard in ["shardId-1", "shardId-2"] {
        world.deliver(&consumer, &of_shard(shard)).await;
    }
    assert_eq!(world.calls.counts("index")["1"], 2);
    let sources = world.state().sources("orders").await.unwrap();
    let shards: Vec<_> = sources.iter().map(|source| source.shard.as_str()).collect();
    assert_eq!(shards, ["shardId-1", "shardId-2"]);
}

/// Inspect shows what is unfinished and why.
pub async fn inspect_shows_what_is_unfinished_and_why(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[2])).order(Order::None).build().unwrap();
    world.deliver(&consumer, &stream(1..=3)).await;
    world.deliver(&consumer, &stream(2..=3)).await;
    let rows = world.rows(&address()).await;
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            let task = &row.state.tasks["index"];
            (row.position.to_string(), task.status, task.attempts, task.error.clone())
        })
        .collect();
    let expected = [
        ("2".to_owned(), Status::Pending, 2, Some("no".to_owned())),
        ("3".to_owned(), Status::Done, 0, None),
    ];
    assert_eq!(shown, expected);
    assert!(rows[0].expiry.is_some());
}

/// Damages the row of the first message.
async fn damage(world: &World) {
    let partition = format!("consumer/orders/{}/{}", events::SHARD, events::STREAM);
    let partition = millpond_store::Partition::new(partition).unwrap();
    let range = millpond_store::SortRange::prefix(millpond_store::SortKey::new(&b"s"[..]).unwrap());
    let query = millpond_store::Query::new(partition).range(range);
    let item = world.store.query(query).await.unwrap().items.remove(0);
    let broken = item.attributes.with("tasks", "{");
    let write = millpond_store::Write::put(
        item.key,
        broken,
        millpond_store::Expect::Any,
        world.environment.version(),
    );
    world.store.write(write).await.unwrap();
}

/// Damaged state is reported and nothing runs.
pub async fn damaged_state_is_reported_and_nothing_runs(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1])).build().unwrap();
    world.deliver(&consumer, &stream([1])).await;
    damage(&world).await;
    world.calls.take();
    let (response, report) = world.deliver(&consumer, &stream([1])).await;
    assert_eq!(super::world::items(&response), ["1"]);
    assert!(report.problems[0].contains("its tasks are not JSON"), "{:?}", report.problems);
    assert!(world.calls.all().is_empty());
}

/// A damaged row hides no other and can be forgotten.
pub async fn a_damaged_row_hides_no_other_and_can_be_forgotten(subject: &Subject) {
    let world = World::of(subject);
    let consumer = world.planned(fails(&[1, 2])).order(Order::None).build().unwrap();
    world.deliver(&consumer, &stream(1..=2)).await;
    damage(&world).await;
    let state = world.state();
    let rows = state.rows(&address()).await.unwrap();
    assert_eq!(rows[1].as_ref().unwrap().position, position(2));
    let Err(StateError::Unreadable { position, .. }) = &rows[0] else { panic!("{rows:?}") };
    assert_eq!(position, "1", "it is called as the others are");
    assert_eq!(state.forget(&address(), "3").await.unwrap(), 0);
    assert_eq!(state.forget(&address(), "1").await.unwrap(), 1);
    assert_eq!(state.rows(&address()).await.unwrap().len(), 1);
    world.calls.take();
    world.deliver(&consumer, &stream(1..=2)).await;
    assert_eq!(world.calls.of("index"), ["1", "2"], "all runs again");
    let rows = state.rows(&address()).await.unwrap();
    let attempts = |at: usize| rows[at].as_ref().unwrap().state.tasks["index"].attempts;
    assert_eq!((attempts(0), attempts(1)), (1, 2), "what was forgotten is as if new");
}

/// State as the older libraries stored it: one message done by both tasks, one half done, one discarded.
pub const LEGACY: &str = r#"{
  "streamConsumerId": "K|orders_DEV|sampleFunction:dev",
  "shardOrEventID": "S|shardId-000000000001",
  "messageStates": [
    {
      "md5s": {"msg": "0d8a59433ff371fe483f739080024e01"},
      "eventID": "shardId-000000000001:1", "eventSeqNo": "1", "id": "id1:7", "key": "k1:ABC",
      "ones": {"index": {"name": "index", "state": {"type": "Completed"}, "attempts": 1, "total": 1}},
      "alls": {"bulk": {"name": "bulk", "state": {"type": "Completed", "name": "Succeeded"}, "attempts": 1}}
    },
    {
      "eventID": "shardId-000000000001:2", "eventSeqNo": "2",
      "ones": {"index": {
        "name": "index", "state": {"type": "Failed", "error": "Error: no"}, "attempts": 2, "total": 3,
        "subTasks": [
          {"name": "charge", "state": {"type": "Completed"}, "attempts": 1},
          {"name": "ship", "state": {"type": "TimedOut"}, "attempts": 1}
        ]
      }},
      "alls": {"bulk": {"name": "bulk", "state": {"type": "Unstarted"}, "attempts": 0}}
    },
    {"md5s": {"msg": "only a digest"}, "ones": {}}
  ],
  "rejectedMessageStates": [
    {
      "eventID": "shardId-000000000001:3", "eventSeqNo": "3",
      "ones": {"index": {"name": "index", "state": {"type": "Rejected", "reason": "bad"}, "attempts": 1}},
      "discards": {"discardRejectedMessage": {"name": "d", "state": {"type": "Completed"}, "attempts": 1}}
    }
  ],
  "unusableRecordStates": []
}"#;

/// State of the older libraries is taken over.
pub async fn state_of_the_older_libraries_is_taken_over(subject: &Subject) {
    let world = World::of(subject);
    let legacy = LegacyBatch::parse(LEGACY.as_bytes()).unwrap();
    assert_eq!(
        (legacy.stream.as_str(), legacy.consumer.as_str()),
        ("orders_DEV", "sampleFunction:dev")
    );
    assert_eq!((legacy.messages.len(), legacy.unnamed), (3, 1));
    assert_eq!(legacy.import(&world.state(), "orders", events::STREAM).await.unwrap(), 3);
    // As one does after an error: the attempts are those that were made, not twice as many.
    assert_eq!(legacy.import(&world.state(), "orders", events::STREAM).await.unwrap(), 0);
    let consumer = world
        .planned(|message| if is(message, 2) { Outcome::retry("no") } else { Outcome::Done })
        .all("bulk", world.calls.batches("bulk", |all| vec![Outcome::Done; all.len()]))
        .attempts(3)
        .build()
        .unwrap();
    let (_, report) = world.deliver(&consumer, &stream(1..=3)).await;
    assert!(report.is_complete(), "{report:?}");
    let pair = |task: &str, n: &str| (task.to_owned(), n.to_owned());
    assert_eq!(world.calls.all(), [pair("index", "2"), pair("bulk", "2")]);
    let letters = world.dead();
    assert_eq!(letters.len(), 1, "three was with the dead letters before");
    assert_eq!(
        (letters[0].tasks["index"].attempts, letters[0].tasks["index"].steps.clone()),
        (3, vec!["charge".to_owned()])
    );
}
