//! A line of progress that a person can watch, and rates for the summary.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millpond_store::{Clock, Monotonic};

/// How far a long piece of work has come. On a terminal it is a line that is rewritten; elsewhere nothing is shown
/// until the end.
#[derive(Debug, Clone)]
pub struct Progress {
    what: &'static str,
    total: u64,
    done: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
    started: Monotonic,
}

/// How fast something went.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    pub count: u64,
    pub elapsed: Duration,
}

impl Progress {
    pub fn start(what: &'static str, total: u64, clock: &Arc<dyn Clock>) -> Self {
        let started = clock.monotonic();
        Self { what, total, done: Arc::default(), clock: Arc::clone(clock), started }
    }

    pub fn add(&self, count: u64) {
        let before = self.done.fetch_add(count, Ordering::Relaxed);
        let step = (self.total / 100).max(1);
        if (before + count) / step > before / step && stderr().is_terminal() {
            let percent = (before + count) * 100 / self.total.max(1);
            let rate = self.rate().per_second();
            // Progress is a courtesy: if nobody can see it, the work goes on.
            let _ = write!(stderr(), "\r{:>8}  {percent:>3} %  {rate:>9.0} msgs/s", self.what);
        }
    }

    pub fn rate(&self) -> Rate {
        let elapsed = self.clock.monotonic().since(self.started);
        Rate { count: self.done.load(Ordering::Relaxed), elapsed }
    }

    pub fn finish(self) -> Rate {
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r{:>50}\r", "");
        }
        self.rate()
    }
}

impl Rate {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }
}
