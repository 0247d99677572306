//! Events as Lambda delivers them.

use serde_json::{Value, json};

use crate::hostile::base64;

/// A stream.
pub const STREAM: &str = "arn:aws:kinesis:eu-central-1:111122223333:stream/orders";
/// A table's stream.
pub const TABLE: &str =
    "arn:aws:dynamodb:eu-central-1:111122223333:table/orders/stream/2024-01-01T00:00:00.000";
/// A queue.
pub const QUEUE: &str = "arn:aws:sqs:eu-central-1:111122223333:orders";
/// A FIFO queue.
pub const FIFO: &str = "arn:aws:sqs:eu-central-1:111122223333:orders.fifo";
/// A shard of the stream.
pub const SHARD: &str = "shardId-000000000001";

/// An event of these records.
pub fn event(records: Vec<Value>) -> String {
    json!({ "Records": records }).to_string()
}

/// A record of Kinesis.
pub fn kinesis_at(arn: &str, shard: &str, sequence: &str, key: &str, data: &[u8]) -> Value {
    json!({
        "kinesis": {
            "kinesisSchemaVersion": "1.0", "partitionKey": key, "sequenceNumber": sequence,
            "data": base64(data), "approximateArrivalTimestamp": 1_699_999_990.5,
        },
        "eventSource": "aws:kinesis", "eventVersion": "1.0", "eventID": format!("{shard}:{sequence}"),
        "eventName": "aws:kinesis:record", "awsRegion": "eu-central-1", "eventSourceARN": arn,
        "invokeIdentityArn": "arn:aws:iam::111122223333:role/lambda",
    })
}

/// A record in that shard of that stream.
pub fn kinesis(sequence: u64, key: &str, value: &Value) -> Value {
    kinesis_at(STREAM, SHARD, &sequence.to_string(), key, value.to_string().as_bytes())
}

/// Messages `{"n": NUMBER}` in a shard, each with a key of its own.
pub fn stream(numbers: impl IntoIterator<Item = u64>) -> String {
    event(numbers.into_iter().map(|n| kinesis(n, &format!("key-{n}"), &json!({"n": n}))).collect())
}

/// The same, all with one key.
pub fn one_key(numbers: impl IntoIterator<Item = u64>) -> String {
    event(numbers.into_iter().map(|n| kinesis(n, "key", &json!({"n": n}))).collect())
}

/// A message of SQS.
pub fn sqs(id: &str, receives: u32, body: &str) -> Value {
    json!({
        "messageId": id, "receiptHandle": "handle", "body": body,
        "attributes": {
            "ApproximateReceiveCount": receives.to_string(), "SentTimestamp": "1699999990000",
            "SenderId": "AIDA", "ApproximateFirstReceiveTimestamp": "1699999990001",
        },
        "messageAttributes": {}, "md5OfBody": "0", "eventSource": "aws:sqs", "eventSourceARN": QUEUE,
        "awsRegion": "eu-central-1",
    })
}

/// Messages `{"n": NUMBER}`, each with how often it was received.
pub fn queue(messages: impl IntoIterator<Item = (u64, u32)>) -> String {
    let message = |(n, receives)| sqs(&format!("id-{n}"), receives, &json!({"n": n}).to_string());
    event(messages.into_iter().map(message).collect())
}

/// A message of a FIFO queue.
pub fn fifo(n: u64, group: &str, receives: u32) -> Value {
    let mut message = sqs(&format!("id-{n}"), receives, &json!({"n": n}).to_string());
    message["eventSourceARN"] = FIFO.into();
    message["attributes"]["SequenceNumber"] = format!("188494960000000{n:05}").into();
    message["attributes"]["MessageGroupId"] = group.into();
    message
}

/// A record of a table's stream.
pub fn dynamodb(sequence: &str, name: &str, keys: Value, new: Value) -> Value {
    json!({
        "eventID": format!("event-{sequence}"), "eventName": name, "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "eu-central-1", "eventSourceARN": TABLE,
        "dynamodb": {
            "ApproximateCreationDateTime": 1_699_999_990, "Keys": keys, "NewImage": new,
            "SequenceNumber": sequence, "SizeBytes": 26, "StreamViewType": "NEW_IMAGE",
        },
    })
}

/// The same event in a tumbling window, with its state.
pub fn windowed(event: &str, state: &str, is_final: bool) -> String {
    let around = format!(
        r#","window":{{"start":"2024-01-01T00:00:00Z","end":"2024-01-01T00:02:00Z"}},"state":{state},"shardId":"{SHARD}","eventSourceARN":"{STREAM}","isFinalInvokeForWindow":{is_final},"isWindowTerminatedEarly":false}}"#
    );
    let event = event.strip_suffix('}').expect("an object");
    [event, &around].concat()
}
