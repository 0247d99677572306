//! The end of a batch: letters, state, markers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::answer::Unfinished;
use super::batch::Batch;
use super::call::{Ended, call};
use super::entry::Entry;
use super::load::place;
use crate::identity::digest;
use crate::position::RecordKey;
use crate::report::Report;
use crate::settings::Duplicates;
use crate::source::Scope;
use crate::state::{Change, Known, StateError};
use crate::task::Afterwards;

impl Batch<'_> {
    /// Sends letters and saves state, as long as there is time.
    pub(super) async fn finish(&mut self, report: &mut Report) {
        if let Some(hook) = &self.settings.hooks.before_finish {
            let told = self.budget.until_hook(self.tell(hook, report)).await;
            heard(told, report, "before the finish");
        }
        self.bury(report).await;
        let budget = self.budget.clone();
        if budget.until_finish(self.save_all()).await.is_none() {
            self.note("the state was not saved in time".into(), false);
        }
    }

    /// Ends a batch of which nothing was run.
    pub(super) async fn finish_unrun(&mut self) {
        let budget = self.budget.clone();
        if budget.until_finish(self.save_all()).await.is_none() {
            self.note("the state was not saved in time".into(), false);
        }
    }

    /// Runs a hook that is only told.
    pub(super) async fn tell(&self, hook: &Afterwards, report: &Report) -> Ended<()> {
        let (hook, told) = (Arc::clone(hook), report.clone());
        let clock = self.settings.environment.clock.as_ref();
        call(clock, async move { hook(told).await }).await.0
    }

    async fn save_all(&mut self) {
        let unfinished = Unfinished::of(self);
        let mut changes: BTreeMap<Arc<Scope>, Vec<(usize, Change)>> = BTreeMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some((scope, position)) = place(entry) else { continue };
            if let Some((base, now)) = self.change(at, entry, &unfinished) {
                changes.entry(scope).or_default().push((at, Change { position, base, now }));
            }
        }
        for (scope, changes) in changes {
            let (places, changes): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
            let outcomes = self.settings.state.save(&self.address(&scope), changes).await;
            for (entry, outcome) in self.pick(&places).zip(outcomes) {
                match outcome {
                    Ok(stored) => {
                        self.saved.fetch_add(1, Ordering::Relaxed);
                        entry.progress().base = Some(stored);
                    }
                    Err(error) => self.note(error.to_string(), error.is_fatal()),
                }
            }
        }
        let remembered = self.remember().await;
        let closed = self.close(unfinished.is_empty()).await;
        for error in remembered.err().into_iter().chain(closed.err()) {
            self.note(error.to_string(), error.is_fatal());
        }
    }

    /// What is to be saved of an entry: nothing, unless it comes again with something to know, or has a row already.
    fn change(
        &self,
        at: usize,
        entry: &Entry,
        unfinished: &Unfinished,
    ) -> Option<(Option<crate::state::Stored>, crate::state::MessageState)> {
        let mut progress = entry.progress();
        let finished = progress.is_finished(self.settings);
        // Where the source counts deliveries, one that ended as it should is told by this from one that was killed.
        if let Some(receives) = entry.receives()
            && !finished
            && !progress.suspect
        {
            progress.state.seen = progress.state.seen.max(receives);
        }
        let known = progress.base.as_ref().map(|base| &base.state);
        let changed = known != Some(&progress.state);
        let worth = match known {
            Some(_) => changed,
            // Who has it now must know.
            None if finished => unfinished.comes_again(at) || self.lost.has_entry(entry),
            None => !progress.state.is_empty(),
        };
        (worth || progress.unsure).then(|| (progress.base.clone(), progress.state.clone()))
    }

    /// Remembers the ids of finished messages, where duplicates are skipped.
    async fn remember(&self) -> Result<(), StateError> {
        let Duplicates::Skip { window } = self.settings.duplicates else {
            return Ok(());
        };
        let mut known: BTreeMap<Arc<Scope>, Vec<Known>> = BTreeMap::new();
        for entry in &self.entries {
            let Some(content) = entry.content() else { continue };
            let progress = entry.progress();
            let fresh = !progress.duplicate && !progress.finished_before;
            if let (true, true, Some(id)) =
                (fresh, progress.is_finished(self.settings), &content.id)
            {
                let (position, digest) = (content.position.clone(), digest(&content.payload));
                let one = Known { id: id.clone(), position, digest };
                known.entry(Arc::clone(&content.scope)).or_default().push(one);
            }
        }
        for (scope, known) in known {
            self.settings.state.remember(&self.address(&scope), known, window).await?;
        }
        Ok(())
    }

    /// Closes the markers of a batch that comes again in part, or was careful. A batch that is all finished leaves its
    /// marker to expire: that is its one write.
    pub(super) async fn close(&mut self, all_finished: bool) -> Result<(), StateError> {
        if all_finished && !self.careful {
            return Ok(());
        }
        for (address, marker) in std::mem::take(&mut self.markers) {
            let left: Vec<RecordKey> = self
                .entries
                .iter()
                .filter(|entry| {
                    let progress = entry.progress();
                    progress.suspect && !progress.is_settled(self.settings)
                })
                .filter_map(place)
                .filter(|(scope, _)| *scope == address.scope)
                .map(|(_, position)| position.record)
                .collect();
            self.settings.state.close(&address, marker, left).await?;
        }
        Ok(())
    }
}

/// Takes down what became of a hook that is only told: whatever it does, the batch goes on.
pub(super) fn heard(told: Option<Ended<()>>, report: &mut Report, when: &str) {
    match told {
        Some(Ended::Returned(())) => {}
        Some(Ended::Panicked(error)) => report.warn(format!("the hook {when} failed: {error}")),
        None => report.warn(format!("the hook {when} did not end in time")),
    }
}
