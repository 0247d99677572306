//! Ranges from the stream of a DynamoDB table, as Lambda delivers it.
//!
//! The cursor item is small and readable: its key `sk` is the byte `c`, and the numbers `old` and `new` in its new
//! image are the positions before and after the write. So a consumer in any language can do what this module does.

use serde::Deserialize;

use crate::advance::Advance;
use crate::error::{Result, SequencerError};
use crate::limits::STREAM_RECORDS_MAX;
use crate::names::{Names, QueueName};
use crate::subscribe::{Announcement, Event};

/// The sort key of a cursor, the byte `c`, in base64.
const CURSOR_KEY: &str = "Yw==";

#[derive(Deserialize)]
struct StreamEvent {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "eventID")]
    id: Option<String>,
    #[serde(rename = "eventSource")]
    source: Option<String>,
    dynamodb: Option<Change>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Change {
    keys: Option<Keys>,
    new_image: Option<Image>,
}

#[derive(Deserialize)]
struct Keys {
    pk: Option<Text>,
    sk: Option<Binary>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(rename = "S")]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Binary {
    #[serde(rename = "B")]
    base64: Option<String>,
}

#[derive(Deserialize)]
struct Image {
    old: Option<Number>,
    new: Option<Number>,
    epoch: Option<Number>,
}

#[derive(Deserialize)]
struct Number {
    #[serde(rename = "N")]
    digits: Option<String>,
}

/// What the sequencer called `name` passed, by the records of a DynamoDB Streams event (the JSON that Lambda gives a
/// function). Records of other items are passed over, as are writes that did not move a cursor. The stream must have
/// new images. Streams deliver at least once and in order for each queue.
///
/// # Errors
/// [`SequencerError::Invalid`], which says which record is no record of a stream with new images.
pub fn ranges(event: &[u8], name: &str) -> Result<Vec<Announcement>> {
    let event: StreamEvent = serde_json::from_slice(event).map_err(|error| {
        SequencerError::invalid("event", format!("is no stream event: {error}"))
    })?;
    if event.records.len() > STREAM_RECORDS_MAX {
        let (size, limit) = (event.records.len() as u64, STREAM_RECORDS_MAX as u64);
        return Err(SequencerError::TooLarge { what: "event", size, unit: "records", limit });
    }
    let prefix = Names::queue_prefix(name);
    let mut found = Vec::new();
    for record in event.records {
        let refuse = |problem: &str| {
            let id = record.id.as_deref().unwrap_or("without an id");
            Err(SequencerError::invalid("event", format!("record {id} {problem}")))
        };
        if record.source.as_deref().is_some_and(|source| source != "aws:dynamodb") {
            return refuse("is not from DynamoDB");
        }
        let Some(keys) = record.dynamodb.as_ref().and_then(|change| change.keys.as_ref()) else {
            return refuse("has no keys");
        };
        let partition = keys.pk.as_ref().and_then(|pk| pk.text.as_deref());
        let sort = keys.sk.as_ref().and_then(|sk| sk.base64.as_deref());
        let queue = partition.and_then(|partition| partition.strip_prefix(&prefix));
        let (Some(queue), Some(CURSOR_KEY)) = (queue, sort) else { continue };
        let Some(image) = record.dynamodb.as_ref().and_then(|change| change.new_image.as_ref())
        else {
            return refuse("has no new image: the table's stream needs one");
        };
        let (Some(old), Some(new), Some(epoch)) =
            (number(image.old.as_ref()), number(image.new.as_ref()), number(image.epoch.as_ref()))
        else {
            return refuse("has no old, new and epoch: it is no cursor");
        };
        let behind = |position: i64| u64::try_from(position.saturating_add(1)).ok();
        let (Some(first), Some(next), Ok(epoch)) = (behind(old), behind(new), u64::try_from(epoch))
        else {
            return refuse("has positions that make no sense");
        };
        if let Some(passed) = Advance::new(first, next) {
            let queue = QueueName::new(queue)?;
            found.push(Announcement { queue, epoch, event: Event::Advanced(passed) });
        }
    }
    Ok(found)
}

fn number(number: Option<&Number>) -> Option<i64> {
    number?.digits.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(pk: &str, sk: &str, old: &str, new: &str) -> serde_json::Value {
        json!({
            "eventID": "e1", "eventName": "MODIFY", "eventSource": "aws:dynamodb", "awsRegion": "eu-central-1",
            "dynamodb": {
                "Keys": { "pk": { "S": pk }, "sk": { "B": sk } },
                "NewImage": {
                    "pk": { "S": pk }, "sk": { "B": sk }, "old": { "N": old }, "new": { "N": new },
                    "epoch": { "N": "2" }, "trail": { "B": "AAAAAAAAAAA=" },
                },
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
        })
    }

    fn of(records: &[serde_json::Value]) -> Result<Vec<Announcement>> {
        ranges(json!({ "Records": records }).to_string().as_bytes(), "orders")
    }

    #[test]
    fn cursors_that_moved_become_ranges_and_the_rest_is_passed_over() {
        let found = of(&[
            record("orders/q/a/b", CURSOR_KEY, "-1", "4"),
            record("orders/q/a/b", "aQAAAAAAAAAA", "4", "9"),
            record("other/q/a", CURSOR_KEY, "-1", "4"),
            record("orders/q/a/b", CURSOR_KEY, "4", "4"),
            record("orders/q/a/b", CURSOR_KEY, "4", "6"),
        ])
        .unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|told| (told.queue.as_str(), told.epoch, told.event.clone()))
            .collect();
        let passed = |first, next| Event::Advanced(Advance { first, next });
        assert_eq!(told, [("a/b", 2, passed(0, 5)), ("a/b", 2, passed(5, 7))]);
    }

    #[test]
    fn what_is_no_stream_event_is_refused_with_its_reason() {
        let refused = |record| of(&[record]).unwrap_err().to_string();
        let mut sqs = record("orders/q/a", CURSOR_KEY, "0", "1");
        sqs["eventSource"] = "aws:sqs".into();
        assert!(refused(sqs).contains("record e1 is not from DynamoDB"));
        let mut keys_only = record("orders/q/a", CURSOR_KEY, "0", "1");
        keys_only["dynamodb"].as_object_mut().unwrap().remove("NewImage");
        assert!(refused(keys_only).contains("no new image"));
        assert!(refused(record("orders/q/a", CURSOR_KEY, "x", "1")).contains("no cursor"));
        assert!(refused(record("orders/q/a", CURSOR_KEY, "-7", "1")).contains("no sense"));
        assert!(ranges(b"{}", "orders").is_err() && ranges(b"", "orders").is_err());
    }
}
