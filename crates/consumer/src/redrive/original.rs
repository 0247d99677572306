//! What a source once delivered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use super::error::RedriveError;
use crate::sink::{DeadLetter, LetterError, SourceName};
use crate::source::SourceKind;

/// What was put into the source of a letter: what goes back, byte for byte, when it is redriven to a queue, a log or a
/// stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Original {
    /// The bytes. Of a message, its own; of a record that could not be read, what it carried, when at least that can be
    /// found.
    pub payload: Bytes,
    /// The source's own key.
    pub key: Option<String>,
}

impl Original {
    /// What a letter is about.
    ///
    /// # Errors
    /// When the letter was spilled and not fetched, is damaged, or is about the end of a window.
    pub fn of(letter: &DeadLetter) -> Result<Self, RedriveError> {
        if letter.is_window() {
            return Err(RedriveError::Window(letter.dedupe_id.clone()));
        }
        let payload = letter.payload()?;
        let kind = letter.source.as_ref().and_then(SourceName::source_kind);
        // Records of Millpond's own sources are their payload.
        let bare = matches!(kind, Some(SourceKind::Queue | SourceKind::Log));
        if letter.message.is_some() || bare {
            return Ok(Self { payload, key: letter.partition_key.clone() });
        }
        let record: Value = serde_json::from_slice(&payload).unwrap_or(Value::Null);
        let text = |at: &str| record.pointer(at).and_then(Value::as_str);
        let key = text("/kinesis/partitionKey").or(text("/attributes/MessageGroupId"));
        let key = letter.partition_key.clone().or(key.map(str::to_owned));
        let payload = match (text("/kinesis/data"), text("/body")) {
            (Some(data), _) => STANDARD.decode(data).map(Bytes::from).map_err(|error| {
                LetterError::Unreadable(format!("its record's data is not base64: {error}"))
            })?,
            (None, Some(body)) => Bytes::copy_from_slice(body.as_bytes()),
            (None, None) => payload,
        };
        Ok(Self { payload, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(kind: &str, message: Option<&str>, raw: &str) -> DeadLetter {
        let mut letter = serde_json::json!({
            "millpond": "dead letter", "version": 1, "kind": kind, "reason": "unusable",
            "detail": "", "consumer": "c", "dedupe_id": "d", "died_ms": 1, "raw": { "text": raw },
        });
        if let Some(message) = message {
            letter["message"] = serde_json::json!({ "text": message });
        }
        DeadLetter::decode(letter.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_was_put_into_the_source_is_found_again() {
        let of = |letter: &DeadLetter| Original::of(letter).unwrap();
        let original = |payload: &'static str, key: Option<&str>| Original {
            payload: Bytes::from_static(payload.as_bytes()),
            key: key.map(str::to_owned),
        };
        assert_eq!(of(&letter("message", Some("hello"), "{}")), original("hello", None));
        let kinesis = r#"{"kinesis":{"data":"bm90IEpTT04=","partitionKey":"k"}}"#;
        assert_eq!(of(&letter("record", None, kinesis)), original("not JSON", Some("k")));
        assert_eq!(of(&letter("record", Some("parsed"), kinesis)), original("parsed", None));
        let sqs = r#"{"body":"not JSON","attributes":{"MessageGroupId":"g"}}"#;
        assert_eq!(of(&letter("record", None, sqs)), original("not JSON", Some("g")));
        assert_eq!(of(&letter("record", None, "strange")), original("strange", None));
        assert!(Original::of(&letter("record", None, r#"{"kinesis":{"data":"?"}}"#)).is_err());
        // A message of a Millpond queue that looks like one of SQS.
        let mut own = letter("record", None, sqs);
        let (kind, arn) = (SourceKind::Queue.name().to_owned(), "queue/q/".to_owned());
        own.source = Some(SourceName { kind, arn, shard: String::new() });
        assert_eq!(of(&own), original(sqs, None));
    }
}
