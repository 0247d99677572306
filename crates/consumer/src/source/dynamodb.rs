//! Records of a DynamoDB table's stream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::event::Scopes;
use super::kinesis::seconds;
use super::record::{Record, SourceKind, Unusable};
use crate::extract::Data;
use crate::position::{RecordKey, Sequence, is_id};

#[derive(Deserialize)]
struct StreamRecord {
    #[serde(rename = "eventID")]
    event_id: Option<String>,
    #[serde(rename = "eventName")]
    event_name: Option<String>,
    #[serde(rename = "eventSourceARN")]
    arn: Option<String>,
    #[serde(rename = "userIdentity")]
    user: Option<Value>,
    dynamodb: Option<Inner>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inner {
    sequence_number: Option<String>,
    #[serde(default, deserialize_with = "given")]
    keys: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    new_image: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    old_image: Option<Value>,
    stream_view_type: Option<String>,
    approximate_creation_date_time: Option<Value>,
}

/// What is there, if only as `null`: some deliver that for an image or keys without attributes.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Deepest nesting of an attribute: DynamoDB's own bound is 32.
const DEPTH_MAX: usize = 64;

/// Reads one record.
pub(super) fn parse(
    scopes: &mut Scopes,
    text: &str,
    raw: &Bytes,
    known: &mut Unusable,
) -> Result<Record, String> {
    let record: StreamRecord = serde_json::from_str(text)
        .map_err(|error| format!("the record is not one of DynamoDB Streams: {error}"))?;
    let mut inner = record.dynamodb.ok_or("the record has no dynamodb part")?;
    let number = inner.sequence_number.take().ok_or("the record has no SequenceNumber")?;
    let sequence = Sequence::new(&number).ok_or("the SequenceNumber is not a number")?;
    known.item = Some(number.clone());
    let id = record.event_id.filter(|id| is_id(id)).ok_or("the record has no eventID")?;
    let scope = scopes.of(SourceKind::DynamoDb, record.arn, "")?;
    let hash = Sha256::digest(id.as_bytes());
    let tie = hash.first_chunk::<8>().copied();
    let key = RecordKey::Sequence(sequence.clone(), tie);
    known.scope = Some(scope.clone());
    known.key = Some(key.clone());
    let name = record.event_name.ok_or("the record has no eventName")?;
    if !["INSERT", "MODIFY", "REMOVE"].contains(&name.as_str()) {
        return Err("the eventName is none of INSERT, MODIFY and REMOVE".into());
    }
    check_view(&inner, &name)?;
    let given = inner.keys.as_ref().ok_or("the record has no Keys")?;
    let keys = image("Keys", Some(given))?;
    let partition_key = keys.as_ref().map(Value::to_string);
    let keys = keys.unwrap_or_else(|| Map::new().into());
    let mut value = Map::new();
    value.insert("event".into(), name.into());
    value.insert("keys".into(), keys);
    for (field, named, found) in
        [("new", "NewImage", &inner.new_image), ("old", "OldImage", &inner.old_image)]
    {
        if let Some(plain) = image(named, found.as_ref())? {
            value.insert(field.into(), plain);
        }
    }
    // Who made the change, when it was not a user: the removal of expired items.
    if let Some(user) = record.user.filter(|user| !user.is_null()) {
        value.insert("user".into(), user);
    }
    let value = Value::Object(value);
    let arrived = inner.approximate_creation_date_time.as_ref().and_then(seconds);
    Ok(Record {
        scope,
        key,
        sequence: Some(sequence),
        item: number,
        id,
        partition_key,
        data: Data { bytes: value.to_string().into(), value: Some(value) },
        raw: raw.clone(),
        arrived,
        receives: None,
    })
}

/// A view type promises images; a record that lacks them was cut on its way.
fn check_view(inner: &Inner, event: &str) -> Result<(), String> {
    let (new, old) = match inner.stream_view_type.as_deref() {
        None | Some("KEYS_ONLY") => (false, false),
        Some("NEW_IMAGE") => (true, false),
        Some("OLD_IMAGE") => (false, true),
        Some("NEW_AND_OLD_IMAGES") => (true, true),
        Some(_) => return Err("the StreamViewType is unknown".into()),
    };
    if new && event != "REMOVE" && inner.new_image.is_none() {
        return Err(format!("the record of {event} has no NewImage, which its view promises"));
    }
    if old && event != "INSERT" && inner.old_image.is_none() {
        return Err(format!("the record of {event} has no OldImage, which its view promises"));
    }
    Ok(())
}

/// An image as a plain value.
fn image(named: &str, image: Option<&Value>) -> Result<Option<Value>, String> {
    match image {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(attributes)) => plain_map(attributes, 0)
            .map(Some)
            .ok_or_else(|| format!("{named} has an attribute that is not one of DynamoDB")),
        Some(_) => Err(format!("{named} is not a map of attributes")),
    }
}

