//! What became of a batch, for logs and metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::limits::REMARKS_MAX;
use crate::sink::Reason;

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// The consumer.
    pub consumer: String,
    /// The source's ARN; empty when nothing says.
    pub source: String,
    /// The shard; empty when there is none.
    pub shard: String,
    /// Records in the event.
    pub records: usize,
    /// Messages in those.
    pub messages: usize,
    /// Messages and unusable records that are finished now, and how many of these were before.
    pub finished: usize,
    /// Of those, the ones that an earlier delivery had finished.
    pub finished_before: usize,
    /// Messages and unusable records that come again.
    pub unfinished: usize,
    /// Of those, the ones that were not tried in this delivery.
    pub unstarted: usize,
    /// Messages that were skipped as duplicates.
    pub duplicates: usize,
    /// User records that belong to another shard, since the stream was resharded.
    pub elsewhere: usize,
    /// Letters that the sinks have, by reason.
    pub dead: BTreeMap<Reason, usize>,
    /// What happened, by task.
    pub tasks: BTreeMap<String, TaskReport>,
    /// Whether messages ran one by one, since an earlier delivery was killed.
    pub careful: bool,
    /// Whether the deadline cut the work off.
    pub cut_off: bool,
    /// Whether the end of a tumbling window failed and is tried again.
    pub window_open: bool,
    /// Rows of state that were written.
    pub saved: usize,
    /// Whether the source was stopped, and which mapping.
    pub tripped: Option<String>,
    /// What somebody should look at.
    pub warnings: Vec<String>,
    /// What kept the batch from ending well.
    pub problems: Vec<String>,
    /// Warnings and problems over those listed.
    pub unlisted: usize,
    /// How long it took.
    pub took: Duration,
}

/// What happened to one task in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TaskReport {
    /// Calls of its handler.
    pub calls: usize,
    /// Messages that it is done for.
    pub done: usize,
    /// Messages that it is tried again for.
    pub retried: usize,
    /// Messages that it rejected.
    pub rejected: usize,
    /// Messages that it failed for as often as it may.
    pub exhausted: usize,
    /// Messages that it was removed from before it was done.
    pub abandoned: usize,
    /// Attempts that panicked.
    pub panics: usize,
    /// Attempts that were cut off.
    pub hangs: usize,
    /// Attempts that killed the process, in an earlier delivery.
    pub kills: usize,
    /// How long its handlers took together.
    pub took: Duration,
}

impl Report {
    /// Whether everything is finished.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.unfinished == 0 && !self.window_open
    }

    /// Letters of all reasons.
    #[must_use]
    pub fn dead_total(&self) -> usize {
        self.dead.values().sum()
    }

    /// Counters by name, for a metrics system.
    #[must_use]
    pub fn metrics(&self) -> Vec<(&'static str, usize)> {
        let sum = |of: fn(&TaskReport) -> usize| self.tasks.values().map(of).sum();
        vec![
            ("consumer_records", self.records),
            ("consumer_messages", self.messages),
            ("consumer_finished", self.finished),
            ("consumer_unfinished", self.unfinished),
            ("consumer_duplicates", self.duplicates),
            ("consumer_dead_letters", self.dead_total()),
            ("consumer_calls", sum(|task| task.calls)),
            ("consumer_retries", sum(|task| task.retried)),
            ("consumer_panics", sum(|task| task.panics)),
            ("consumer_hangs", sum(|task| task.hangs)),
            ("consumer_kills", sum(|task| task.kills)),
            ("consumer_problems", self.problems.len()),
            ("consumer_careful", usize::from(self.careful)),
            ("consumer_tripped", usize::from(self.tripped.is_some())),
        ]
    }

    pub(crate) fn warn(&mut self, warning: String) {
        if self.warnings.len() < REMARKS_MAX {
            self.warnings.push(warning);
        } else {
            self.unlisted += 1;
        }
    }

    pub(crate) fn problem(&mut self, problem: String) {
        if self.problems.contains(&problem) {
            return;
        }
        if self.problems.len() < REMARKS_MAX {
            self.problems.push(problem);
        } else {
            self.unlisted += 1;
        }
    }

    /// One line for the log: fields, and never a message's bytes.
    pub(crate) fn log(&self) {
        let millis = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        macro_rules! summary {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    consumer = self.consumer,
                    source = self.source,
                    shard = self.shard,
                    records = self.records,
                    messages = self.messages,
                    finished = self.finished,
                    unfinished = self.unfinished,
                    dead = self.dead_total(),
                    duplicates = self.duplicates,
                    careful = self.careful,
                    cut_off = self.cut_off,
                    problems = self.problems.len(),
                    millis,
                    $text
                )
            };
        }
        if self.is_complete() && self.problems.is_empty() {
            summary!(info, "a batch is finished");
        } else {
            summary!(warn, "a batch is not finished");
        }
    }
}
