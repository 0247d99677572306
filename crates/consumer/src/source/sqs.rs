//! Messages of an SQS queue.

use bytes::Bytes;
use millpond_store::Timestamp;
use serde::Deserialize;

use super::event::Scopes;
use super::record::{Record, SourceKind, Unusable};
use crate::extract::Data;
use crate::position::{RecordKey, Sequence, is_id};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SqsRecord {
    message_id: Option<String>,
    body: Option<String>,
    attributes: Option<Attributes>,
    #[serde(rename = "eventSourceARN")]
    arn: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    approximate_receive_count: Option<String>,
    sent_timestamp: Option<String>,
    sequence_number: Option<String>,
    message_group_id: Option<String>,
}

/// Reads one message.
pub(super) fn parse(
    scopes: &mut Scopes,
    text: &str,
    raw: &Bytes,
    known: &mut Unusable,
) -> Result<Record, String> {
    let record: SqsRecord = serde_json::from_str(text)
        .map_err(|error| format!("the record is not one of SQS: {error}"))?;
    let id = record.message_id.filter(|id| is_id(id)).ok_or("the message has no messageId")?;
    known.item = Some(id.clone());
    let attributes = record.attributes.unwrap_or_default();
    known.receives =
        attributes.approximate_receive_count.as_deref().and_then(|count| count.parse().ok());
    let fifo = record.arn.as_deref().is_some_and(|arn| arn.ends_with(".fifo"));
    let kind = if fifo { SourceKind::SqsFifo } else { SourceKind::Sqs };
    let scope = scopes.of(kind, record.arn, "")?;
    let key = RecordKey::Id(id.as_str().into());
    known.scope = Some(scope.clone());
    known.key = Some(key.clone());
    let sequence = match attributes.sequence_number.as_deref() {
        Some(number) => Some(Sequence::new(number).ok_or("the SequenceNumber is not a number")?),
        None if fifo => return Err("the message has no SequenceNumber".into()),
        None => None,
    };
    if fifo && attributes.message_group_id.is_none() {
        return Err("the message has no MessageGroupId".into());
    }
    let body = record.body.ok_or("the message has no body")?;
    let sent = attributes.sent_timestamp.and_then(|text| text.parse().ok());
    Ok(Record {
        scope,
        key,
        sequence,
        item: id.clone(),
        id,
        partition_key: attributes.message_group_id,
        data: Data { bytes: body.into(), value: None },
        raw: raw.clone(),
        arrived: sent.map(Timestamp::from_millis),
        receives: Some(known.receives.unwrap_or(1)),
    })
}
