//! The same consumer over Millpond's own queue and log.

mod loans;
mod log;
mod queue;

pub use log::LogSource;
pub use queue::QueueSource;

use std::time::Duration;

use crate::report::Report;

/// What a run over a queue or a log did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    /// Batches that were handled.
    pub batches: usize,
    /// Messages that are finished.
    pub finished: usize,
    /// Messages that came again, each time counted.
    pub unfinished: usize,
    /// Letters that the sinks have.
    pub dead: usize,
    /// Whether the deadline came with work left.
    pub cut_off: bool,
    /// What kept batches from ending well, as far as the last batch says.
    pub problems: Vec<String>,
}

impl Run {
    fn add(&mut self, report: &Report) {
        self.batches += 1;
        self.finished += report.finished;
        self.unfinished += report.unfinished;
        self.dead += report.dead_total();
        self.problems.clone_from(&report.problems);
    }
}

/// How long to wait after a batch of which nothing was finished: what failed gets a moment.
const PAUSE: Duration = Duration::from_secs(1);
