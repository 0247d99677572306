//! The fault adapter does what its plan says, and retrying resolves what it hides.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_store::{
    Attributes, Backoff, Certainty, Clock as _, Environment, Expect, Fault, FaultPlan, FaultRates,
    Faulty, Key, MemoryStore, Retrying, Store, StoreError, Timestamp, VirtualClock, Write,
};

fn environment() -> (Environment, VirtualClock) {
    let clock = VirtualClock::automatic(Timestamp::from_millis(1_000_000));
    (Environment::simulated(clock.clone(), 11), clock)
}

fn put(environment: &Environment, sort: &'static str) -> Write {
    let key = Key::new("p", sort).expect("a valid key");
    Write::put(key, Attributes::new(), Expect::Absent, environment.version())
}

#[tokio::test]
async fn each_fault_happens_at_its_request_and_does_what_it_says() {
    let (environment, clock) = environment();
    let store = Faulty::new(MemoryStore::new(&environment), &environment);
    let applied = async |write: &Write| store.inner().get(&write.key).await.unwrap().is_some();
    let cases = [
        (Fault::Conflict, false, Some(Certainty::Definite)),
        (Fault::Definite, false, Some(Certainty::Definite)),
        (Fault::Throttle, false, Some(Certainty::Definite)),
        (Fault::UnknownBefore, false, Some(Certainty::Unknown)),
        (Fault::UnknownAfter, true, Some(Certainty::Unknown)),
        (Fault::Delay(Duration::from_secs(2)), true, None),
    ];
    let names = ["a", "b", "c", "d", "e", "f"];
    for (name, (fault, happens, certainty)) in names.into_iter().zip(cases) {
        store.follow(FaultPlan::once(1, fault));
        let before = clock.now();
        let (calm, hit) = (put(&environment, "calm"), put(&environment, name));
        store.write(Write { expect: Expect::Any, ..calm }).await.expect("request 0 has no fault");
        let outcome = store.write(hit.clone()).await;
        assert_eq!(outcome.as_ref().err().map(StoreError::certainty), certainty, "{fault:?}");
        assert_eq!(applied(&hit).await, happens, "{fault:?}");
        assert_eq!(store.requests(), 2);
        let waited = clock.now().since(before);
        assert_eq!(waited >= Duration::from_secs(2), matches!(fault, Fault::Delay(_)));
    }
}

#[tokio::test]
async fn faults_by_chance_repeat_with_the_seed() {
    let run = async |seed| {
        let clock = VirtualClock::automatic(Timestamp::from_millis(0));
        let environment = Environment::simulated(clock, seed);
        let store = Faulty::new(MemoryStore::new(&environment), &environment);
        let rates = FaultRates { definite: 0.2, throttle: 0.2, ..FaultRates::default() };
        store.follow(FaultPlan::Chance(rates));
        let key = Key::new("p", "k").unwrap();
        let mut outcomes = Vec::new();
        for _ in 0..200 {
            outcomes.push(store.get(&key).await.is_ok());
        }
        outcomes
    };
    let (first, second, other) = (run(5).await, run(5).await, run(6).await);
    assert_eq!(first, second);
    assert_ne!(first, other);
    let failed = first.iter().filter(|ok| !**ok).count();
    assert!((40..110).contains(&failed), "{failed} of 200 failed");
}

#[tokio::test]
async fn retrying_resolves_unknown_outcomes_and_is_bounded() {
    let (environment, _) = environment();
    let backoff = Backoff { attempts_max: 3, ..Backoff::STANDARD };
    let faulty = std::sync::Arc::new(Faulty::new(MemoryStore::new(&environment), &environment));
    let store = Retrying::new(faulty.clone(), &environment, backoff);

    faulty.follow(FaultPlan::once(0, Fault::UnknownAfter));
    let write = put(&environment, "after");
    store.write(write.clone()).await.expect("the retry knows its own success");
    assert_eq!(faulty.requests(), 2);

    faulty.follow(FaultPlan::once(0, Fault::UnknownAfter));
    let group = vec![put(&environment, "group 1"), put(&environment, "group 2")];
    store.write_all(group).await.expect("the retry knows its own success");

    // A conflict after an unknown outcome is not definite: the write may have been there in between.
    faulty.follow(FaultPlan::once(0, Fault::UnknownBefore));
    let late = put(&environment, "after");
    let conflict = store.write(late).await.unwrap_err();
    assert!(conflict.is_conflict());
    assert_eq!(conflict.certainty(), Certainty::Unknown);

    let always: BTreeMap<u64, Fault> = (0..10).map(|n| (n, Fault::Throttle)).collect();
    faulty.follow(FaultPlan::Script(always));
    let error = store.write(put(&environment, "never")).await.unwrap_err();
    assert!(matches!(error, StoreError::Throttled { .. }), "{error}");
    assert_eq!(faulty.requests(), 3, "attempts are bounded");

    let mixed =
        BTreeMap::from([(0, Fault::UnknownAfter), (1, Fault::Throttle), (2, Fault::Throttle)]);
    faulty.follow(FaultPlan::Script(mixed));
    let error = store.write(put(&environment, "mixed")).await.unwrap_err();
    assert_eq!(error.certainty(), Certainty::Unknown, "{error}");
}
