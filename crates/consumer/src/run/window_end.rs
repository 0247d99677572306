//! The end of a tumbling window: tried as often as a task, and then put aside with what was gathered.
//!
//! It is counted in a row of its own, which says before each call that the end runs: whoever finds it so knows that the
//! process was killed. A window ends once in minutes, so that a read and two writes cost nothing; an end that is done leaves
//! an empty row, and is run anew when its stream is read anew.

use std::sync::Arc;

use serde_json::Value;

use super::batch::Batch;
use super::call::{Ended, call};
use super::entry::{Entry, Progress};
use super::load::place;
use crate::outcome::{Outcome, cut};
use crate::report::Report;
use crate::sink::{Reason, WINDOW_END as END};
use crate::source::{Scope, Unusable, Window};
use crate::state::{MessageState, StateError, Status};
use crate::task::End;

/// How far the end has come.
enum Tried {
    Done,
    /// It comes again, with the whole batch.
    Again,
    /// It is put aside.
    Dead,
}

impl Batch<'_> {
    /// Does what is to be done at the end of a window.
    pub(super) async fn end_window(
        &mut self,
        window: &Window,
        end: &End,
        state: Value,
        report: &mut Report,
    ) {
        let entry = self.end_entry(window, &state);
        match self.try_end(&entry, window, end, state, report).await {
            Tried::Done => {}
            Tried::Again => {
                self.window_open = true;
                report.window_open = true;
            }
            Tried::Dead => {
                let mut progress = entry.progress();
                progress.verdict = verdict(&progress);
                drop(progress);
                self.entries.push(entry);
            }
        }
    }

    /// The window as what a letter would be about.
    fn end_entry(&self, window: &Window, state: &Value) -> Entry {
        let raw = window.with_state(state).to_string();
        let nearby = self.entries.iter().find_map(place).map(|(scope, _)| scope);
        let named = window.place(nearby.as_deref(), self.entries.first().and_then(Entry::item));
        let (scope, key): (Option<Arc<Scope>>, _) = named.unzip();
        let unusable = Unusable { scope, key, ..Unusable::new(raw.into(), "") };
        Entry::window(unusable, self.entries.len())
    }

    async fn try_end(
        &self,
        entry: &Entry,
        window: &Window,
        end: &End,
        state: Value,
        report: &mut Report,
    ) -> Tried {
        match self.budget.until_cut(self.load_end(entry)).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.note(error.to_string(), error.is_fatal());
                return Tried::Again;
            }
            None => {
                self.note("no time was left for the end of the window".into(), false);
                return Tried::Again;
            }
        }
        self.recover_end(entry, report);
        if verdict(&entry.progress()).is_some() {
            return Tried::Dead;
        }
        let due = entry.progress().task(END).due_ms;
        if due.is_some_and(|due| due > self.budget.now().as_millis()) || !self.note_end(entry).await
        {
            return Tried::Again;
        }
        let outcome = self.call_end(window, end, state, report).await;
        let tried = self.take_down(entry, outcome, report);
        if self.budget.until_finish(self.save_one(entry)).await.is_none() {
            self.note("the state was not saved in time".into(), false);
        }
        tried
    }

    async fn load_end(&self, entry: &Entry) -> Result<(), StateError> {
        let Some((scope, position)) = place(entry) else { return Ok(()) };
        let rows = self.settings.state.load(&self.address(&scope), &[position]).await?;
        let row = rows.into_iter().next().flatten();
        let mut progress = entry.progress();
        progress.state = row.as_ref().map(|row| row.state.clone()).unwrap_or_default();
        progress.base = row;
        Ok(())
    }

    /// Counts a call that killed its process, and judges by the limit of today.
    fn recover_end(&self, entry: &Entry, report: &mut Report) {
        let mut progress = entry.progress();
        let killed = progress.state.running.take().is_some();
        let counts = report.tasks.entry(END.to_owned()).or_default();
        if killed {
            progress.state.kills = progress.state.kills.saturating_add(1);
            counts.kills += 1;
            progress.fail(self.settings, END, 1, "the process was killed".into());
        }
        let task = progress.task(END);
        if task.status == Status::Pending && task.attempts >= self.settings.attempts {
            task.status = Status::Exhausted;
        }
        counts.exhausted += usize::from(killed && task.status == Status::Exhausted);
    }

    /// Notes that the end runs; `false` when that failed: then it must not run.
    async fn note_end(&self, entry: &Entry) -> bool {
        entry.progress().state.running = Some(END.into());
        let noted = self.budget.until_cut(self.save_one(entry)).await == Some(true);
        entry.progress().state.running = None;
        if !noted {
            self.note("it could not be noted that the end of the window runs".into(), false);
            // Perhaps it was all the same, and nothing ran.
            let _ = self.budget.until_finish(self.save_one(entry)).await;
        }
        noted
    }

    async fn call_end(
        &self,
        window: &Window,
        end: &End,
        state: Value,
        report: &mut Report,
    ) -> Outcome {
        let counts = report.tasks.entry(END.to_owned()).or_default();
        counts.calls += 1;
        let clock = Arc::clone(&self.settings.environment.clock);
        let (end, window) = (Arc::clone(end), window.clone());
        let work = call(clock.as_ref(), async move { end(window, state).await });
        match self.budget.until_cut(work).await {
            Some((Ended::Returned(outcome), took)) => {
                counts.took += took;
                outcome
            }
            Some((Ended::Panicked(error), took)) => {
                counts.took += took;
                counts.panics += 1;
                Outcome::retry(error)
            }
            None => {
                counts.hangs += 1;
                Outcome::retry("it did not end in time")
            }
        }
    }

    fn take_down(&self, entry: &Entry, outcome: Outcome, report: &mut Report) -> Tried {
        let mut progress = entry.progress();
        let counts = report.tasks.entry(END.to_owned()).or_default();
        match outcome {
            Outcome::Done => {
                counts.done += 1;
                progress.state = MessageState::default();
                Tried::Done
            }
            Outcome::Reject { reason } => {
                counts.rejected += 1;
                let task = progress.task(END);
                (task.status, task.error) = (Status::Rejected, Some(cut(&reason)));
                Tried::Dead
            }
            Outcome::Retry { after, error } => {
                if progress.fail(self.settings, END, 1, cut(&error)) == Status::Exhausted {
                    counts.exhausted += 1;
                    return Tried::Dead;
                }
                counts.retried += 1;
                progress.task(END).due_ms =
                    after.map(|after| self.budget.now().plus(after).as_millis());
                drop(progress);
                self.note(format!("the end of the window failed: {error}"), false);
                Tried::Again
            }
        }
    }
}

/// Why the window is put aside, if it is.
fn verdict(progress: &Progress) -> Option<(Reason, String)> {
    let task = progress.state.tasks.get(END)?;
    let reason = match task.status {
        Status::Rejected => Reason::Rejected,
        Status::Exhausted => Reason::Exhausted,
        Status::Pending | Status::Done | Status::Abandoned => return None,
    };
    let error = task.error.as_deref().unwrap_or("no reason was given");
    Some((reason, format!("window: {error}")))
}
