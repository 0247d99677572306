//! A clock that runs on by itself and can also be moved, for tests of whoever uses the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use millpond_store::{Clock, Monotonic, SystemClock, Timestamp};
use tokio::sync::watch;

/// The machine's clock, ahead by as much as it was moved.
#[derive(Debug, Clone)]
pub struct TestClock {
    below: Arc<dyn Clock>,
    /// When the clock was made, and how far it was moved since.
    origin: Monotonic,
    ahead: watch::Sender<Duration>,
    /// One move at a time.
    moving: Arc<Mutex<()>>,
}

impl TestClock {
    /// The machine's clock, not moved yet.
    pub fn new() -> Self {
        Self::over(Arc::new(SystemClock::new()))
    }

    fn over(below: Arc<dyn Clock>) -> Self {
        let origin = below.monotonic();
        Self { below, origin, ahead: watch::Sender::new(Duration::ZERO), moving: Arc::default() }
    }

    /// Moves time forward, and wakes who slept until then.
    pub fn advance(&self, duration: Duration) {
        let _one = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        self.ahead.send_modify(|ahead| *ahead = ahead.saturating_add(duration));
    }

    /// How far it was moved in all.
    pub fn ahead(&self) -> Duration {
        *self.ahead.borrow()
    }

    fn elapsed(&self) -> Duration {
        self.below.monotonic().since(self.origin).saturating_add(self.ahead())
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.below.now().plus(self.ahead())
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_origin(self.elapsed())
    }

    async fn sleep(&self, duration: Duration) {
        let mut moved = self.ahead.subscribe();
        let wakes_at = self.elapsed().saturating_add(duration);
        loop {
            let left = wakes_at.saturating_sub(self.elapsed());
            if left.is_zero() {
                // Somebody who sleeps again and again lets others go on.
                return tokio::task::yield_now().await;
            }
            tokio::select! {
                biased;
                // The sender is this clock's own.
                _ = moved.changed() => {}
                () = self.below.sleep(left) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::VirtualClock;

    use super::*;

    #[tokio::test]
    async fn it_runs_on_and_can_be_moved() {
        let below = VirtualClock::new(Timestamp::from_millis(1_000));
        let clock = TestClock::over(Arc::new(below.clone()));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_secs(30)).await;
                clock.now()
            }
        });
        while below.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        below.advance(Duration::from_secs(10));
        assert_eq!(clock.now(), Timestamp::from_millis(11_000));
        clock.advance(Duration::from_secs(19));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!sleeper.is_finished());
        assert_eq!(clock.monotonic().since(Monotonic::default()), Duration::from_secs(29));
        clock.advance(Duration::from_secs(1));
        assert_eq!(sleeper.await.unwrap(), Timestamp::from_millis(31_000));
        assert_eq!(clock.ahead(), Duration::from_secs(20));
    }
}
