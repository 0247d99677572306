//! Time as a component: nothing else in Millpond reads a clock or sleeps.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::time::{Monotonic, Timestamp};

/// A source of time.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// Wall-clock time. It may jump, forward and back.
    fn now(&self) -> Timestamp;

    /// Time that never goes back.
    fn monotonic(&self) -> Monotonic;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
impl SystemClock {
    /// The machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    fn wall() -> Timestamp {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::default().plus(since_1970.unwrap_or_default())
    }

    fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    async fn wait(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Self::wall()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_origin(self.elapsed())
    }

    async fn sleep(&self, duration: Duration) {
        Self::wait(duration).await;
    }
}

/// A clock that moves only when told, for tests and simulation.
#[derive(Debug, Clone)]
pub struct VirtualClock {
    state: Arc<Mutex<VirtualState>>,
    auto: bool,
}

#[derive(Debug)]
struct VirtualState {
    wall: Timestamp,
    elapsed: Duration,
    /// Sleepers by the elapsed time at which they wake, and a number that keeps equal ones apart.
    sleepers: BTreeMap<(Duration, u64), oneshot::Sender<()>>,
    sleepers_made: u64,
}

impl VirtualClock {
    /// A clock that stands at `start` until it is moved.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        let state = VirtualState {
            wall: start,
            elapsed: Duration::ZERO,
            sleepers: BTreeMap::new(),
            sleepers_made: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), auto: false }
    }

    /// A clock on which a sleep moves time forward by itself instead of waiting for somebody to do so.
    #[must_use]
    pub fn automatic(start: Timestamp) -> Self {
        Self { auto: true, ..Self::new(start) }
    }

    /// Moves time forward and wakes who slept until then.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wall = state.wall.plus(duration);
        state.elapsed += duration;
        let woken_up_to = (state.elapsed, u64::MAX);
        let still_asleep = state.sleepers.split_off(&woken_up_to);
        let woken = std::mem::replace(&mut state.sleepers, still_asleep);
        drop(state);
        for (_, sleeper) in woken {
            // A sleeper that was cancelled has nobody to tell.
            let _ = sleeper.send(());
        }
    }

    /// Sets the wall clock, as an operator or a time service does: monotonic time does not notice.
    pub fn set_wall(&self, now: Timestamp) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).wall = now;
    }

    /// How long until the first of those that sleep wakes; nothing when nobody sleeps.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A sleep that was cancelled wakes nobody.
        state.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        let ((wakes_at, _), _) = state.sleepers.first_key_value()?;
        Some(wakes_at.saturating_sub(state.elapsed))
    }

    /// How many sleep at present.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).sleepers.len()
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).wall
    }

    fn monotonic(&self) -> Monotonic {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Monotonic::from_origin(state.elapsed)
    }

    async fn sleep(&self, duration: Duration) {
        if self.auto {
            self.advance(duration);
            tokio::task::yield_now().await;
            return;
        }
        let woken = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let (sender, receiver) = oneshot::channel();
            let wakes_at = (state.elapsed + duration, state.sleepers_made);
            state.sleepers_made += 1;
            state.sleepers.insert(wakes_at, sender);
            receiver
        };
        if duration.is_zero() {
            self.advance(Duration::ZERO);
        }
        // The sender is gone only with the clock itself, and then nobody can wait on it.
        let _ = woken.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn virtual_sleepers_wake_when_their_time_comes() {
        let clock = VirtualClock::new(Timestamp::from_millis(1_000));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_secs(5)).await;
                clock.now()
            }
        });
        while clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_millis(4_999));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_millis(1));
        assert_eq!(sleeper.await.unwrap(), Timestamp::from_millis(6_000));
    }

    #[tokio::test]
    async fn a_wall_clock_jump_leaves_monotonic_time_alone() {
        let clock = VirtualClock::automatic(Timestamp::from_millis(50_000));
        let before = clock.monotonic();
        clock.set_wall(Timestamp::from_millis(10));
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.monotonic().since(before), Duration::from_secs(1));
        assert_eq!(clock.now(), Timestamp::from_millis(1_010));
    }
}
