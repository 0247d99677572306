//! The world of the conformance suite, for a store that talks to a real server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use millpond_dynamodb::{DynamoDbStore, TableOptions};
use millpond_store::{Clock, Environment, Monotonic, SystemClock, Timestamp};
use millpond_testing::Subject;

use super::engine::Engine;

/// The time of day is the test's to set, but a wait for a server is a real one.
#[derive(Debug)]
struct HalfVirtual {
    wall: Arc<dyn Clock>,
    machine: SystemClock,
}

#[async_trait]
impl Clock for HalfVirtual {
    fn now(&self) -> Timestamp {
        self.wall.now()
    }

    fn monotonic(&self) -> Monotonic {
        self.machine.monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        self.machine.sleep(duration).await;
    }
}

/// The same environment, with real waits.
pub fn with_real_waits(environment: &Environment) -> Environment {
    let machine = SystemClock::new();
    let clock = HalfVirtual { wall: Arc::clone(&environment.clock), machine };
    Environment { clock: Arc::new(clock), rng: Arc::clone(&environment.rng) }
}

/// A store whose engine lives as long as the test's runtime.
pub async fn dynoxide() -> Subject {
    let engine = Engine::start().await;
    let config = super::config(&engine.endpoint(), "conformance");
    // The runtime of the test ends the engine with everything else it runs.
    tokio::spawn(async move {
        let _engine = engine;
        std::future::pending::<()>().await;
    });
    Subject::new(|environment| {
        Box::pin(async move {
            let environment = with_real_waits(&environment);
            let store = DynamoDbStore::open(config, &environment).await.unwrap();
            store.admin().create_table(TableOptions::default()).await.unwrap();
            Arc::new(store) as _
        })
    })
    .await
}
