//! Records of a Kinesis stream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use millpond_store::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::event::Scopes;
use super::record::{Record, SourceKind, Unusable};
use crate::extract::Data;
use crate::position::{RecordKey, Sequence, is_id};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KinesisRecord {
    #[serde(rename = "eventID")]
    event_id: Option<String>,
    #[serde(rename = "eventSourceARN")]
    arn: Option<String>,
    kinesis: Option<Inner>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inner {
    partition_key: Option<String>,
    sequence_number: Option<String>,
    data: Option<String>,
    approximate_arrival_timestamp: Option<Value>,
}

/// Reads one record.
pub(super) fn parse(
    scopes: &mut Scopes,
    text: &str,
    raw: &Bytes,
    known: &mut Unusable,
) -> Result<Record, String> {
    let record: KinesisRecord = serde_json::from_str(text)
        .map_err(|error| format!("the record is not one of Kinesis: {error}"))?;
    let inner = record.kinesis.ok_or("the record has no kinesis part")?;
    let number = inner.sequence_number.ok_or("the record has no sequenceNumber")?;
    let sequence = Sequence::new(&number).ok_or("the sequenceNumber is not a number")?;
    known.item = Some(number.clone());
    let id = record.event_id.filter(|id| is_id(id)).ok_or("the record has no eventID")?;
    let (shard, _) = id.split_once(':').ok_or("the eventID does not name a shard")?;
    let scope = scopes.of(SourceKind::Kinesis, record.arn, shard)?;
    let key = RecordKey::Sequence(sequence.clone(), None);
    known.scope = Some(scope.clone());
    known.key = Some(key.clone());
    let data = inner.data.ok_or("the record has no data")?;
    let data = STANDARD.decode(data).map_err(|error| format!("the data is not base64: {error}"))?;
    Ok(Record {
        scope,
        key,
        sequence: Some(sequence),
        item: number,
        id,
        partition_key: inner.partition_key,
        data: Data { bytes: data.into(), value: None },
        raw: raw.clone(),
        arrived: inner.approximate_arrival_timestamp.as_ref().and_then(seconds),
        receives: None,
    })
}

/// A time in seconds, perhaps with a fraction, perhaps as text. Nothing when it is no time: a record is of use without.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be within range just before"
)]
pub(super) fn seconds(given: &Value) -> Option<Timestamp> {
    let seconds: f64 = match given {
        Value::String(text) => text.parse().ok()?,
        other => other.as_f64()?,
    };
    let millis = (seconds * 1_000.0).round();
    (0.0..1e16).contains(&millis).then(|| Timestamp::from_millis(millis as u64))
}
