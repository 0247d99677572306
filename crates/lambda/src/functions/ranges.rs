//! What a sequencer has passed, from the stream of its table.

use std::sync::Arc;

use millpond_consumer::{Consumer, Data, Extracted, IntoOutcome, Message, Outcome, SourceKind};
use millpond_sequencer::{Event, streams};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::prepared::Prepared;
use crate::error::FunctionError;

/// Numbers that a queue's cursor passed: from `first` up to and without `next`. Each range of a queue begins where the
/// former ended; a range may be told again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedRange {
    /// The queue.
    pub queue: String,
    /// How often the queue was set back.
    pub epoch: u64,
    /// The first number.
    pub first: u64,
    /// The number behind the last.
    pub next: u64,
}

/// A consumer of the stream of a sequencer's table that hands each range to `handler`, those of a queue in order. Records
/// of other items of the table are passed over; the event filter of the template keeps them from coming at all. The
/// stream must have new images.
///
/// # Errors
/// What is missing or makes no sense, by the variable's name.
pub fn ranges<F, R>(prepared: &Prepared, handler: F) -> Result<Consumer, FunctionError>
where
    F: Fn(PassedRange, Message) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    let name = prepared.variables.required("MILLPOND_SEQUENCER", "name the sequencer")?.to_owned();
    let handler = Arc::new(handler);
    let consumer = prepared
        .consumer()?
        .sources([SourceKind::DynamoDb])
        .extractor(move |data: &Data| extract(data, &name))
        .one("range", move |message: Message| {
            let handler = Arc::clone(&handler);
            async move {
                match message.json::<PassedRange>() {
                    Ok(range) => handler(range, message).await.into_outcome(),
                    Err(error) => Outcome::reject(error),
                }
            }
        });
    Ok(consumer.build()?)
}

/// The range that a change of the table is; nothing when it is none.
fn extract(data: &Data, name: &str) -> Result<Vec<Extracted>, String> {
    let value = data.value.as_ref().ok_or("the record is none of a DynamoDB stream")?;
    if value.get("event").and_then(Value::as_str) == Some("REMOVE") {
        return Ok(Vec::new());
    }
    let found = streams::ranges(event(value).to_string().as_bytes(), name);
    let found = found.map_err(|error| error.to_string())?;
    let range = |told: millpond_sequencer::Announcement| {
        let Event::Advanced(passed) = told.event else { return None };
        let range = PassedRange {
            queue: told.queue.as_str().to_owned(),
            epoch: told.epoch,
            first: passed.first,
            next: passed.next,
        };
        let value = serde_json::to_value(&range).ok()?;
        Some(Extracted { payload: value.to_string().into(), value: Some(value) })
    };
    Ok(found.into_iter().filter_map(range).collect())
}

/// A change, as the sequencer reads it: the parts of it that matter, with their types.
fn event(value: &Value) -> Value {
    let text = |at: &str| match value.pointer(at) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let number = |at: &str| json!({ "N": text(at) });
    let mut change = json!({
        "Keys": { "pk": { "S": text("/keys/pk") }, "sk": { "B": text("/keys/sk") } },
    });
    if let (Some(_), Some(change)) = (value.get("new"), change.as_object_mut()) {
        let image = json!({
            "old": number("/new/old"), "new": number("/new/new"), "epoch": number("/new/epoch"),
        });
        change.insert("NewImage".into(), image);
    }
    json!({ "Records": [{ "eventSource": "aws:dynamodb", "dynamodb": change }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extracted(value: Value) -> Result<Vec<Extracted>, String> {
        let bytes = value.to_string().into();
        extract(&Data { bytes, value: Some(value) }, "orders")
    }

    #[test]
    fn cursors_that_moved_are_ranges_and_nothing_else_is() {
        let cursor = json!({
            "event": "MODIFY", "keys": { "pk": "orders/q/a", "sk": "Yw==" },
            "new": { "pk": "orders/q/a", "sk": "Yw==", "old": -1, "new": 4, "epoch": 2 },
        });
        let found = extracted(cursor.clone()).unwrap();
        let range: PassedRange = serde_json::from_slice(&found[0].payload).unwrap();
        let expected = PassedRange { queue: "a".into(), epoch: 2, first: 0, next: 5 };
        assert_eq!(range, expected);

        let mut item = cursor.clone();
        item["keys"]["sk"] = "aQAAAAAAAAAA".into();
        assert_eq!(extracted(item).unwrap(), []);
        let mut removed = cursor.clone();
        removed["event"] = "REMOVE".into();
        removed.as_object_mut().unwrap().remove("new");
        assert_eq!(extracted(removed.clone()).unwrap(), []);
        removed["event"] = "MODIFY".into();
        assert!(extracted(removed).unwrap_err().contains("no new image"));
        let mut strange = cursor;
        strange["new"]["new"] = "four".into();
        assert!(extracted(strange).unwrap_err().contains("no cursor"));
    }
}
