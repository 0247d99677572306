//! What earlier deliveries left: state, markers, duplicates.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::batch::Batch;
use super::entry::{Entry, Progress, Subject};
use super::read::READ;
use crate::identity::digest;
use crate::position::{Position, RecordKey};
use crate::report::Report;
use crate::settings::{Duplicates, Settings};
use crate::sink::Reason;
use crate::source::Scope;
use crate::state::{Address, Known, Marker, MessageState, Span, StateError, Status, Stored};

impl Batch<'_> {
    /// Notes that the batch begins, reads the state of all messages, and on the way the messages themselves.
    pub(super) async fn load(&mut self, report: &mut Report) -> Result<(), StateError> {
        for (scope, entries) in self.scopes() {
            if !scope.kind.is_stream() {
                continue;
            }
            let address = self.address(&scope);
            let marker = self.open(&address, &entries).await?;
            let suspect = marker.as_ref().is_some_and(|marker| marker.suspect);
            for entry in self.pick(&entries) {
                entry.progress().suspect = suspect;
            }
            self.markers.extend(marker.map(|marker| (address, marker)));
        }
        self.load_rows(report).await?;
        self.read(report).await;
        // Bytes may come to several messages, each with its row.
        self.load_rows(report).await?;
        for entry in &self.entries {
            self.reconsider(entry);
            let mut progress = entry.progress();
            progress.finished_before =
                progress.base.is_some() && progress.is_finished(self.settings);
        }
        self.skip_duplicates(report).await?;
        self.careful = self.entries.iter().any(|entry| {
            let progress = entry.progress();
            let dangerous = progress.suspect || progress.state.kills > 0;
            dangerous && !progress.is_settled(self.settings)
        });
        report.careful = self.careful;
        Ok(())
    }

    async fn open(
        &self,
        address: &Address,
        entries: &[usize],
    ) -> Result<Option<Marker>, StateError> {
        let records = self.pick(entries).filter_map(place).map(|(_, position)| position.record);
        match Span::of(records.collect()) {
            Some(span) => self.settings.state.open(address, span).await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes over and judges what is stored, where that was not done yet.
    async fn load_rows(&self, report: &mut Report) -> Result<(), StateError> {
        for (scope, entries) in self.scopes() {
            self.load_some(&self.address(&scope), &entries).await?;
        }
        for entry in &self.entries {
            let known = std::mem::replace(&mut entry.progress().known, true);
            if !known {
                recover(self.settings, entry, report);
            }
        }
        Ok(())
    }

    async fn load_some(&self, address: &Address, entries: &[usize]) -> Result<(), StateError> {
        // What a queue delivers for the first time has no state.
        let stored = |entry: &&Entry| entry.receives().is_none_or(|receives| receives > 1);
        let asked: Vec<(&Entry, Position)> = self
            .pick(entries)
            .filter(|entry| !entry.progress().known)
            .filter(stored)
            .filter_map(|entry| place(entry).map(|(_, position)| (entry, position)))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let positions: Vec<Position> = asked.iter().map(|(_, position)| position.clone()).collect();
        let rows = self.settings.state.load(address, &positions).await?;
        for ((entry, _), row) in asked.into_iter().zip(rows) {
            adopt(entry, row);
        }
        Ok(())
    }

    /// Drops a verdict that was given before the state was known, where that says how the message ended: what is done is
    /// not dead for growing old, nor for a key or an extractor that was set later. What was tried does not expire.
    fn reconsider(&self, entry: &Entry) {
        let mut progress = entry.progress();
        if !progress.provisional {
            return;
        }
        let refused = matches!(progress.verdict, Some((Reason::Unusable, _)));
        if refused && progress.state.many {
            // The row is that of one message of several, and nobody knows what became of the others.
            progress.state.dead = progress.state.dead.filter(|dead| *dead == Reason::Unusable);
            return;
        }
        // What cannot be read cannot be gathered.
        if refused && self.window.is_some() && self.settings.windows.fold.is_some() {
            return;
        }
        let verdict = progress.verdict.take();
        let expired = matches!(verdict, Some((Reason::Expired, _)));
        let decided = progress.is_settled(self.settings) || (expired && progress.was_tried());
        if !decided {
            progress.verdict = verdict;
        }
    }

    /// Skips messages that have the id of another, as the policy says; differences are reported under any policy.
    async fn skip_duplicates(&self, report: &mut Report) -> Result<(), StateError> {
        let skip = matches!(self.settings.duplicates, Duplicates::Skip { .. });
        let mut first: HashMap<(Arc<Scope>, String), &Entry> = HashMap::new();
        let mut firsts: BTreeMap<Arc<Scope>, Vec<&Entry>> = BTreeMap::new();
        for entry in self.in_order() {
            let Some(content) = entry.content() else { continue };
            let Some(id) = &content.id else { continue };
            let known = (Arc::clone(&content.scope), id.clone());
            let Some(original) = first.get(&known).and_then(|entry| entry.content()) else {
                first.insert(known, entry);
                firsts.entry(Arc::clone(&content.scope)).or_default().push(entry);
                continue;
            };
            if original.payload != content.payload {
                report.warn(differs(id, &content.position, &original.position));
            }
            if skip {
                self.skip(entry, report);
            }
        }
        if !skip {
            return Ok(());
        }
        for (scope, entries) in firsts {
            let ids: Vec<String> =
                entries.iter().filter_map(|entry| entry.content()?.id.clone()).collect();
            let known = self.settings.state.recall(&self.address(&scope), &ids).await?;
            for (entry, known) in entries.into_iter().zip(known) {
                let (Some(content), Some(known)) = (entry.content(), known) else { continue };
                let Known { id, position, digest: sum } = known;
                if position == content.position {
                    continue;
                }
                if sum != digest(&content.payload) {
                    report.warn(differs(&id, &content.position, &position));
                }
                self.skip(entry, report);
            }
        }
        Ok(())
    }

    fn skip(&self, entry: &Entry, report: &mut Report) {
        let mut progress = entry.progress();
        if progress.is_settled(self.settings) {
            return;
        }
        progress.duplicate = true;
        for task in &self.settings.tasks {
            progress.task(&task.name).status = Status::Done;
        }
        report.duplicates += 1;
    }
}

fn differs(id: &str, position: &Position, original: &Position) -> String {
    let id = crate::outcome::cut(id);
    format!("message {position} has the id {id} of {original}, and other bytes")
}

/// Where an entry's state is kept; nowhere when its record does not say what it is.
pub(super) fn place(entry: &Entry) -> Option<(Arc<Scope>, Position)> {
    match &entry.subject {
        Subject::Unread(unread) => Some((Arc::clone(&unread.record.scope), unread.position())),
        Subject::Message(content) => Some((Arc::clone(&content.scope), content.position.clone())),
        Subject::Record(record) => {
            let key: RecordKey = record.key.clone()?;
            Some((record.scope.clone()?, Position::of(key)))
        }
    }
}

/// Takes over what is stored of an entry.
fn adopt(entry: &Entry, row: Option<Stored>) {
    let mut progress = entry.progress();
    if let Some(row) = &row {
        let many = progress.state.many || row.state.many;
        progress.state = MessageState { many, ..row.state.clone() };
    }
    progress.base = row;
    if let Some(receives) = entry.receives() {
        // A delivery that left no trace was killed, or never came to its function.
        progress.suspect = receives.saturating_sub(1) > progress.state.seen;
    }
}

/// Judges what earlier deliveries left: kills, renamed and removed tasks, limits that were lowered.
fn recover(settings: &Settings, entry: &Entry, report: &mut Report) {
    let mut progress = entry.progress();
    rename(settings, &mut progress);
    let known = progress.state.running.is_some() || progress.state.kills > 0;
    progress.lost = progress.suspect && !known;
    if let Some(name) = progress.state.running.take() {
        // The call that was noted, and the one before it that made this delivery careful.
        let made = 1 + u32::from(std::mem::take(&mut progress.state.lost));
        progress.state.kills = progress.state.kills.saturating_add(1);
        let running = settings.aliases.get(&name).map_or(name, ToString::to_string);
        let counts = report.tasks.entry(running.clone()).or_default();
        counts.kills += 1;
        if progress.fail(settings, &running, made, "the process was killed".into())
            == Status::Exhausted
        {
            counts.exhausted += 1;
        }
    }
    let known = |name: &str| name == READ || settings.tasks.iter().any(|task| *task.name == *name);
    for (name, task) in &mut progress.state.tasks {
        if task.status != Status::Pending {
            continue;
        }
        if !known(name) {
            task.status = Status::Abandoned;
            let last = task
                .error
                .take()
                .map_or_else(String::new, |error| format!("; it had failed: {error}"));
            task.error = Some(crate::outcome::cut(&format!("the task was removed{last}")));
            report.tasks.entry(name.clone()).or_default().abandoned += 1;
        } else if task.attempts >= settings.attempts {
            task.status = Status::Exhausted;
            report.tasks.entry(name.clone()).or_default().exhausted += 1;
        }
    }
}

fn rename(settings: &Settings, progress: &mut Progress) {
    for (former, now) in &settings.aliases {
        let Some(task) = progress.state.tasks.remove(former) else { continue };
        let current = progress.task(now);
        if !current.status.is_ended() && current.attempts <= task.attempts {
            *current = task;
        }
    }
}
