//! Every adapter keeps the contract of the store it wraps.

use std::sync::Arc;
use std::time::Duration;

use millpond_store::{
    Backoff, Environment, FaultPlan, FaultRates, Faulty, Latency, MemoryStore, Meter, Metered,
    Retrying, Slow,
};
use millpond_testing::Subject;

mod faulty {
    use super::*;

    async fn quiet() -> Subject {
        Subject::new(|environment| {
            Box::pin(async move {
                Arc::new(Faulty::new(MemoryStore::new(&environment), &environment)) as _
            })
        })
        .await
    }
    millpond_testing::store_conformance!(quiet);
}

mod metered {
    use super::*;

    async fn metered() -> Subject {
        Subject::new(|environment| {
            Box::pin(async move {
                Arc::new(Metered::new(MemoryStore::new(&environment), Meter::new())) as _
            })
        })
        .await
    }
    millpond_testing::store_conformance!(metered);
}

mod slow {
    use super::*;

    async fn slow() -> Subject {
        Subject::new(|environment| {
            Box::pin(async move {
                let latency = Latency {
                    base: Duration::from_micros(200),
                    jitter: Duration::from_micros(300),
                };
                Arc::new(Slow::new(MemoryStore::new(&environment), &Environment::system(), latency))
                    as _
            })
        })
        .await
    }
    millpond_testing::store_conformance!(slow);
}

/// Retrying over faults: a store that throttles, fails and loses answers still keeps the contract, since every
/// retry carries the same version.
mod retrying {
    use super::*;

    async fn retrying() -> Subject {
        Subject::new(|environment| {
            Box::pin(async move {
                let faulty = Faulty::new(MemoryStore::new(&environment), &Environment::system());
                faulty.follow(FaultPlan::Chance(FaultRates {
                    definite: 0.05,
                    unknown_before: 0.05,
                    throttle: 0.05,
                    delay: 0.05,
                    delay_max: Duration::from_micros(300),
                    ..FaultRates::default()
                }));
                let backoff = Backoff {
                    base: Duration::from_micros(50),
                    longest: Duration::from_millis(1),
                    attempts_max: 20,
                };
                Arc::new(Retrying::new(faulty, &Environment::system(), backoff)) as _
            })
        })
        .await
    }
    millpond_testing::store_conformance!(retrying);
}
