//! A process's own clock: time passes as for all, but its wall clock can be set wrong.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use millpond_store::{Clock, Monotonic, Timestamp, VirtualClock};

#[derive(Debug)]
pub(crate) struct OwnClock {
    world: VirtualClock,
    /// Milliseconds that the wall clock is ahead.
    ahead: AtomicI64,
}

impl OwnClock {
    pub(crate) fn new(world: VirtualClock) -> Self {
        Self { world, ahead: AtomicI64::new(0) }
    }

    /// Sets the wall clock this much ahead of the world's, or back.
    pub(crate) fn set_ahead(&self, millis: i64) {
        self.ahead.store(millis, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for OwnClock {
    fn now(&self) -> Timestamp {
        let now = self.world.now().as_millis();
        Timestamp::from_millis(now.saturating_add_signed(self.ahead.load(Ordering::Relaxed)))
    }

    fn monotonic(&self) -> Monotonic {
        self.world.monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        self.world.sleep(duration).await;
    }
}
