//! From records to what an extractor is given: records that were delivered twice, aggregates.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::entry::Entry;
use crate::extract::Data;
use crate::identity::digest;
use crate::message::RawRecord;
use crate::position::{Position, RecordKey};
use crate::report::Report;
use crate::settings::Settings;
use crate::source::{Aggregate, Only, Record, Scope, SourceKind, Unusable, UserRecord};

/// Bytes that are not read yet: of a record, or of one user record of it.
#[derive(Debug)]
pub(super) struct Unread {
    pub record: Arc<Record>,
    pub sub: u32,
    pub partition_key: Option<String>,
    pub data: Data,
    pub raw: RawRecord,
    /// The one message in it that is meant; all of them when it does not say.
    pub part: Option<u32>,
}

impl Unread {
    /// Where the first message in it stands.
    pub fn position(&self) -> Position {
        Position { record: self.record.key.clone(), sub: self.sub, part: 0 }
    }
}

pub(super) fn prepare(
    settings: &Settings,
    records: Vec<Result<Record, Box<Unusable>>>,
    only: Option<Only>,
    report: &mut Report,
) -> Vec<Entry> {
    let mut preparing =
        Preparing { settings, only, report, entries: Vec::new(), seen: HashMap::new() };
    for (index, record) in records.into_iter().enumerate() {
        match record {
            Ok(record) => preparing.record(Arc::new(record), index),
            Err(unusable) => preparing.entries.push(Entry::record(*unusable, index)),
        }
    }
    preparing.entries
}

struct Preparing<'a> {
    settings: &'a Settings,
    only: Option<Only>,
    report: &'a mut Report,
    entries: Vec<Entry>,
    /// The digest of each record by its place, since a source may deliver one twice in a batch.
    seen: HashMap<(Arc<Scope>, RecordKey), String>,
}

impl Preparing<'_> {
    fn record(&mut self, record: Arc<Record>, index: usize) {
        let kind = record.scope.kind;
        if self.settings.sources.as_ref().is_some_and(|kinds| !kinds.contains(&kind)) {
            self.unusable(&record, index, format!("this consumer does not take records of {kind}"));
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
        match self.parts(&record) {
            Ok(parts) => {
                self.entries.extend(parts.into_iter().map(|part| Entry::unread(part, index)));
            }
            Err(reason) => self.unusable(&record, index, reason),
        }
    }

    fn unusable(&mut self, record: &Record, index: usize, reason: String) {
        self.entries.push(Entry::record(Unusable::of(record, reason), index));
    }

    /// The user records of an aggregate, or the record itself.
    fn parts(&mut self, record: &Arc<Record>) -> Result<Vec<Unread>, String> {
        let whole = || {
            vec![Unread {
                record: Arc::clone(record),
                sub: 0,
                partition_key: record.partition_key.clone(),
                data: record.data.clone(),
                raw: RawRecord::Whole(record.raw.clone()),
                part: self.only.and_then(|only| only.part),
            }]
        };
        if record.scope.kind != SourceKind::Kinesis {
            return Ok(whole());
        }
        if let Some(only) = self.only {
            return Ok(vec![Unread {
                record: Arc::clone(record),
                sub: only.sub,
                partition_key: record.partition_key.clone(),
                raw: RawRecord::User(Arc::new(template(record)), record.data.bytes.clone()),
                data: record.data.clone(),
                part: only.part,
            }]);
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
            parts.push(Unread {
                record: Arc::clone(record),
                sub,
                partition_key: Some(partition_key),
                raw: RawRecord::User(Arc::clone(&template), data.clone()),
                data: Data { bytes: data, value: None },
                part: None,
            });
        }
        Ok(parts)
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
