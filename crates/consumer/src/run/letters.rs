//! Letters about dead messages and records.

use std::sync::Arc;

use super::batch::Batch;
use super::entry::{Entry, Subject};
use crate::identity::digest;
use crate::limits::LETTERS_AT_A_TIME;
use crate::message::dedupe_id;
use crate::position::Position;
use crate::report::Report;
use crate::sink::{Body, DeadLetter, Kind, Letter, Reason, Sink, SinkError, SourceName};

impl Batch<'_> {
    /// Sends a letter for each entry that is dead and not with a sink yet, and notes the receipts.
    pub(super) async fn bury(&self, report: &mut Report) {
        let mut messages: Vec<(&Entry, DeadLetter)> = Vec::new();
        let mut records: Vec<(&Entry, DeadLetter)> = Vec::new();
        for entry in &self.entries {
            let dead = {
                let progress = entry.progress();
                if progress.is_finished(self.settings) {
                    continue;
                }
                progress.dead(self.settings)
            };
            let Some((reason, detail)) = dead else { continue };
            let letter = self.letter(entry, reason, detail);
            match letter.kind {
                Kind::Message => messages.push((entry, letter)),
                Kind::Record => records.push((entry, letter)),
            }
        }
        let sends =
            [(&self.settings.dead_records, records), (&self.settings.dead_messages, messages)];
        for (sink, letters) in sends {
            for some in letters.chunks(LETTERS_AT_A_TIME) {
                if self.budget.until_letters(self.send(sink, some, report)).await.is_none() {
                    self.note("a sink did not answer in time".into(), false);
                    return;
                }
            }
        }
    }

    async fn send(&self, sink: &Arc<dyn Sink>, dead: &[(&Entry, DeadLetter)], report: &mut Report) {
        let mut letters = Vec::with_capacity(dead.len());
        let mut sent = Vec::with_capacity(dead.len());
        for (entry, letter) in dead {
            match self.fitted(sink.bytes_max(), letter).await {
                Ok(fitted) => {
                    letters.push(fitted);
                    sent.push((*entry, letter.reason));
                }
                Err(error) => self.note(error.to_string(), error.is_fatal()),
            }
        }
        if letters.is_empty() {
            return;
        }
        let mut receipts = sink.put(letters).await.into_iter();
        for (entry, reason) in sent {
            let none = || Err(SinkError::Unavailable("it gave no receipt".into()));
            match receipts.next().unwrap_or_else(none) {
                Ok(_) => {
                    let mut progress = entry.progress();
                    progress.buried = true;
                    progress.state.dead = Some(reason);
                    *report.dead.entry(reason).or_default() += 1;
                }
                Err(error) => self.note(error.to_string(), error.is_fatal()),
            }
        }
    }

    /// The letter as its sink can take it: whole, or small with the whole in an object.
    async fn fitted(&self, limit: usize, letter: &DeadLetter) -> Result<Letter, SinkError> {
        let mut body = letter.encode();
        if body.len() > limit {
            let size = body.len();
            let spill = self.settings.spill.as_ref().ok_or(SinkError::TooLarge { size, limit })?;
            let small = spill.spill(letter, body).await.map_err(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                SinkError::Unavailable(format!("{error}: {}", cause.unwrap_or_default()))
            })?;
            body = small.encode();
            if body.len() > limit {
                return Err(SinkError::TooLarge { size: body.len(), limit });
            }
        }
        let group = letter.partition_key.clone();
        Ok(Letter { dedupe_id: letter.dedupe_id.clone(), group, body })
    }

    fn letter(&self, entry: &Entry, reason: Reason, detail: String) -> DeadLetter {
        let history = entry.progress().state.tasks.clone();
        let tasks = history.iter().map(|(name, task)| (name.clone(), task.into())).collect();
        let letter = match &entry.subject {
            // Nothing is dead before it is read, or given up for that.
            Subject::Unread(unread) => {
                let id = digest(&unread.record.raw);
                let raw = Some(Body::of(&unread.record.raw));
                DeadLetter { raw, ..DeadLetter::new(Kind::Record, reason, detail, id) }
            }
            Subject::Message(content) => {
                let kind = if reason == Reason::Unusable { Kind::Record } else { Kind::Message };
                DeadLetter {
                    source: Some(SourceName::from(content.scope.as_ref())),
                    sub: content.position.sub,
                    part: content.position.part,
                    id: content.id.clone(),
                    key: content.key.clone(),
                    partition_key: content.partition_key.clone(),
                    arrived_ms: content.arrived.map(millpond_store::Timestamp::as_millis),
                    message: Some(Body::of(&content.payload)),
                    // Where a record is nothing but its message, it is in the letter once.
                    raw: Some(content.raw.bytes(content.partition_key.as_deref()))
                        .filter(|raw| *raw != content.payload)
                        .map(|raw| Body::of(&raw)),
                    ..DeadLetter::new(kind, reason, detail, content.dedupe_id())
                        .about(&content.position.record)
                }
            }
            Subject::Record(record) => {
                let id = match (&record.scope, &record.key) {
                    (Some(scope), Some(key)) => {
                        dedupe_id(&self.settings.name, scope, &Position::of(key.clone()))
                    }
                    // All that is known of it is what it is.
                    _ => digest(&[self.settings.name.as_bytes(), &[0], &record.raw].concat()),
                };
                let letter = DeadLetter::new(Kind::Record, reason, detail, id);
                DeadLetter {
                    source: record.scope.as_deref().map(SourceName::from),
                    raw: Some(Body::of(&record.raw)),
                    ..match &record.key {
                        Some(key) => letter.about(key),
                        None => letter,
                    }
                }
            }
        };
        DeadLetter {
            consumer: self.settings.name.to_string(),
            died_ms: self.budget.now().as_millis(),
            tasks,
            ..letter
        }
    }
}
