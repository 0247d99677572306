//! Runs the handlers: along chains for each message, then for all at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;

use super::batch::Batch;
use super::call::{Ended, call};
use super::entry::Entry;
use super::steps::Asked;
use crate::message::{Attempt, Content, Message, Saves};
use crate::outcome::Outcome;
use crate::report::{Report, TaskReport};
use crate::state::{Change, Status};
use crate::task::{All, Handler, One, Task};

impl Batch<'_> {
    /// Runs everything that is to be run now. When this future is dropped, what runs is stopped and stays noted as
    /// running.
    pub(super) async fn work(&self) {
        if self.careful {
            return self.run_tasks().await;
        }
        tokio::select! {
            biased;
            () = self.run_tasks() => {}
            () = self.save_steps_now_and_then() => {}
        }
    }

    async fn run_tasks(&self) {
        let limit = if self.careful { 1 } else { self.settings.concurrency };
        let chains = self.chains();
        let run = futures::stream::iter(chains)
            .for_each_concurrent(limit, |chain| Box::pin(self.run_chain(chain)));
        run.await;
        for task in &self.settings.tasks {
            if let Handler::All(handler) = &task.handler {
                Box::pin(self.run_all(task, handler)).await;
            }
        }
    }

    /// Runs the messages of a chain, one after another, up to the first that is not through.
    async fn run_chain(&self, chain: Vec<usize>) {
        for entry in self.pick(&chain) {
            entry.progress().reached = true;
            for task in &self.settings.tasks {
                if let Handler::One(handler) = &task.handler
                    && entry.progress().wants(self.settings, &task.name, self.budget.now())
                {
                    self.run_one(task, handler, entry).await;
                }
            }
            if !self.is_through(entry) {
                break;
            }
        }
    }

    /// Whether those behind a message may run: it is settled, or only tasks for the whole batch are left.
    fn is_through(&self, entry: &Entry) -> bool {
        let progress = entry.progress();
        if progress.is_settled(self.settings) {
            return true;
        }
        let ended = |task: &Task| {
            let state = progress.state.tasks.get(&*task.name);
            state.is_some_and(|state| state.status.is_ended())
        };
        let ones =
            self.settings.tasks.iter().filter(|task| matches!(task.handler, Handler::One(_)));
        ones.into_iter().all(ended)
    }

    async fn run_one(&self, task: &Task, handler: &One, entry: &Entry) {
        let Some(content) = entry.content() else { return };
        let (saves, asked) = self.saves();
        let Some(message) = self.begin(task, entry, content, saves).await else { return };
        let handler = Arc::clone(handler);
        let work = async move { handler(message).await };
        let work = call(self.settings.environment.clock.as_ref(), work);
        let Some((ended, took)) = self.attend(task, &[entry], work, asked).await else {
            entry.progress().running = None;
            return;
        };
        self.count(task, |counts| {
            counts.took += took;
            counts.panics += usize::from(matches!(ended, Ended::Panicked(_)));
        });
        let outcome = match ended {
            Ended::Returned(outcome) => outcome,
            Ended::Panicked(error) => Outcome::retry(error),
        };
        self.end(task, entry, outcome);
        self.save_now(entry).await;
    }

    async fn run_all(&self, task: &Task, handler: &All) {
        let now = self.budget.now();
        let wanted: Vec<&Entry> = self
            .in_order()
            .filter(|entry| {
                let progress = entry.progress();
                progress.reached && progress.wants(self.settings, &task.name, now)
            })
            .collect();
        // Alone, a message that kills its process is known by that.
        let size = if self.careful { 1 } else { wanted.len() };
        for entries in wanted.chunks(size.max(1)) {
            self.run_some(task, handler, entries).await;
        }
    }

    async fn run_some(&self, task: &Task, handler: &All, entries: &[&Entry]) {
        let mut messages = Vec::with_capacity(entries.len());
        let mut called = Vec::with_capacity(entries.len());
        let (saves, asked) = self.saves();
        for entry in entries {
            let Some(content) = entry.content() else { continue };
            if let Some(message) = self.begin(task, entry, content, saves.clone()).await {
                messages.push(message);
                called.push(*entry);
            }
        }
        if messages.is_empty() {
            return;
        }
        let handler = Arc::clone(handler);
        let work = async move { handler(messages).await };
        let work = call(self.settings.environment.clock.as_ref(), work);
        drop(saves);
        let Some((ended, took)) = self.attend(task, &called, work, asked).await else {
            for entry in called {
                entry.progress().running = None;
            }
            return;
        };
        self.count(task, |counts| {
            // One call, though each message counted one when it began.
            counts.calls -= called.len() - 1;
            counts.took += took;
            counts.panics += usize::from(matches!(ended, Ended::Panicked(_)));
        });
        let mut outcomes = match ended {
            Ended::Returned(outcomes) => outcomes,
            Ended::Panicked(error) => vec![Outcome::retry(error); called.len()],
        }
        .into_iter();
        for entry in called {
            let none = || Outcome::retry("the handler returned no outcome for the message");
            self.end(task, entry, outcomes.next().unwrap_or_else(none));
            self.save_now(entry).await;
        }
    }

    /// Notes that a call begins; in a careful run also in the store. Nothing when that fails: then it must not run.
    async fn begin(
        &self,
        task: &Task,
        entry: &Entry,
        content: &Arc<Content>,
        saves: Option<Saves>,
    ) -> Option<Message> {
        if self.stopped.load(Ordering::Relaxed) || self.lost.has_entry(entry) {
            return None;
        }
        if self.careful {
            {
                let mut progress = entry.progress();
                progress.state.lost = progress.lost;
                progress.lost_noted = progress.lost;
                progress.state.running = Some(task.name.to_string());
            }
            let saved = self.save_one(entry).await;
            let mut progress = entry.progress();
            progress.state.running = None;
            progress.state.lost = false;
            if !saved {
                return None;
            }
            (progress.suspect, progress.lost) = (false, false);
        }
        let mut progress = entry.progress();
        let state = progress.task(&task.name).clone();
        let (number, time) = (state.attempts + 1, self.budget.time());
        let attempt = Attempt::saving(&task.name, number, &time, state.steps, saves);
        progress.running = Some(Arc::clone(&attempt));
        progress.tried = true;
        drop(progress);
        self.count(task, |counts| counts.calls += 1);
        Some(Message::new(Arc::clone(content), attempt))
    }

    /// How a call asks for its steps to be saved at once: in a careful run only.
    fn saves(&self) -> (Option<Saves>, Option<Asked>) {
        if !self.careful {
            return (None, None);
        }
        let (saves, asked) = tokio::sync::mpsc::channel(1);
        (Some(saves), Some(asked))
    }

    /// Takes an outcome down. What the handler settled while it ran goes before what it returned.
    fn end(&self, task: &Task, entry: &Entry, returned: Outcome) {
        let mut progress = entry.progress();
        let Some(attempt) = progress.running.take() else { return };
        let heard = attempt.heard();
        let now = self.budget.now();
        let state = progress.task(&task.name);
        state.steps = heard.steps;
        let status = match heard.settled.unwrap_or(returned) {
            Outcome::Done => {
                state.status = Status::Done;
                (state.error, state.due_ms) = (None, None);
                Status::Done
            }
            Outcome::Reject { reason } => {
                state.status = Status::Rejected;
                state.error = Some(reason);
                Status::Rejected
            }
            Outcome::Retry { after, error } => {
                let status = progress.fail(self.settings, &task.name, 1, error);
                let due = after.map(|after: Duration| now.plus(after).as_millis());
                if status == Status::Pending {
                    progress.task(&task.name).due_ms = due;
                }
                status
            }
        };
        drop(progress);
        self.count(task, |counts| match status {
            Status::Done => counts.done += 1,
            Status::Rejected => counts.rejected += 1,
            Status::Exhausted => counts.exhausted += 1,
            Status::Pending | Status::Abandoned => counts.retried += 1,
        });
    }

    /// Counts what was running when the time was up, as far as nothing was settled by then.
    pub(super) fn freeze(&self) {
        for entry in &self.entries {
            {
                // It was being noted that a call runs. Whether it does or not, it is not to be taken for a kill.
                let mut progress = entry.progress();
                if progress.state.running.take().is_some() {
                    progress.state.lost = false;
                    progress.unsure = true;
                }
            }
            let running =
                entry.progress().running.as_ref().map(|attempt| Arc::clone(&attempt.task));
            let Some(name) = running else { continue };
            let Some(task) = self.settings.tasks.iter().find(|task| task.name == name) else {
                continue;
            };
            self.count(task, |counts| counts.hangs += 1);
            self.end(task, entry, Outcome::retry("the handler did not end in time"));
        }
    }

    fn count(&self, task: &Task, change: impl FnOnce(&mut TaskReport)) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(tasks.entry(task.name.to_string()).or_default());
    }

    /// Adds what was counted while handlers ran.
    pub(super) fn add_counts(&self, report: &mut Report) {
        let counted = std::mem::take(
            &mut *self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        for (name, more) in counted {
            let task = report.tasks.entry(name).or_default();
            task.calls += more.calls;
            task.done += more.done;
            task.retried += more.retried;
            task.rejected += more.rejected;
            task.exhausted += more.exhausted;
            task.panics += more.panics;
            task.hangs += more.hangs;
            task.took += more.took;
        }
    }

    /// In a careful run, saves what became of a message at once. When that fails, nothing else runs: were the process
    /// killed by another, this one would be blamed.
    async fn save_now(&self, entry: &Entry) {
        if self.careful && !self.save_one(entry).await {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Saves the state of one message; `false` when that failed.
    pub(super) async fn save_one(&self, entry: &Entry) -> bool {
        let Some((scope, position)) = super::load::place(entry) else { return true };
        let (base, now) = {
            let progress = entry.progress();
            (progress.base.clone(), progress.state.clone())
        };
        let changes = vec![Change { position, base, now }];
        let mut saved = self.settings.state.save(&self.address(&scope), changes).await;
        match saved.pop() {
            Some(Ok(stored)) => {
                self.saved.fetch_add(1, Ordering::Relaxed);
                let mut progress = entry.progress();
                progress.state = stored.state.clone();
                progress.base = Some(stored);
                true
            }
            Some(Err(error)) => {
                self.note(error.to_string(), error.is_fatal());
                false
            }
            None => false,
        }
    }
}
