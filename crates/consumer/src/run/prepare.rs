//! From records to entries: aggregates, extraction, identification, age.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::entry::Entry;
use crate::extract::{self, Data};
use crate::identity::digest;
use crate::limits::MESSAGES_MAX;
use crate::message::{Content, RawRecord};
use crate::position::{Position, RecordKey};
use crate::report::Report;
use crate::settings::Settings;
use crate::sink::Reason;
use crate::source::{Aggregate, Record, Scope, SourceKind, Unusable, UserRecord};

/// What records come to.
pub(super) struct Prepared {
    pub entries: Vec<Entry>,
}

/// One part of a record: the record itself, or one user record of it.
struct Part {
    sub: u32,
    partition_key: Option<String>,
    data: Data,
    raw: RawRecord,
}

pub(super) fn prepare(
    settings: &Settings,
    records: Vec<Result<Record, Box<Unusable>>>,
    report: &mut Report,
) -> Prepared {
    let mut preparing = Preparing { settings, report, entries: Vec::new(), seen: HashMap::new() };
    for (index, record) in records.into_iter().enumerate() {
        match record {
            Ok(record) => preparing.record(&record, index),
            Err(unusable) => preparing.entries.push(Entry::record(*unusable, index)),
        }
    }
    Prepared { entries: preparing.entries }
}

struct Preparing<'a> {
    settings: &'a Settings,
    report: &'a mut Report,
    entries: Vec<Entry>,
    /// The digest of each record by its place, since a source may deliver one twice in a batch.
    seen: HashMap<(Arc<Scope>, RecordKey), String>,
}

impl Preparing<'_> {
    fn record(&mut self, record: &Record, index: usize) {
        let kind = record.scope.kind;
        if self.settings.sources.as_ref().is_some_and(|kinds| !kinds.contains(&kind)) {
            self.unusable(record, index, format!("this consumer does not take records of {kind}"));
            return;
        }
        let sum = digest(&record.data.bytes);
        let place = (Arc::clone(&record.scope), record.key.clone());
        if let Some(first) = self.seen.get(&place) {
            self.report.duplicates += 1;
            if *first != sum {
                let what =
                    format!("record {} came twice in one batch, with different data", record.item);
                self.report.warn(what);
            }
            return;
        }
        self.seen.insert(place, sum);
        match self.parts(record) {
            Ok(parts) => self.extract(record, index, parts),
            Err(reason) => self.unusable(record, index, reason),
        }
    }

    fn unusable(&mut self, record: &Record, index: usize, reason: String) {
        self.entries.push(Entry::record(Unusable::of(record, reason), index));
    }

    /// The user records of an aggregate, or the record itself.
    fn parts(&mut self, record: &Record) -> Result<Vec<Part>, String> {
        let whole = || {
            vec![Part {
                sub: 0,
                partition_key: record.partition_key.clone(),
                data: record.data.clone(),
                raw: RawRecord::Whole(record.raw.clone()),
            }]
        };
        if record.scope.kind != SourceKind::Kinesis {
            return Ok(whole());
        }
        let users =
            Aggregate::user_records(&record.data.bytes).map_err(|error| error.to_string())?;
        let Some(users) = users else {
            return Ok(whole());
        };
        let template = Arc::new(template(record));
        let range = self.settings.hash_ranges.get(&record.scope.shard);
        let mut parts = Vec::with_capacity(users.len());
        for (sub, UserRecord { partition_key, hash, data }) in (0_u32..).zip(users) {
            if range.is_some_and(|range| !range.contains(hash)) {
                self.report.elsewhere += 1;
                continue;
            }
            parts.push(Part {
                sub,
                partition_key: Some(partition_key),
                raw: RawRecord::User(Arc::clone(&template), data.clone()),
                data: Data { bytes: data, value: None },
            });
        }
        Ok(parts)
    }

    fn extract(&mut self, record: &Record, index: usize, parts: Vec<Part>) {
        for part in parts {
            let position = Position { record: record.key.clone(), sub: part.sub, part: 0 };
            let found = extract::run(self.settings.extractor.as_ref(), &part.data);
            let fits = |found: &Vec<_>| self.entries.len() + found.len() <= MESSAGES_MAX;
            match found {
                Ok(found) if fits(&found) => {
                    let many = found.len() > 1;
                    for (at, one) in (0_u32..).zip(found) {
                        let position = Position { part: at, ..position.clone() };
                        let content = content(self.settings, record, index, &part, position);
                        self.message(Content { many, ..content }, record, one);
                    }
                }
                Ok(found) => {
                    let reason = format!(
                        "the batch comes to more than {MESSAGES_MAX} messages, with {} in this record",
                        found.len()
                    );
                    self.unusable_part(record, index, &part, reason);
                }
                Err(reason) => self.unusable_part(record, index, &part, reason),
            }
        }
    }

    /// Of an aggregate, only the user record that cannot be read is dead: it is a message that has no content.
    fn unusable_part(&mut self, record: &Record, index: usize, part: &Part, reason: String) {
        let entry = if matches!(part.raw, RawRecord::Whole(_)) {
            Entry::record(Unusable::of(record, reason.clone()), index)
        } else {
            let position = Position { record: record.key.clone(), sub: part.sub, part: 0 };
            let content = content(self.settings, record, index, part, position);
            Entry::message(Content { payload: part.data.bytes.clone(), ..content })
        };
        self.entries.push(entry.judged(Reason::Unusable, reason));
    }

    fn message(&mut self, content: Content, record: &Record, found: extract::Extracted) {
        let settings = self.settings;
        let position = &content.position;
        let source_id = format!("{}/{}/{}", record.id, position.sub, position.part);
        let known = settings.identity.identify(found.value.as_ref(), &found.payload, &source_id);
        if !known.ids_missing.is_empty() {
            let missing = known.ids_missing.join(", ");
            self.report.warn(format!("message {position} lacks its id property {missing}"));
        }
        let mut entry = Entry::message(Content {
            id: known.id,
            key: known.key,
            ranks: known.sequence,
            payload: found.payload,
            value: found.value,
            ..content
        });
        if let Some(missing) = known.missing {
            let reason =
                format!("the message lacks its {} property {:?}", missing.what, missing.property);
            entry = entry.judged(Reason::Rejected, reason);
        } else if let (Some(age_max), Some(arrived)) = (settings.age_max, record.arrived) {
            let age = settings.environment.now().since(arrived);
            if age > age_max {
                let reason = format!("it is {age:?} old, at most {age_max:?} is accepted");
                entry = entry.judged(Reason::Expired, reason);
            }
        }
        self.entries.push(entry);
    }
}

fn content(
    settings: &Settings,
    record: &Record,
    index: usize,
    part: &Part,
    position: Position,
) -> Content {
    Content {
        consumer: Arc::clone(&settings.name),
        scope: Arc::clone(&record.scope),
        position,
        sequence: record.sequence.clone(),
        index,
        item: record.item.clone(),
        id: None,
        key: None,
        partition_key: part.partition_key.clone(),
        many: false,
        ranks: Vec::new(),
        payload: bytes::Bytes::new(),
        value: None,
        raw: part.raw.clone(),
        arrived: record.arrived,
        receives: record.receives,
    }
}

/// A record without its data, for letters about its user records.
fn template(record: &Record) -> Value {
    let mut value: Value = serde_json::from_slice(&record.raw).unwrap_or_default();
    if let Some(kinesis) = value.get_mut("kinesis").and_then(Value::as_object_mut) {
        kinesis.remove("data");
    }
    value
}
