//! How the time until the deadline is divided: work, a hook, letters, state, another hook, and a rest for the answer. What is
//! not used goes to those behind it, and none can use up another's.

use std::sync::Arc;
use std::time::Duration;

use millpond_store::{Clock, Environment, Monotonic, Timestamp};

use crate::limits::{FINISH_ENDS, FINISH_SHARE, READ_SHARE, REMAINING_MAX};
use crate::message::Time;

/// When what must end.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    clock: Arc<dyn Clock>,
    start: Monotonic,
    /// Handlers are cut off.
    cut: Duration,
    /// The hook before the finish is not waited for any longer.
    hook: Duration,
    /// Letters are not waited for any longer.
    letters: Duration,
    /// The state is not waited for any longer.
    finish: Duration,
    /// Nothing is waited for any longer.
    end: Duration,
}

impl Budget {
    pub fn new(environment: &Environment, deadline: Timestamp, share: f64) -> Self {
        let clock = Arc::clone(&environment.clock);
        let total = deadline.since(clock.now()).min(REMAINING_MAX);
        let cut = total.mul_f64(share);
        let window = (total - cut.min(total)).mul_f64(FINISH_SHARE);
        let start = clock.monotonic();
        let [hook, letters, finish, end] = FINISH_ENDS.map(|end| cut + window.mul_f64(end));
        Self { clock, start, cut, hook, letters, finish, end }
    }

    pub fn time(&self) -> Time {
        Time { clock: Arc::clone(&self.clock), start: self.start, cut: self.cut }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether more may be read, so that time is left for what was.
    pub fn may_read(&self) -> bool {
        self.spent() < self.cut.mul_f64(READ_SHARE)
    }

    /// How long it took so far.
    pub fn spent(&self) -> Duration {
        self.clock.monotonic().since(self.start)
    }

    /// Does work, but no longer than until handlers are cut off.
    pub async fn until_cut<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.cut, work).await
    }

    /// Does work, but no longer than the hook before the finish is waited for.
    pub async fn until_hook<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.hook, work).await
    }

    /// Does work, but no longer than letters are waited for.
    pub async fn until_letters<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.letters, work).await
    }

    /// Does work, but no longer than anything is waited for.
    pub async fn until_end<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(self.end, work).await
    }

    /// Does work, but no longer than the state is waited for.
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
