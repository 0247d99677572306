//! Virtual time for stores that talk to a real server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use millpond_store::{Clock, Environment, Monotonic, SystemClock, Timestamp};

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
