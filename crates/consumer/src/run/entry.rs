//! One message or unusable record of a batch, and how far it has come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millpond_store::Timestamp;

use super::prepare::Unread;
use crate::message::{Attempt, Content};
use crate::settings::Settings;
use crate::sink::Reason;
use crate::source::Unusable;
use crate::state::{MessageState, Status, Stored, TaskState};

/// What an entry is.
#[derive(Debug)]
pub(super) enum Subject {
    /// Bytes that may be messages.
    Unread(Arc<Unread>),
    Message(Arc<Content>),
    Record(Box<Unusable>),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub subject: Subject,
    /// The place of its record in the event.
    pub index: usize,
    progress: Mutex<Progress>,
}

/// How far an entry has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The extractor has not come to it: nobody knows how many messages it is, and so it is not finished.
    pub unread: bool,
    /// What is stored of it was asked for and judged.
    pub known: bool,
    /// What was stored before.
    pub base: Option<Stored>,
    pub state: MessageState,
    /// A verdict that comes from no task.
    pub verdict: Option<(Reason, String)>,
    /// It is from before the state was known, and gives way where that says how the message ended.
    pub provisional: bool,
    /// The call that is under way.
    pub running: Option<Arc<Attempt>>,
    /// Its turn came in this delivery.
    pub reached: bool,
    /// A handler was called for it in this delivery.
    pub tried: bool,
    /// It was finished before this delivery.
    pub finished_before: bool,
    pub duplicate: bool,
    /// Its batch was killed before, and it was not run alone since.
    pub suspect: bool,
    /// One of its calls may have been the one that killed the batch, and was not counted.
    pub lost: bool,
    /// The same, as it was noted when the call under way began.
    pub lost_noted: bool,
    /// The row may say that it runs, and it does not: time was up while that was written.
    pub unsure: bool,
    /// The sink has it.
    pub buried: bool,
}

impl Entry {
    pub fn of(subject: Subject, index: usize, progress: Progress) -> Self {
        Self { subject, index, progress: Mutex::new(progress) }
    }

    pub fn unread(unread: Unread, index: usize) -> Self {
        let progress = Progress { unread: true, ..Progress::default() };
        Self::of(Subject::Unread(Arc::new(unread)), index, progress)
    }

    pub fn record(unusable: Unusable, index: usize) -> Self {
        let verdict = Some((Reason::Unusable, unusable.reason.clone()));
        let progress = Progress { verdict, ..Progress::default() };
        Self::of(Subject::Record(Box::new(unusable)), index, progress)
    }

    /// The end of a window, of which nothing is decided yet.
    pub fn window(unusable: Unusable, index: usize) -> Self {
        Self::of(Subject::Record(Box::new(unusable)), index, Progress::default())
    }

    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn into_progress(self) -> Progress {
        self.progress.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn content(&self) -> Option<&Arc<Content>> {
        match &self.subject {
            Subject::Message(content) => Some(content),
            Subject::Unread(_) | Subject::Record(_) => None,
        }
    }

    /// What a partial response calls it; nothing when the record does not say.
    pub fn item(&self) -> Option<&str> {
        match &self.subject {
            Subject::Unread(unread) => Some(&unread.record.item),
            Subject::Message(content) => Some(&content.item),
            Subject::Record(record) => record.item.as_deref(),
        }
    }

    pub fn receives(&self) -> Option<u32> {
        match &self.subject {
            Subject::Unread(unread) => unread.record.receives,
            Subject::Message(content) => content.receives,
            Subject::Record(record) => record.receives,
        }
    }
}

impl Progress {
    /// Why it is dead, once that is certain: at once when a handler rejects it, otherwise when no task is left to run.
    pub fn dead(&self, settings: &Settings) -> Option<(Reason, String)> {
        if self.unread { None } else { self.dead_as_stored(settings) }
    }

    fn dead_as_stored(&self, settings: &Settings) -> Option<(Reason, String)> {
        if self.verdict.is_some() {
            return self.verdict.clone();
        }
        let of = |status| self.state.tasks.iter().find(move |(_, task)| task.status == status);
        let say = |(name, task): (&String, &TaskState), reason| {
            let error = task.error.as_deref().unwrap_or("no reason was given");
            (reason, format!("{name}: {error}"))
        };
        if let Some(found) = of(Status::Rejected) {
            return Some(say(found, Reason::Rejected));
        }
        if self.outstanding(settings) {
            return None;
        }
        let exhausted = of(Status::Exhausted).map(|found| say(found, Reason::Exhausted));
        exhausted.or_else(|| of(Status::Abandoned).map(|found| say(found, Reason::Abandoned)))
    }

    /// Whether a task is left to run.
    pub fn outstanding(&self, settings: &Settings) -> bool {
        let pending = |name: &str| {
            self.state.tasks.get(name).is_none_or(|task| task.status == Status::Pending)
        };
        settings.tasks.iter().any(|task| pending(&task.name))
    }

    /// Whether nothing is left to do for it, letters included.
    pub fn is_finished(&self, settings: &Settings) -> bool {
        !self.unread && self.is_finished_as_stored(settings)
    }

    fn is_finished_as_stored(&self, settings: &Settings) -> bool {
        if self.duplicate || self.buried || self.state.dead.is_some() {
            return true;
        }
        match self.dead_as_stored(settings) {
            Some(_) => false,
            None => !self.outstanding(settings),
        }
    }

    /// Whether the extractor is to be watched closely: an earlier delivery was killed, and it may have been by this.
    pub fn is_dangerous_to_read(&self, settings: &Settings) -> bool {
        let settled =
            self.is_finished_as_stored(settings) || self.dead_as_stored(settings).is_some();
        self.unread && (self.suspect || self.state.kills > 0) && !settled
    }

    /// Whether all tasks are done for it, in this delivery or an earlier one.
    pub fn is_done(&self, settings: &Settings) -> bool {
        let put_aside = self.duplicate || self.buried || self.state.dead.is_some();
        !put_aside && self.dead(settings).is_none() && !self.outstanding(settings)
    }

    /// Whether a task was tried for it, in vain or not.
    pub fn was_tried(&self) -> bool {
        self.state.tasks.values().any(|task| *task != TaskState::default())
    }

    /// Whether no handler is to be called for it any more.
    pub fn is_settled(&self, settings: &Settings) -> bool {
        self.is_finished(settings) || self.dead(settings).is_some()
    }

    /// Whether this task is to be run now.
    pub fn wants(&self, settings: &Settings, task: &str, now: Timestamp) -> bool {
        if self.is_settled(settings) {
            return false;
        }
        self.state.tasks.get(task).is_none_or(|task| {
            let due = task.due_ms.is_none_or(|due| due <= now.as_millis());
            task.status == Status::Pending && due
        })
    }

    pub fn task(&mut self, name: &str) -> &mut TaskState {
        if !self.state.tasks.contains_key(name) {
            self.state.tasks.insert(name.to_owned(), TaskState::default());
        }
        self.state.tasks.get_mut(name).expect("it was put there just now")
    }

    /// Counts an attempt in vain.
    pub fn fail(&mut self, settings: &Settings, name: &str, made: u32, error: String) -> Status {
        let task = self.task(name);
        task.attempts = task.attempts.saturating_add(made);
        task.error = Some(error);
        task.due_ms = None;
        if task.attempts >= settings.attempts {
            task.status = Status::Exhausted;
        }
        task.status
    }
}
