//! How the time until the deadline is divided: work, letters, state, and a rest for the answer.

use std::sync::Arc;
use std::time::Duration;

use millpond_store::{Clock, Environment, Monotonic, Timestamp};

use crate::limits::{FINISH_SHARE, REMAINING_MAX};
use crate::message::Time;

/// When what must end.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    clock: Arc<dyn Clock>,
    start: Monotonic,
    /// Handlers are cut off.
    cut: Duration,
    /// Letters are not waited for any longer.
    letters: Duration,
    /// Nothing is waited for any longer.
    finish: Duration,
}

impl Budget {
    pub fn new(environment: &Environment, deadline: Timestamp, share: f64) -> Self {
        let clock = Arc::clone(&environment.clock);
        let total = deadline.since(clock.now()).min(REMAINING_MAX);
        let cut = total.mul_f64(share);
        let window = (total - cut.min(total)).mul_f64(FINISH_SHARE);
        let start = clock.monotonic();
        Self { clock, start, cut, letters: cut + window / 2, finish: cut + window }
    }

    pub fn time(&self) -> Time {
        Time { clock: Arc::clone(&self.clock), start: self.start, cut: self.cut }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long it took so far.
    pub fn spent(&self) -> Duration {
        self.clock.monotonic().since(self.start)
    }

    /// Does work, but no longer than until handlers are cut off.
    pub async fn until_cut<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.cut, work).await
    }

    /// Does work, but no longer than letters are waited for.
    pub async fn until_letters<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.letters, work).await
    }

    /// Does work, but no longer than anything is waited for.
    pub async fn until_finish<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.finish, work).await
    }

    async fn until<T>(&self, end: Duration, work: impl Future<Output = T>) -> Option<T> {
        let left = end.saturating_sub(self.spent());
        if left.is_zero() {
            return None;
        }
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.clock.sleep(left) => None,
        }
    }
}
