//! Processes that are killed or frozen in the middle of a handler.

use std::time::Duration;

use crate::support::engine::Engine;
use crate::support::events::{kinesis, sequence};
use crate::support::runtime_api::RuntimeApi;
use crate::support::until;
use crate::trial::{Notes, fine, told};

const TIME: Duration = Duration::from_secs(60);

/// Deliveries after which a record that kills its process must be out of the way: one to notice, one for each attempt,
/// and one that ends well.
const DELIVERIES_MAX: usize = 6;

#[tokio::test]
async fn a_record_that_gets_its_process_killed_is_isolated_and_dead_lettered() {
    let (engine, notes) = (Engine::start().await, Notes::new());
    let event = kinesis(1, &[fine(1), told(2, "hang"), fine(3)]);
    let mut answer = None;
    for _ in 0..DELIVERIES_MAX {
        let api = RuntimeApi::start().await;
        let mut function = notes
            .start("trial::consumer_function")
            .store(&engine.endpoint())
            .set("MILLPOND_ATTEMPTS", "2")
            .start(&api);
        let hangs = notes.count(2);
        let id = api.send(&event, TIME);
        // Killed as soon as it is in the middle of the handler, and not if it never comes to that.
        until("the handler hangs, or the batch is answered", async || {
            notes.count(2) > hangs || api.peek(&id).is_some()
        })
        .await;
        if let Some(ended) = api.peek(&id) {
            answer = Some(ended);
            break;
        }
        function.kill();
    }
    let answer = answer.expect("the batch never ended");
    assert_eq!(answer.failures(), Vec::<String>::new());
    let letters = engine.letters().await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!(letters[0].reason.name(), "exhausted");
    assert_eq!(letters[0].record.as_deref(), Some(sequence(2).as_str()));
    assert_eq!(letters[0].tasks["obey"].attempts, 2);
    assert!(notes.count(1) >= 1 && notes.count(3) >= 1, "{:?}", notes.begun());
    assert!((2..=3).contains(&notes.count(2)), "{:?}", notes.begun());
}

#[tokio::test]
async fn a_function_that_was_frozen_past_its_deadline_goes_on_and_harms_nothing() {
    let (engine, notes) = (Engine::start().await, Notes::new());
    let (frozen_api, other_api) = (RuntimeApi::start().await, RuntimeApi::start().await);
    let start = || notes.start("trial::consumer_function").store(&engine.endpoint());
    let frozen = start().start(&frozen_api);
    let event = kinesis(1, &[fine(1), told(2, "hang")]);
    let short = Duration::from_secs(5);
    let late = frozen_api.send(&event, short);
    until("the handler hangs", async || notes.count(2) == 1).await;
    frozen.freeze();
    engine.environment.clock.sleep(short).await;

    // Lambda has given the invocation up, and delivers to another process; there, the handler does its work.
    let _other = start().start(&other_api);
    let again = kinesis(1, &[fine(1), fine(2)]);
    assert_eq!(other_api.invoke(&again, TIME).await.failures(), Vec::<String>::new());

    frozen.thaw();
    let answer = frozen_api.answer(&late).await;
    assert_eq!(answer.early, None, "it was frozen past its deadline");
    // What it writes late has not undone anything: the next batches are as any other.
    let next = frozen_api.invoke(&kinesis(3, &[fine(3)]), TIME).await;
    assert_eq!(next.failures(), Vec::<String>::new());
    let next = other_api.invoke(&kinesis(4, &[fine(4)]), TIME).await;
    assert_eq!(next.failures(), Vec::<String>::new());
    assert!(engine.letters().await.is_empty());
}

#[tokio::test]
async fn a_function_that_is_frozen_between_invocations_takes_the_next_one() {
    let (engine, notes, api) = (Engine::start().await, Notes::new(), RuntimeApi::start().await);
    let function = notes.start("trial::consumer_function").store(&engine.endpoint()).start(&api);
    for n in 1..=3 {
        let answer = api.invoke(&kinesis(n, &[fine(n)]), TIME).await;
        assert_eq!(answer.failures(), Vec::<String>::new());
        function.freeze();
        engine.environment.clock.sleep(Duration::from_millis(200)).await;
        function.thaw();
    }
    assert_eq!(notes.begun(), [1, 2, 3]);
}
