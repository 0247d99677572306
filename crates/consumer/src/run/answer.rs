//! What comes again, and what is said about it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::batch::Batch;
use super::entry::Entry;
use super::load::place;
use crate::report::Report;
use crate::response::Responses;
use crate::source::{Scope, SourceKind};

/// How a batch ended.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What a partial response names. One empty name stands for the whole batch.
    pub items: Vec<String>,
    /// The shortest time that a handler asked to wait, by item.
    pub waits: HashMap<String, Duration>,
    /// What a tumbling window is to go on with.
    pub state: Option<Box<RawValue>>,
    pub report: Report,
}

/// Which entries are not finished, and which come again for that.
#[derive(Debug)]
pub(super) struct Unfinished {
    items: Vec<String>,
    open: HashSet<usize>,
    again: HashSet<usize>,
}

impl Unfinished {
    pub fn of(batch: &Batch<'_>) -> Self {
        let open: HashSet<usize> = batch
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| !entry.progress().is_finished(batch.settings))
            .map(|(at, _)| at)
            .collect();
        let all = || (0..batch.entries.len()).collect();
        let mut unfinished = Self { items: Vec::new(), again: HashSet::new(), open };
        if batch.window_open {
            unfinished.items = vec![String::new()];
            unfinished.again = all();
            return unfinished;
        }
        if unfinished.open.is_empty() {
            return unfinished;
        }
        let nameless = unfinished
            .open
            .iter()
            .any(|at| batch.entries.get(*at).is_none_or(|entry| entry.item().is_none()));
        if nameless {
            // A record without a name can only come again with all others.
            unfinished.items = vec![String::new()];
            unfinished.again = all();
            return unfinished;
        }
        // A record that does not say where it is from is like the others of its batch.
        let mut kinds = batch.entries.iter().filter_map(place).map(|(scope, _)| scope.kind);
        if kinds.any(SourceKind::is_stream) {
            unfinished.take_from_the_lowest(batch);
        } else {
            unfinished.take_one_by_one(batch);
        }
        if batch.settings.responses == Responses::Error {
            unfinished.again = all();
        }
        unfinished
    }

    /// Of a stream, everything from the lowest unfinished record on comes again.
    fn take_from_the_lowest(&mut self, batch: &Batch<'_>) {
        let sequence = |entry: &Entry| crate::position::Sequence::new(entry.item()?);
        let open = self.open.iter().filter_map(|at| batch.entries.get(*at));
        let lowest = open.filter_map(|entry| sequence(entry).map(|number| (number, entry)));
        let Some((lowest, entry)) = lowest.min_by(|(a, _), (b, _)| a.cmp(b)) else {
            self.items = vec![String::new()];
            self.again = (0..batch.entries.len()).collect();
            return;
        };
        self.items = entry.item().map(str::to_owned).into_iter().collect();
        let entries = batch.entries.iter().enumerate();
        let behind =
            entries.filter(|(_, entry)| sequence(entry).is_none_or(|number| number >= lowest));
        self.again = behind.map(|(at, _)| at).collect();
    }

    /// Of a queue, each unfinished message comes again, and of a FIFO queue with it the rest of its group.
    fn take_one_by_one(&mut self, batch: &Batch<'_>) {
        let mut again: HashSet<&str> = batch.pick_set(&self.open).filter_map(Entry::item).collect();
        let mut groups: HashMap<(Arc<Scope>, Option<&str>), &Entry> = HashMap::new();
        for entry in batch.pick_set(&self.open) {
            let Some(group) = group_of(entry) else { continue };
            let first = groups.entry(group).or_insert(entry);
            if is_before(entry, first) {
                *first = entry;
            }
        }
        for entry in &batch.entries {
            let Some(group) = group_of(entry) else { continue };
            if let Some(first) = groups.get(&group)
                && is_before(first, entry)
            {
                again.extend(entry.item());
            }
        }
        // In the order of the event, each once.
        let mut named = HashSet::new();
        for (at, entry) in batch.entries.iter().enumerate() {
            let Some(item) = entry.item().filter(|item| again.contains(item)) else { continue };
            self.again.insert(at);
            if named.insert(item) {
                self.items.push(item.to_owned());
            }
        }
    }

    /// Whether nothing comes again.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn comes_again(&self, at: usize) -> bool {
        self.again.contains(&at)
    }
}

/// The group that a message of a FIFO queue must keep its place in.
fn group_of(entry: &Entry) -> Option<(Arc<Scope>, Option<&str>)> {
    let content = entry.content()?;
    let strict = matches!(content.scope.kind, SourceKind::SqsFifo | SourceKind::Queue)
        && content.sequence.is_some();
    strict.then(|| (Arc::clone(&content.scope), content.partition_key.as_deref()))
}

fn is_before(a: &Entry, b: &Entry) -> bool {
    match (a.content(), b.content()) {
        (Some(a), Some(b)) => (&a.sequence, a.index) < (&b.sequence, b.index),
        _ => false,
    }
}

impl Batch<'_> {
    fn pick_set<'b>(&'b self, places: &'b HashSet<usize>) -> impl Iterator<Item = &'b Entry> {
        places.iter().filter_map(|at| self.entries.get(*at))
    }

    /// Sums the batch up.
    pub(super) async fn answer(self, mut report: Report) -> Answer {
        let unfinished = Unfinished::of(&self);
        report.unfinished = unfinished.open.len();
        report.finished = self.entries.len() - unfinished.open.len();
        let before = |entry: &&Entry| entry.progress().finished_before;
        report.finished_before = self.entries.iter().filter(before).count();
        let untried = |entry: &&Entry| {
            let progress = entry.progress();
            !progress.tried && !progress.is_settled(self.settings)
        };
        report.unstarted = self.pick_set(&unfinished.open).filter(untried).count();
        let now = self.budget.now().as_millis();
        let mut waits: HashMap<String, Duration> = HashMap::new();
        for entry in self.pick_set(&unfinished.open) {
            let progress = entry.progress();
            let due = progress.state.tasks.values().filter_map(|task| task.due_ms).min();
            if let (Some(item), Some(due)) = (entry.item(), due) {
                let wait = Duration::from_millis(due.saturating_sub(now));
                let known = waits.entry(item.to_owned()).or_insert(wait);
                *known = wait.min(*known);
            }
        }
        if let Some(fatal) = self.take_noted(&mut report) {
            self.trip(&fatal, &mut report).await;
        }
        let state = self.window_state(&unfinished, &mut report);
        report.took = self.budget.spent();
        if let Some(hook) = &self.settings.hooks.after {
            let told = self.budget.until_end(self.tell(hook, &report)).await;
            super::finish::heard(told, &mut report, "after the batch");
        }
        report.log();
        Answer { items: unfinished.items, waits, state, report }
    }

    /// Stops the source, when that is set: every delivery would fail as this one did.
    async fn trip(&self, reason: &str, report: &mut Report) {
        let Some(breaker) = &self.settings.breaker else { return };
        let Some((scope, _)) = self.entries.iter().find_map(place) else { return };
        match self.budget.until_finish(breaker.trip(&scope, reason)).await {
            Some(Ok(mapping)) => report.tripped = Some(mapping),
            Some(Err(error)) => report.problem(error.to_string()),
            None => report.problem("the breaker did not answer in time".into()),
        }
    }
}
