//! What a function answers.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::limits::RESPONSE_BYTES_MAX;

/// How a batch that is not finished is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Responses {
    /// With a partial batch response: the event source mapping must have `ReportBatchItemFailures`. The default.
    #[default]
    Partial,
    /// With an error, upon which the whole batch comes again.
    Error,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partial<'a> {
    batch_item_failures: Vec<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    item_identifier: &'a str,
}

/// A partial batch response that names these. An empty name makes Lambda take the whole batch for failed.
pub(crate) fn partial(items: &[String], state: Option<&RawValue>) -> Bytes {
    let failures = items.iter().map(|item| Failure { item_identifier: item }).collect();
    let response = Partial { batch_item_failures: failures, state };
    let bytes = serde_json::to_vec(&response).unwrap_or_default();
    if bytes.is_empty() || bytes.len() > RESPONSE_BYTES_MAX {
        return Bytes::from_static(br#"{"batchItemFailures":[{"itemIdentifier":""}]}"#);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_as_lambda_reads_them() {
        assert_eq!(partial(&[], None), r#"{"batchItemFailures":[]}"#);
        let items = ["a".to_owned(), "b".to_owned()];
        let expected = r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}"#;
        assert_eq!(partial(&items, None), expected);
        let state = RawValue::from_string(r#"{"sum": 1}"#.into()).unwrap();
        let expected = r#"{"batchItemFailures":[],"state":{"sum": 1}}"#;
        assert_eq!(partial(&[], Some(&state)), expected);
        let huge = vec!["x".repeat(1_000); 7_000];
        assert_eq!(partial(&huge, None), r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#);
    }
}
