//! Events as Lambda delivers them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub const STREAM: &str = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders";
pub const TABLE_STREAM: &str =
    "arn:aws:dynamodb:eu-central-1:123456789012:table/millpond/stream/2026-01-01T00:00:00.000";

/// The sequence number of the n-th record: 56 digits, as Kinesis has them.
pub fn sequence(n: usize) -> String {
    format!("49{n:054}")
}

/// A Kinesis event with these payloads, from number `first` on; each its own partition key.
pub fn kinesis(first: usize, payloads: &[Value]) -> Value {
    let record = |(at, payload): (usize, &Value)| {
        let n = first + at;
        kinesis_record(STREAM, &sequence(n), &format!("key-{n}"), payload.to_string().as_bytes())
    };
    json!({ "Records": payloads.iter().enumerate().map(record).collect::<Vec<_>>() })
}

pub fn kinesis_record(arn: &str, sequence: &str, key: &str, data: &[u8]) -> Value {
    json!({
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": key,
            "sequenceNumber": sequence,
            "data": STANDARD.encode(data),
            "approximateArrivalTimestamp": 1_545_084_650.987,
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": format!("shardId-000000000000:{sequence}"),
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": "arn:aws:iam::123456789012:role/lambda-role",
        "awsRegion": "eu-central-1",
        "eventSourceARN": arn,
    })
}

/// The record of a move of a sequencer's cursor.
pub fn cursor_moved(n: usize, queue: &str, old: i64, new: i64) -> Value {
    let pk = format!("orders/q/{queue}");
    let image = |old: i64, new: i64| {
        json!({
            "pk": { "S": pk }, "sk": { "B": "Yw==" }, "ver": { "N": "7" },
            "old": { "N": old.to_string() }, "new": { "N": new.to_string() },
            "epoch": { "N": "0" },
        })
    };
    json!({
        "eventID": format!("event-{n}"), "eventName": "MODIFY", "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "eu-central-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_764_000_000,
            "Keys": { "pk": { "S": pk }, "sk": { "B": "Yw==" } },
            "NewImage": image(old, new), "OldImage": image(old - 1, old),
            "SequenceNumber": format!("{}", 4_421_584_500_000_000_017_450_439_000_u128 + n as u128),
            "SizeBytes": 100, "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": TABLE_STREAM,
    })
}