fn plain_map(attributes: &Map<String, Value>, depth: usize) -> Option<Value> {
    let plain = |(name, value): (&String, &Value)| Some((name.clone(), plain(value, depth)?));
    attributes.iter().map(plain).collect::<Option<Map<_, _>>>().map(Value::Object)
}

/// One attribute value. Numbers stay numbers where JSON keeps all their digits, and are texts otherwise; sets are lists;
/// bytes stay base64.
fn plain(value: &Value, depth: usize) -> Option<Value> {
    let typed = value.as_object().filter(|typed| typed.len() == 1)?;
    let (kind, inner) = typed.iter().next()?;
    if depth > DEPTH_MAX {
        return None;
    }
    let list = |one: fn(&Value) -> Option<Value>| {
        let values = inner.as_array()?.iter().map(one);
        values.collect::<Option<Vec<_>>>().map(Value::Array)
    };
    match kind.as_str() {
        "S" => text(inner),
        "N" => number(inner),
        "B" => binary(inner),
        "BOOL" => inner.is_boolean().then(|| inner.clone()),
        "NULL" => Some(Value::Null),
        "SS" => list(text),
        "NS" => list(number),
        "BS" => list(binary),
        "L" => {
            let values = inner.as_array()?.iter().map(|value| plain(value, depth + 1));
            values.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        "M" => plain_map(inner.as_object()?, depth + 1),
        _ => None,
    }
}

fn text(value: &Value) -> Option<Value> {
    value.is_string().then(|| value.clone())
}

fn binary(value: &Value) -> Option<Value> {
    STANDARD.decode(value.as_str()?).ok()?;
    Some(value.clone())
}

fn number(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let number = serde_json::Number::from_f64(number)?;
    Some(if number.to_string() == text { number.into() } else { text.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_become_plain_values() {
        let image = json!({
            "s": {"S": "é"}, "i": {"N": "101"}, "f": {"N": "1.5"}, "b": {"B": "aGk="},
            "long": {"N": "12345678901234567890123456789012345678"}, "yes": {"BOOL": true},
            "none": {"NULL": true}, "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]},
            "l": {"L": [{"N": "1"}, {"M": {"x": {"S": "y"}}}]}, "m": {"M": {}},
        });
        let plain = plain_map(image.as_object().unwrap(), 0).unwrap();
        let expected = json!({
            "s": "é", "i": 101, "f": 1.5, "b": "aGk=",
            "long": "12345678901234567890123456789012345678", "yes": true,
            "none": null, "ss": ["a", "b"], "ns": [1, 2], "l": [1, {"x": "y"}], "m": {},
        });
        assert_eq!(plain, expected);
    }

    #[test]
    fn foreign_attributes_are_refused() {
        for bad in
            [json!({"X": "1"}), json!("a"), json!({"N": "ten"}), json!({"B": "%"}), json!({})]
        {
            assert_eq!(plain(&bad, 0), None, "{bad}");
        }
        let mut deep = json!({"S": "x"});
        for _ in 0..DEPTH_MAX + 2 {
            deep = json!({"L": [deep]});
        }
        assert_eq!(plain(&deep, 0), None);
    }
}
