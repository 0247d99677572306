//! What a run did.

use millpond_store::Timestamp;

/// What a run did. Each message that it received is counted once in what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Messages that were finished well.
    pub done: u64,
    /// Messages that failed and are tried again, or went to the dead letters.
    pub retried: u64,
    /// Messages that failed and are not tried again.
    pub failed: u64,
    /// Messages that were given back unfinished.
    pub released: u64,
    /// Messages whose lease was lost, or of which the store could not be told what became of them: they may be
    /// received again.
    pub lost: u64,
    /// What ended the run.
    pub ended: Ended,
    /// Whether messages are left that can be received, now or later. Also when that could not be found out.
    pub work_remains: bool,
    /// When the first of those that are left can be received, if none can now and that is known.
    pub due: Option<Timestamp>,
}

/// What ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nothing could be received any more.
    Empty,
    /// Its time was over.
    Deadline,
    /// It had received as many messages as it was to.
    Count,
    /// It was told to shut down.
    Shutdown,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    Retried,
    Failed,
    Released,
    Lost,
}

/// Counts what became of messages.
#[derive(Debug, Default)]
pub(super) struct Tally {
    done: u64,
    retried: u64,
    failed: u64,
    released: u64,
    lost: u64,
}

impl Tally {
    pub fn add(&mut self, fates: &[Fate]) {
        for fate in fates {
            *match fate {
                Fate::Done => &mut self.done,
                Fate::Retried => &mut self.retried,
                Fate::Failed => &mut self.failed,
                Fate::Released => &mut self.released,
                Fate::Lost => &mut self.lost,
            } += 1;
        }
    }

    pub fn report(&self, ended: Ended, work_remains: bool, due: Option<Timestamp>) -> Report {
        let Self { done, retried, failed, released, lost } = *self;
        Report { done, retried, failed, released, lost, ended, work_remains, due }
    }
}

impl Report {
    /// Adds what an earlier part of the same run did.
    pub(super) fn after(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        Self {
            done: self.done + earlier.done,
            retried: self.retried + earlier.retried,
            failed: self.failed + earlier.failed,
            released: self.released + earlier.released,
            lost: self.lost + earlier.lost,
            ..self
        }
    }
}
