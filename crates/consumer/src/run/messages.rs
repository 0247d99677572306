//! From what an extractor found to messages: identification, age.

use std::sync::Arc;

use super::entry::{Entry, Progress, Subject};
use super::prepare::Unread;
use crate::extract::Extracted;
use crate::limits::MESSAGES_MAX;
use crate::message::{Content, RawRecord};
use crate::position::Position;
use crate::report::Report;
use crate::settings::Settings;
use crate::sink::Reason;
use crate::source::Unusable;

/// What an extractor found in some bytes, or why it found nothing.
pub(super) type Found = Result<Vec<Extracted>, String>;

/// Puts messages in the place of bytes.
pub(super) struct Messages<'a> {
    pub settings: &'a Settings,
    pub report: &'a mut Report,
    pub entries: Vec<Entry>,
}

impl Messages<'_> {
    /// The messages that were found in `unread`. What is known of that is known of the first of them.
    pub fn add(&mut self, unread: &Unread, index: usize, mut known: Progress, found: Found) {
        known.unread = false;
        let found = match found {
            Ok(found) if self.entries.len() + found.len() <= MESSAGES_MAX => found,
            Ok(found) => {
                let reason = format!(
                    "the batch comes to more than {MESSAGES_MAX} messages, with {} in this record",
                    found.len()
                );
                return self.refuse(unread, index, known, (Reason::Unusable, reason));
            }
            Err(reason) => {
                return self.refuse(unread, index, known, (Reason::Unusable, reason));
            }
        };
        let many = found.len() > 1;
        let suspect = known.suspect;
        let mut known = Some(known);
        for (part, one) in (0_u32..).zip(found) {
            let fresh = || Progress { suspect, ..Progress::default() };
            let mut progress = known.take().unwrap_or_else(fresh);
            if unread.part.is_some_and(|meant| meant != part) {
                continue;
            }
            progress.state.many |= many;
            let position = Position { part, ..unread.position() };
            let (content, verdict) = self.message(unread, index, position, one);
            if verdict.is_some() {
                (progress.verdict, progress.provisional) = (verdict, true);
            }
            self.entries.push(Entry::of(Subject::Message(Arc::new(content)), index, progress));
        }
    }

    /// Bytes that come to no message. Of an aggregate, only the user record that cannot be read is dead: it is a message that has
    /// no content.
    pub fn refuse(
        &mut self,
        unread: &Unread,
        index: usize,
        known: Progress,
        (reason, detail): (Reason, String),
    ) {
        let subject = if matches!(unread.raw, RawRecord::Whole(_)) {
            Subject::Record(Box::new(Unusable::of(&unread.record, detail.clone())))
        } else {
            let payload = unread.data.bytes.clone();
            let content = content(self.settings, unread, index, unread.position());
            Subject::Message(Arc::new(Content { payload, ..content }))
        };
        // What the extractor says may be overruled by what is stored; what is stored of it may not.
        let provisional = reason == Reason::Unusable;
        let verdict = Some((reason, detail));
        let progress = Progress { unread: false, verdict, provisional, ..known };
        self.entries.push(Entry::of(subject, index, progress));
    }

    fn message(
        &mut self,
        unread: &Unread,
        index: usize,
        position: Position,
        found: Extracted,
    ) -> (Content, Option<(Reason, String)>) {
        let (settings, record) = (self.settings, &unread.record);
        let source_id = format!("{}/{}/{}", record.id, position.sub, position.part);
        let known = settings.identity.identify(found.value.as_ref(), &found.payload, &source_id);
        if !known.ids_missing.is_empty() {
            let missing = known.ids_missing.join(", ");
            self.report.warn(format!("message {position} lacks its id property {missing}"));
        }
        let mut verdict = None;
        if let Some(missing) = known.missing {
            let reason =
                format!("the message lacks its {} property {:?}", missing.what, missing.property);
            verdict = Some((Reason::Rejected, reason));
        } else if let (Some(age_max), Some(arrived)) = (settings.age_max, record.arrived) {
            let age = settings.environment.now().since(arrived);
            if age > age_max {
                let reason = format!("it is {age:?} old, at most {age_max:?} is accepted");
                verdict = Some((Reason::Expired, reason));
            }
        }
        let content = Content {
            id: known.id,
            key: known.key,
            ranks: known.sequence,
            payload: found.payload,
            value: found.value,
            ..content(settings, unread, index, position)
        };
        (content, verdict)
    }
}

fn content(settings: &Settings, unread: &Unread, index: usize, position: Position) -> Content {
    let record = &unread.record;
    Content {
        consumer: Arc::clone(&settings.name),
        scope: Arc::clone(&record.scope),
        position,
        sequence: record.sequence.clone(),
        index,
        item: record.item.clone(),
        id: None,
        key: None,
        partition_key: unread.partition_key.clone(),
        ranks: Vec::new(),
        payload: bytes::Bytes::new(),
        value: None,
        raw: unread.raw.clone(),
        arrived: record.arrived,
        receives: record.receives,
    }
}
