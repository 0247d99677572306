//! State of the older libraries.

use std::collections::BTreeSet;

use millpond_consumer::SourceKind;
use millpond_consumer::state::legacy::LegacyBatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::Api;
use super::super::error::ApiError;
use super::super::limits::BATCH_MAX;
use super::state::state;

/// Whose state.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportInput {
    consumer: String,
    /// The source's full ARN.
    arn: String,
    /// What the old function called its consumer. Other items are passed over.
    former: String,
    /// What the old function called the stream. Default: its name in the ARN. Other items are passed over.
    stream: Option<String>,
    /// Items of the old function's table, plain or with DynamoDB's types; up to 1,000.
    items: Vec<Value>,
}

/// What was taken over.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "ImportedState")]
pub struct ImportOutput {
    /// Items that were taken over.
    pub items: usize,
    /// Messages in them whose state was written.
    pub messages: usize,
    /// Messages in them that cannot be told again, and run anew.
    pub unnamed: usize,
    /// Items of other streams or consumers.
    pub passed_over: usize,
    /// Those streams and consumers, as `STREAM|CONSUMER`.
    pub others: BTreeSet<String>,
}

/// Takes state over. All items are read before anything is written.
pub async fn import(api: Api, input: ImportInput) -> Result<ImportOutput, ApiError> {
    let ImportInput { consumer, arn, former, stream, items } = input;
    if items.len() > BATCH_MAX {
        let problem = format!("are {}; at most {BATCH_MAX} are accepted", items.len());
        return Err(ApiError::invalid("items", problem));
    }
    let (kind, named) = source_of(&arn)
        .ok_or_else(|| ApiError::invalid("arn", "names no stream of Kinesis or DynamoDB"))?;
    let mut batches = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let batch = LegacyBatch::parse(item.to_string().as_bytes());
        batches.push(batch.map_err(|error| ApiError::invalid(&format!("items[{at}]"), error))?);
    }
    let is_meant = |batch: &LegacyBatch| {
        let is_stream = match &stream {
            Some(stream) => batch.stream == *stream,
            None => is_called(&batch.stream, named),
        };
        batch.kind == kind && batch.consumer == former && is_stream
    };
    let (state, mut done) = (state(&api), ImportOutput::default());
    for batch in batches {
        if !is_meant(&batch) {
            done.passed_over += 1;
            done.others.insert(format!("{}|{}", batch.stream, batch.consumer));
            continue;
        }
        done.messages += Box::pin(batch.import(&state, &consumer, &arn)).await?;
        done.unnamed += batch.unnamed;
        done.items += 1;
    }
    Ok(done)
}

/// What an ARN names: a stream, or the table that a stream is of.
fn source_of(arn: &str) -> Option<(SourceKind, &str)> {
    let mut parts = arn.splitn(6, ':').skip(2);
    let (service, place) = (parts.next()?, parts.nth(2)?);
    match service {
        "kinesis" => Some((SourceKind::Kinesis, place.strip_prefix("stream/")?)),
        "dynamodb" => {
            let (table, _) = place.strip_prefix("table/")?.split_once("/stream/")?;
            Some((SourceKind::DynamoDb, table))
        }
        _ => None,
    }
}

/// Whether an old function may have called a stream so: by its name, with or without what tells apart the streams of one table.
fn is_called(stream: &str, named: &str) -> bool {
    stream == named || stream.strip_prefix(named).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_in_arns() {
        let kinesis = "arn:aws:kinesis:eu-central-1:111122223333:stream/orders_DEV";
        assert_eq!(source_of(kinesis), Some((SourceKind::Kinesis, "orders_DEV")));
        let table = "arn:aws:dynamodb:eu-central-1:1:table/orders/stream/2024-01-01T00:00:00.000";
        assert_eq!(source_of(table), Some((SourceKind::DynamoDb, "orders")));
        for none in ["", "orders", "arn:aws:sqs:eu-central-1:1:orders", "arn:aws:kinesis:x:1:y"] {
            assert_eq!(source_of(none), None, "{none}");
        }
        assert!(is_called("orders", "orders") && is_called("orders/2024-01-01", "orders"));
        assert!(!is_called("orders_DEV", "orders") && !is_called("orders", "orders_DEV"));
    }
}
