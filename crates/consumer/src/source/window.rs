//! A tumbling window of a stream: what Lambda carries from one batch of it to the next.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::event::Scopes;
use super::record::{Scope, SourceKind};
use crate::identity::digest;
use crate::position::{RecordKey, is_id};

/// A tumbling window, as the event of a batch tells of it.
#[derive(Debug, Clone)]
pub struct Window {
    /// When it begins, as the event writes it: ISO 8601.
    pub start: String,
    /// When it ends.
    pub end: String,
    /// The source's ARN; empty when the event does not say.
    pub arn: String,
    /// The shard; empty when the event does not say.
    pub shard: String,
    /// No more records of this window come.
    pub is_final: bool,
    /// The state grew too large for the source: the window goes on with none.
    pub is_cut_short: bool,
    state: Option<Arc<RawValue>>,
}

/// What an event has beside its records. Whatever is of another type than it should be is as if it were not there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Around<'a> {
    #[serde(borrow)]
    window: Option<&'a RawValue>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    shard_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "eventSourceARN")]
    arn: Option<&'a RawValue>,
    #[serde(borrow)]
    is_final_invoke_for_window: Option<&'a RawValue>,
    #[serde(borrow)]
    is_window_terminated_early: Option<&'a RawValue>,
}

impl Around<'_> {
    /// The window, when the event is of one.
    pub fn window(&self) -> Option<Window> {
        let window: Value = serde_json::from_str(self.window?.get()).ok()?;
        let time = |name: &str| window.get(name).and_then(Value::as_str).unwrap_or_default();
        let text = |raw: Option<&RawValue>| -> String {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
        };
        let flag = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get() == "true");
        Some(Window {
            start: time("start").to_owned(),
            end: time("end").to_owned(),
            arn: text(self.arn),
            shard: text(self.shard_id),
            is_final: flag(self.is_final_invoke_for_window),
            is_cut_short: flag(self.is_window_terminated_early),
            state: self.state.map(|state| state.to_owned().into()),
        })
    }
}

impl Window {
    /// Its state so far; an empty object at the beginning.
    #[must_use]
    pub fn state(&self) -> Value {
        let state = self.state.as_ref().and_then(|state| serde_json::from_str(state.get()).ok());
        state.filter(|state| *state != Value::Null).unwrap_or_else(|| Value::Object(Map::new()))
    }

    /// The same as it came, byte for byte: an answer without a state is a failed invocation to Lambda.
    pub(crate) fn state_as_it_came(&self) -> Box<RawValue> {
        let state = self.state.as_ref().filter(|state| state.get() != "null");
        let state = state.map_or("{}", |state| state.get());
        RawValue::from_string(state.to_owned()).unwrap_or_default()
    }

    /// Whether what was gathered is complete with this batch.
    #[must_use]
    pub const fn ends(&self) -> bool {
        self.is_final || self.is_cut_short
    }

    /// What names this window, and its part when it is cut short: the same each time that its end is tried.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let part = if self.is_cut_short {
            digest(self.state_as_it_came().get().as_bytes())
        } else {
            String::new()
        };
        [&*self.arn, &self.shard, &self.start, &part].join("|")
    }

    /// Where the attempts at its end are counted: with the messages of its source, under its shard and start. `nearby` is where
    /// records of the batch are from, for an event that does not say; `first` is the first of them: a window that is cut short
    /// has several ends. Nothing when the event does not tell its window from others.
    pub(crate) fn place(
        &self,
        nearby: Option<&Scope>,
        first: Option<&str>,
    ) -> Option<(Arc<Scope>, RecordKey)> {
        let arn = match (&*self.arn, nearby) {
            ("", nearby) => nearby?.arn.clone(),
            (arn, _) => arn.to_owned(),
        };
        let (kind, shard) = if arn.split(':').nth(2) == Some("dynamodb") {
            (SourceKind::DynamoDb, "")
        } else {
            (SourceKind::Kinesis, &*self.shard)
        };
        let scope = Scopes::default().of(kind, Some(arn), shard).ok()?;
        if self.start.is_empty() {
            return None;
        }
        let mut name = format!("window/{}/{}", self.shard, self.start);
        if self.is_cut_short {
            let part = [self.state_as_it_came().get(), first.unwrap_or_default()].join("\0");
            name = format!("{name}/{}", digest(part.as_bytes()));
        }
        if !is_id(&name) {
            name = format!("window/{}", digest(name.as_bytes()));
        }
        Some((scope, RecordKey::Id(name.into())))
    }

    /// The window with a state, for a dead letter.
    pub(crate) fn with_state(&self, state: &Value) -> Value {
        serde_json::json!({
            "window": {"start": self.start, "end": self.end},
            "state": state,
            "shardId": self.shard,
            "eventSourceARN": self.arn,
            "isFinalInvokeForWindow": self.is_final,
            "isWindowTerminatedEarly": self.is_cut_short,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str) -> Option<Window> {
        serde_json::from_str::<Around<'_>>(text).unwrap().window()
    }

    #[test]
    fn windows_are_read_as_far_as_they_go() {
        assert!(window(r#"{"state": {}}"#).is_none());
        let bare = window(r#"{"window": 7, "state": null, "shardId": 1}"#).unwrap();
        assert_eq!((bare.state(), bare.state_as_it_came().get()), (serde_json::json!({}), "{}"));
        assert!(!bare.ends() && bare.shard.is_empty());
        let text = r#"{"window": {"start": "a", "end": "b"}, "state": {"1": 2 },
            "shardId": "s", "eventSourceARN": "arn:x", "isFinalInvokeForWindow": true}"#;
        let whole = window(text).unwrap();
        assert_eq!(whole.state_as_it_came().get(), r#"{"1": 2 }"#);
        assert_eq!((&*whole.start, &*whole.end, &*whole.shard), ("a", "b", "s"));
        assert!(whole.ends() && !whole.is_cut_short);
        assert_eq!(whole.idempotency_key(), "arn:x|s|a|");
    }
}
