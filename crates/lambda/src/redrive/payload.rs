//! The bytes that a source once delivered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use millpond_consumer::DeadLetter;
use millpond_consumer::sink::{Kind, LetterError};
use serde_json::Value;

/// The bytes that were put into the source. Of a message, its own; of a record that could not be read, what it carried,
/// when at least that can be found.
pub(super) fn payload(letter: &DeadLetter) -> Result<Bytes, LetterError> {
    let bytes = letter.payload()?;
    if letter.kind == Kind::Message || letter.message.is_some() {
        return Ok(bytes);
    }
    let record: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    if let Some(data) = record.pointer("/kinesis/data").and_then(Value::as_str) {
        let data = STANDARD.decode(data);
        return data.map(Bytes::from).map_err(|error| {
            LetterError::Unreadable(format!("its record's data is not base64: {error}"))
        });
    }
    match record.get("body").and_then(Value::as_str) {
        Some(body) => Ok(Bytes::copy_from_slice(body.as_bytes())),
        None => Ok(bytes),
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
        let of = |letter: &DeadLetter| payload(letter).unwrap();
        assert_eq!(of(&letter("message", Some("hello"), "{}")), "hello");
        let kinesis = r#"{"kinesis":{"data":"bm90IEpTT04="}}"#;
        assert_eq!(of(&letter("record", None, kinesis)), "not JSON");
        assert_eq!(of(&letter("record", Some("not JSON"), kinesis)), "not JSON");
        assert_eq!(of(&letter("record", None, r#"{"body":"not JSON"}"#)), "not JSON");
        assert_eq!(of(&letter("record", None, "strange")), "strange");
        assert!(payload(&letter("record", None, r#"{"kinesis":{"data":"?"}}"#)).is_err());
    }
}
