//! Runs the extractor, which may hang or kill its process as a handler may.
//!
//! It runs once the batch's marker is there, in a task of its own. When an earlier delivery was killed, it gets one record at a
//! time, each noted before: the one that is found still being read is the killer. Attempts are counted as those of a task.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::batch::Batch;
use super::call::{Ended, call};
use super::entry::{Entry, Subject};
use super::messages::{Found, Messages};
use super::prepare::Unread;
use crate::extract;
use crate::report::Report;
use crate::sink::Reason;
use crate::state::Status;

/// What reading is called in rows, letters and reports. No task has a slash in its name.
pub(super) const READ: &str = "record/read";

/// The place of the entry that is being read, for who finds that it hangs.
#[derive(Debug, Clone)]
pub(super) struct Reading(Arc<AtomicUsize>);

impl Reading {
    const NONE: usize = usize::MAX;

    pub fn none() -> Self {
        Self(Arc::new(AtomicUsize::new(Self::NONE)))
    }

    fn set(&self, place: usize) {
        self.0.store(place, Ordering::Release);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Batch<'_> {
    /// Reads what is not read yet, at once: for extractors that do no harm.
    pub(super) fn read_at_once(&mut self, report: &mut Report) {
        let extractor = self.settings.extractor.as_ref();
        let read =
            |(place, unread): (usize, Arc<Unread>)| (place, extract::run(extractor, &unread.data));
        let found = self.unread().map(read).collect();
        self.put_messages(found, report);
    }

    /// Reads what is not read yet, as far as there is time: what is left comes again.
    pub(super) async fn read(&mut self, report: &mut Report) {
        if self.entries.iter().all(|entry| !entry.progress().unread) {
            return;
        }
        let dangerous = |entry: &Entry| entry.progress().is_dangerous_to_read(self.settings);
        let unread: Vec<_> = self.unread().collect();
        let found = if self.entries.iter().any(dangerous) {
            self.read_one_by_one(unread).await
        } else {
            self.read_all(unread).await
        };
        self.put_messages(found, report);
        report.cut_off |= self.entries.iter().any(|entry| entry.progress().unread);
    }

    /// What is to be read, with its place.
    fn unread(&self) -> impl Iterator<Item = (usize, Arc<Unread>)> {
        self.entries.iter().enumerate().filter_map(|(place, entry)| match &entry.subject {
            Subject::Unread(unread) if given_up(entry).is_none() => {
                Some((place, Arc::clone(unread)))
            }
            _ => None,
        })
    }

    async fn read_all(&self, unread: Vec<(usize, Arc<Unread>)>) -> Vec<(usize, Found)> {
        let extractor = Arc::clone(&self.settings.extractor);
        let (budget, reading) = (self.budget.clone(), self.reading.clone());
        let work = async move {
            let mut found = Vec::with_capacity(unread.len());
            for (place, unread) in unread {
                if !found.is_empty() && !budget.may_read() {
                    break;
                }
                reading.set(place);
                found.push((place, extract::run(extractor.as_ref(), &unread.data)));
            }
            reading.set(Reading::NONE);
            found
        };
        match call(self.settings.environment.clock.as_ref(), work).await.0 {
            Ended::Returned(found) => found,
            Ended::Panicked(error) => {
                self.note(error, false);
                Vec::new()
            }
        }
    }

    async fn read_one_by_one(&self, unread: Vec<(usize, Arc<Unread>)>) -> Vec<(usize, Found)> {
        let mut found = Vec::new();
        for (place, unread) in unread {
            let Some(entry) = self.entries.get(place) else { continue };
            if !found.is_empty() && !self.budget.may_read() || !self.note_reading(entry).await {
                break;
            }
            found.extend(self.read_all(vec![(place, unread)]).await);
            entry.progress().state.tasks.remove(READ);
            if !self.save_one(entry).await {
                // The row still says that it is being read: were the process killed by another, it would be blamed.
                entry.progress().unsure = true;
                self.stopped.store(true, Ordering::Relaxed);
                break;
            }
        }
        found
    }

    /// Notes that an entry is being read; `false` when that failed: then it must not be.
    async fn note_reading(&self, entry: &Entry) -> bool {
        {
            let mut progress = entry.progress();
            progress.state.lost = progress.lost;
            progress.state.running = Some(READ.into());
        }
        let noted = self.save_one(entry).await;
        let mut progress = entry.progress();
        (progress.state.running, progress.state.lost) = (None, false);
        progress.unsure |= !noted;
        noted
    }

    /// Counts an attempt for what was being read when the time was up. `false` when there is nothing to be saved of that.
    pub(super) fn stop_reading(&self, report: &mut Report) -> bool {
        let mut unsure = false;
        for entry in &self.entries {
            let mut progress = entry.progress();
            // It was being noted that it is read. It is not, and must not be taken for a kill.
            if progress.known && progress.state.running.take().is_some() {
                (progress.state.lost, progress.unsure, unsure) = (false, true, true);
            }
        }
        let Some(entry) = self.entries.get(self.reading.get()) else {
            self.note("the state did not answer in time".into(), false);
            return unsure;
        };
        let error = "the extractor did not end in time";
        self.note(format!("{error} for record {}", entry.item().unwrap_or_default()), false);
        let status = entry.progress().fail(self.settings, READ, 1, error.into());
        let counts = report.tasks.entry(READ.to_owned()).or_default();
        counts.hangs += 1;
        match status {
            Status::Exhausted => counts.exhausted += 1,
            _ => counts.retried += 1,
        }
        true
    }

    fn put_messages(&mut self, found: Vec<(usize, Found)>, report: &mut Report) {
        let mut found: HashMap<usize, Found> = found.into_iter().collect();
        let entries = std::mem::take(&mut self.entries);
        let mut messages = Messages { settings: self.settings, report, entries: Vec::new() };
        for (place, entry) in entries.into_iter().enumerate() {
            let unread = match &entry.subject {
                Subject::Unread(unread) => Arc::clone(unread),
                _ => {
                    messages.entries.push(entry);
                    continue;
                }
            };
            let (index, verdict) = (entry.index, given_up(&entry));
            match (found.remove(&place), verdict) {
                (Some(found), _) => {
                    let mut known = entry.into_progress();
                    known.state.tasks.remove(READ);
                    messages.add(&unread, index, known, found);
                }
                (None, Some(verdict)) => {
                    messages.refuse(&unread, index, entry.into_progress(), verdict);
                }
                (None, None) => messages.entries.push(entry),
            }
        }
        self.entries = messages.entries;
        report.messages = self.entries.iter().filter(|entry| entry.content().is_some()).count();
    }
}

/// Why an entry is not read any more, if it is not.
fn given_up(entry: &Entry) -> Option<(Reason, String)> {
    let progress = entry.progress();
    let task = progress.state.tasks.get(READ).filter(|task| task.status == Status::Exhausted)?;
    let error = task.error.as_deref().unwrap_or("no reason was given");
    Some((Reason::Exhausted, format!("{READ}: {error}")))
}
