//! Records of a table's stream.

use millpond_consumer::Message;
use serde_json::{Value, json};

use super::plan::Plan;
use super::settings::View;

/// The stream of a table.
pub const ARN: &str = "arn:aws:dynamodb:eu-central-1:111122223333:table/t/stream/s";

impl View {
    const fn name(self) -> &'static str {
        match self {
            Self::Keys => "KEYS_ONLY",
            Self::New => "NEW_IMAGE",
            Self::Old => "OLD_IMAGE",
            Self::Both => "NEW_AND_OLD_IMAGES",
        }
    }

    const fn has(self) -> (bool, bool) {
        (matches!(self, Self::New | Self::Both), matches!(self, Self::Old | Self::Both))
    }
}

/// The first change of an item makes it; some remove it.
fn change(plan: &Plan, n: u64) -> &'static str {
    let before = (0..n).rev().find(|before| plan.key(*before) == plan.key(n));
    match before {
        Some(before) if change(plan, before) != "REMOVE" => {
            if n % 7 == 3 {
                "REMOVE"
            } else {
                "MODIFY"
            }
        }
        _ => "INSERT",
    }
}

/// The record of a change. Its number is that of its shard, which others have too.
pub fn record(plan: &Plan, view: View, n: u64, sequence: &str) -> Value {
    let name = change(plan, n);
    let image = json!({
        "id": {"S": format!("key-{}", plan.key(n))}, "n": {"N": n.to_string()},
        "tags": {"SS": ["a", "b"]}, "deep": {"M": {"l": {"L": [{"NULL": true}, {"BOOL": false}]}}},
    });
    let mut inner = json!({
        "SequenceNumber": sequence, "StreamViewType": view.name(), "SizeBytes": 26,
        "Keys": {"id": {"S": format!("key-{}", plan.key(n))}},
    });
    let (new, old) = view.has();
    if new && name != "REMOVE" {
        inner["NewImage"] = image.clone();
    }
    if old && name != "INSERT" {
        inner["OldImage"] = image;
    }
    json!({
        "eventID": format!("change-{n}"), "eventName": name, "eventSource": "aws:dynamodb",
        "eventSourceARN": ARN, "dynamodb": inner,
    })
}

/// The number in a message's id.
pub fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix("change-")?.split('/').next()?.parse().ok()
}

/// What is wrong with a message as a handler gets it.
pub fn wrong(plan: &Plan, view: Option<View>, n: u64, message: &Message) -> Option<String> {
    let (name, (new, old)) = (change(plan, n), view?.has());
    let plain = json!({
        "id": format!("key-{}", plan.key(n)), "n": n, "tags": ["a", "b"], "deep": {"l": [null, false]},
    });
    let mut expected = json!({"event": name, "keys": {"id": format!("key-{}", plan.key(n))}});
    if new && name != "REMOVE" {
        expected["new"] = plain.clone();
    }
    if old && name != "INSERT" {
        expected["old"] = plain;
    }
    let found = message.value();
    (found != Some(&expected)).then(|| format!("{n}: {found:?}, not {expected}"))
}
