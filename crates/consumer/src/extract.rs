//! From a record's bytes to messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use serde_json::Value;

use crate::outcome::cut;

/// What an extractor gets: the bytes of one record, or of one user record of an aggregate.
#[derive(Debug, Clone)]
pub struct Data {
    /// The bytes. For a DynamoDB stream, its images as plain JSON.
    pub bytes: Bytes,
    /// The value, where the source has it already: DynamoDB Streams.
    pub value: Option<Value>,
}

/// One message, as an extractor finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Extracted {
    /// Its bytes.
    pub payload: Bytes,
    /// What the bytes say, for handlers and for ids, keys and sequence properties. Default: nothing.
    pub value: Option<Value>,
}

/// Finds the messages in the bytes of a record. It must find the same ones in the same bytes every time: a message's
/// state is kept by its place among them.
pub trait Extractor: Send + Sync + 'static {
    /// The messages, in order; none when there is nothing to do.
    ///
    /// # Errors
    /// A reason: the record then goes to the dead records.
    fn extract(&self, data: &Data) -> Result<Vec<Extracted>, String>;

    /// Whether it can neither hang nor kill its process, whatever the bytes are. If not, it is watched as a handler is: one
    /// that does so for a record is found out, and the record put aside. Default: it is watched.
    fn is_harmless(&self) -> bool {
        false
    }
}

impl<F> Extractor for F
where
    F: Fn(&Data) -> Result<Vec<Extracted>, String> + Send + Sync + 'static,
{
    fn extract(&self, data: &Data) -> Result<Vec<Extracted>, String> {
        self(data)
    }
}

/// Each record is one message in JSON. The default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl Extractor for Json {
    fn extract(&self, data: &Data) -> Result<Vec<Extracted>, String> {
        let value = match &data.value {
            Some(value) => value.clone(),
            None => serde_json::from_slice(&data.bytes)
                .map_err(|error| format!("the data is not JSON: {error}"))?,
        };
        Ok(vec![Extracted { payload: data.bytes.clone(), value: Some(value) }])
    }

    fn is_harmless(&self) -> bool {
        true
    }
}

/// Each line of a record is one message in JSON; empty lines are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonLines;

impl Extractor for JsonLines {
    fn extract(&self, data: &Data) -> Result<Vec<Extracted>, String> {
        let mut messages = Vec::new();
        for (number, line) in data.bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let value = serde_json::from_slice(line)
                .map_err(|error| format!("line {} is not JSON: {error}", number + 1))?;
            messages.push(Extracted { payload: data.bytes.slice_ref(line), value: Some(value) });
        }
        Ok(messages)
    }

    fn is_harmless(&self) -> bool {
        true
    }
}

/// Each record is one message, whatever its bytes are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

impl Extractor for Raw {
    fn extract(&self, data: &Data) -> Result<Vec<Extracted>, String> {
        Ok(vec![Extracted { payload: data.bytes.clone(), value: data.value.clone() }])
    }

    fn is_harmless(&self) -> bool {
        true
    }
}

/// Runs an extractor; a panic is a reason like any other.
pub(crate) fn run(extractor: &dyn Extractor, data: &Data) -> Result<Vec<Extracted>, String> {
    let found = catch_unwind(AssertUnwindSafe(|| extractor.extract(data)));
    found.unwrap_or_else(|_| Err("the extractor panicked".into())).map_err(|reason| cut(&reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: &'static [u8]) -> Data {
        Data { bytes: Bytes::from_static(bytes), value: None }
    }

    #[test]
    fn json_lines_keep_their_bytes() {
        let found = JsonLines.extract(&data(b"{\"a\":1}\n\n [2] \r\n")).unwrap();
        let payloads: Vec<_> = found.iter().map(|one| one.payload.clone()).collect();
        assert_eq!(payloads, ["{\"a\":1}", " [2] \r"]);
        let error = JsonLines.extract(&data(b"1\n{")).unwrap_err();
        assert!(error.starts_with("line 2 is not JSON"), "{error}");
    }

    #[test]
    fn a_panicking_extractor_is_a_reason() {
        let panics = |_: &Data| -> Result<Vec<Extracted>, String> { panic!("no") };
        assert_eq!(run(&panics, &data(b"")).unwrap_err(), "the extractor panicked");
    }
}
