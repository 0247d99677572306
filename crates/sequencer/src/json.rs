//! Messages fed as JSON, as a Lambda function gets them.

use bytes::Bytes;
use serde_json::Value;

use crate::error::{Result, SequencerError};
use crate::limits::SEQ_MAX;
use crate::message::{Entry, Message};
use crate::names::QueueName;

/// Which properties of a JSON object say where it belongs. A name that begins with a slash is a JSON pointer
/// (`/order/number`), any other the name of a top-level property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonFeed {
    /// The property with the queue's name: text, or a whole number, which means the queue of that text.
    pub queue_prop: String,
    /// The property with the sequence number: a whole number, or text of digits.
    pub seq_prop: String,
}

impl JsonFeed {
    /// Names both properties.
    #[must_use]
    pub fn new(queue_prop: impl Into<String>, seq_prop: impl Into<String>) -> Self {
        Self { queue_prop: queue_prop.into(), seq_prop: seq_prop.into() }
    }

    /// The message that `json` is, with its place. Its payload is the JSON as it came.
    ///
    /// # Errors
    /// [`SequencerError::Invalid`], which names the property that is missing or makes no sense.
    pub fn entry(&self, json: impl Into<Bytes>) -> Result<Entry> {
        let payload = json.into();
        let value: Value = serde_json::from_slice(&payload)
            .map_err(|error| SequencerError::invalid("message", format!("is not JSON: {error}")))?;
        let queue = match find(&value, &self.queue_prop) {
            Some(Value::String(name)) => QueueName::new(name.as_str())?,
            Some(Value::Number(number)) if !number.is_f64() => QueueName::new(number.to_string())?,
            found => return Err(refuse("queue_prop", &self.queue_prop, "text", found)),
        };
        let seq = match find(&value, &self.seq_prop) {
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok()
            }
            _ => None,
        };
        match seq.filter(|seq| *seq <= SEQ_MAX) {
            Some(seq) => Ok(Entry { queue, seq, message: Message::new(payload) }),
            None => {
                let wanted = format!("a whole number from 0 to {SEQ_MAX}");
                Err(refuse("seq_prop", &self.seq_prop, &wanted, find(&value, &self.seq_prop)))
            }
        }
    }
}

fn find<'a>(value: &'a Value, property: &str) -> Option<&'a Value> {
    if property.starts_with('/') { value.pointer(property) } else { value.get(property) }
}

/// Says what is there, cut short: a message may be long, and is nobody's business.
fn refuse(
    field: &'static str,
    property: &str,
    wanted: &str,
    found: Option<&Value>,
) -> SequencerError {
    let found = match found {
        None => "is missing".to_owned(),
        Some(Value::Number(number)) => format!("is {number}"),
        Some(Value::String(text)) => format!("is text of {} bytes", text.len()),
        Some(Value::Null) => "is null".to_owned(),
        Some(Value::Bool(_)) => "is a truth value".to_owned(),
        Some(Value::Array(_) | Value::Object(_)) => "is not a plain value".to_owned(),
    };
    SequencerError::invalid(field, format!("{property:?} {found}; it should be {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &'static str) -> Result<Entry> {
        JsonFeed::new("queue", "/at/seq").entry(json)
    }

    #[test]
    fn queue_and_number_are_found_by_their_properties() {
        let found = entry(r#"{"queue":"orders","at":{"seq":7},"x":[1]}"#).unwrap();
        assert_eq!((found.queue.as_str(), found.seq), ("orders", 7));
        assert!(found.message.payload.ends_with(b"[1]}"));
        let text = entry(r#"{"queue":12,"at":{"seq":"0123"}}"#).unwrap();
        assert_eq!((text.queue.as_str(), text.seq), ("12", 123));
    }

    #[test]
    fn negative_and_absurd_numbers_are_refused_and_named() {
        let absurd = [
            "-1",
            "1.5",
            "9223372036854775807",
            "1e300",
            "99999999999999999999",
            "null",
            "true",
            "\"-3\"",
            "\"\"",
            "\"12a\"",
            "\"99999999999999999999\"",
            "[1]",
            "{}",
        ];
        for number in absurd {
            let json = format!(r#"{{"queue":"q","at":{{"seq":{number}}}}}"#);
            let error = JsonFeed::new("queue", "/at/seq").entry(json).unwrap_err().to_string();
            assert!(error.starts_with("seq_prop \"/at/seq\" is"), "{number}: {error}");
        }
        let missing = entry(r#"{"queue":"q"}"#).unwrap_err().to_string();
        assert!(missing.contains("\"/at/seq\" is missing"), "{missing}");
        let last = entry(r#"{"queue":"q","at":{"seq":9223372036854775806}}"#).unwrap();
        assert_eq!(last.seq, SEQ_MAX);
    }

    #[test]
    fn queues_without_a_usable_name_are_refused_and_named() {
        for queue in ["null", "1.5", "[]", "{}", "false"] {
            let json = format!(r#"{{"queue":{queue},"at":{{"seq":1}}}}"#);
            let error = JsonFeed::new("queue", "/at/seq").entry(json).unwrap_err().to_string();
            assert!(error.starts_with("queue_prop \"queue\" is"), "{queue}: {error}");
        }
        assert_eq!(
            entry(r#"{"queue":"","at":{"seq":1}}"#).unwrap_err().to_string(),
            "queue is empty"
        );
        assert!(entry("not json").unwrap_err().to_string().starts_with("message is not JSON"));
        assert!(entry("[1]").unwrap_err().to_string().contains("is missing"));
    }
}
