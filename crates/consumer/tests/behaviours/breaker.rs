//! The breaker: tripped by a wrong set-up, never by a handler.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use millpond_consumer::source::Scope;
use millpond_consumer::{Breaker, BreakerError, Builder, Consumer, Message, Outcome, StoreState};
use serde_json::json;

use crate::support::events::{self, dynamodb, event, queue, stream};
use crate::support::fakes::{Mood, MoodySink, MoodyStore};
use crate::support::{World, items};

#[derive(Debug, Clone, Default)]
struct Recorder(Arc<Mutex<Vec<(String, String)>>>);

#[async_trait]
impl Breaker for Recorder {
    async fn trip(&self, source: &Scope, reason: &str) -> Result<String, BreakerError> {
        self.0.lock().unwrap().push((source.arn.clone(), reason.to_owned()));
        Ok("mapping-1".into())
    }
}

fn consumer(
    world: &World,
    store: &Arc<MoodyStore>,
    sink: &MoodySink,
    breaker: &Recorder,
) -> Builder {
    Consumer::builder("orders")
        .environment(&world.environment)
        .state(StoreState::new(Arc::clone(store) as _, &world.environment))
        .dead_letters(sink.clone())
        .breaker(breaker.clone())
}

#[tokio::test]
async fn a_missing_table_or_sink_trips_it_with_the_events_full_arn() {
    let world = World::new();
    let (store, sink) = (MoodyStore::new(Arc::clone(&world.store)), MoodySink::default());
    let breaker = Recorder::default();
    let consumer = consumer(&world, &store, &sink, &breaker)
        .one("index", |_: Message| async { Outcome::reject("bad") })
        .build()
        .unwrap();
    store.mood.set(Mood::Missing);
    let table = event(vec![dynamodb("1", "INSERT", json!({"id": {"N": "1"}}), json!({}))]);
    for event in [stream([1]), table] {
        let (response, report) = world.deliver(&consumer, &event).await;
        assert_eq!(items(&response), ["1"], "nothing is lost");
        assert_eq!(report.tripped.as_deref(), Some("mapping-1"));
        assert!(report.metrics().contains(&("consumer_tripped", 1)), "what an alarm is raised by");
    }
    store.mood.set(Mood::Works);
    sink.mood.set(Mood::Missing);
    world.deliver(&consumer, &queue([(1, 1)])).await;
    let tripped = breaker.0.lock().unwrap().clone();
    let arns: Vec<_> = tripped.iter().map(|(arn, _)| arn.as_str()).collect();
    assert_eq!(arns, [events::STREAM, events::TABLE, events::QUEUE]);
    assert_eq!(tripped[0].1, "the state cannot be reached: there is no table; create it");
    assert_eq!(tripped[2].1, "there is no sink; create it");
}

#[tokio::test]
async fn a_user_bug_and_a_passing_failure_never_trip_it() {
    let world = World::new();
    let (store, sink) = (MoodyStore::new(Arc::clone(&world.store)), MoodySink::default());
    let breaker = Recorder::default();
    let handler = |message: Message| async move {
        assert!(!crate::support::is(&message, 1), "a bug");
        if crate::support::is(&message, 2) {
            std::future::pending::<()>().await;
        }
        Err::<(), _>("another")
    };
    let consumer = consumer(&world, &store, &sink, &breaker)
        .one("index", handler)
        .attempts(1)
        .before(|_| async { Err::<(), _>("a bug in a hook") })
        .build()
        .unwrap();
    world.deliver(&consumer, &stream(1..=3)).await;
    store.mood.set(Mood::Fails);
    world.deliver(&consumer, &stream(1..=3)).await;
    store.mood.set(Mood::Works);
    sink.mood.set(Mood::Fails);
    world.deliver(&consumer, &event(vec![json!({})])).await;
    assert!(breaker.0.lock().unwrap().is_empty());
}
