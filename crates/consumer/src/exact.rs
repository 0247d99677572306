//! Numbers with all their digits. A value keeps 64 bits of a number; where a message is named or put in order by one, two that
//! differ behind that would be one, so that their digits are read from the message's bytes.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::identity::Decimal;

/// The text of the value at a path of a message: the same for the same value, however it is written, and for no other.
pub(crate) fn text(value: &Value, path: &str, payload: &[u8]) -> String {
    if is_exact(value) {
        return value.to_string();
    }
    let written = || {
        let raw = property(serde_json::from_slice(payload).ok()?, path)?;
        // An extractor may make values that its bytes do not have.
        (serde_json::from_str::<Value>(raw.get()).ok()? == *value).then_some(())?;
        let mut text = String::new();
        canonical(raw, &mut text)?;
        Some(text)
    };
    written().unwrap_or_else(|| value.to_string())
}

/// Whether no digit was lost.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_f64(),
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(map) => map.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// As [`identity`](crate::identity) finds it in a value.
fn property<'a>(raw: &'a RawValue, path: &str) -> Option<&'a RawValue> {
    if let Some(direct) = named(raw, path) {
        return Some(direct);
    }
    let (first, rest) = path.split_once('.')?;
    let inner = first.parse().ok().and_then(|at| item(raw, at)).or_else(|| named(raw, first))?;
    let last = rest.parse().ok().and_then(|at| item(inner, at));
    last.or_else(|| property(inner, rest))
}

fn named<'a>(raw: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()).ok()?.get(name).copied()
}

fn item(raw: &RawValue, at: usize) -> Option<&RawValue> {
    serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok()?.get(at).copied()
}

/// Writes a value as `serde_json` does, but with all digits. It is no deeper than a value can be.
fn canonical(raw: &RawValue, out: &mut String) -> Option<()> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'{' => {
            let map: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            out.push('{');
            for (at, (name, value)) in map.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(name).to_string());
                out.push(':');
                canonical(value, out)?;
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (at, value) in items.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                canonical(value, out)?;
            }
            out.push(']');
        }
        _ => out.push_str(&scalar(text)?),
    }
    Some(())
}

/// A number that its value says is written as that says it, so that `1.5` and `15e-1` are one; any other with all its digits.
fn scalar(text: &str) -> Option<String> {
    let kept = serde_json::from_str::<Value>(text).ok()?;
    if !kept.is_number() {
        return Some(kept.to_string());
    }
    let kept = kept.to_string();
    match (Decimal::parse(text), Decimal::parse(&kept)) {
        (Some(written), Some(value)) if written != value => Some(written.to_string()),
        _ => Some(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str, path: &str) -> String {
        let value: Value = serde_json::from_str(json).unwrap();
        let found = value.pointer(&format!("/{}", path.replace('.', "/"))).unwrap();
        text(found, path, json.as_bytes())
    }

    #[test]
    fn numbers_that_differ_in_any_digit_have_texts_of_their_own() {
        let numbers = [
            "1234567890123456789012345",
            "1234567890123456789012346",
            "-1234567890123456789012346",
            "0.1234567890123456789",
            "0.1234567890123456788",
            "1e30",
            "1",
            "1.5",
        ];
        let texts: std::collections::BTreeSet<String> =
            numbers.iter().map(|number| of(&format!("{{\"a\":{number}}}"), "a")).collect();
        assert_eq!(texts.len(), numbers.len(), "{texts:?}");
    }

    #[test]
    fn one_number_has_one_text_however_it_is_written() {
        for (a, b) in [
            ("1.5", "15e-1"),
            ("1234567890123456789012345", "1234567890123456789012345.0"),
            ("1234567890123456789012345", "0.1234567890123456789012345E25"),
        ] {
            assert_eq!(of(&format!("[ {a} ]"), "0"), of(&format!("[{b}]"), "0"), "{a} and {b}");
        }
    }

    #[test]
    fn digits_are_found_however_deep_they_are() {
        let long = "1234567890123456789012345";
        let json = format!(r#"{{"o": {{"b": [ 1, {{"z": {long}, "é": "x"}} ], "a": {{}}}}}}"#);
        assert_eq!(of(&json, "o.b.1.z"), "0.1234567890123456789012345e25");
        let whole = r#"{"a":{},"b":[1,{"z":0.1234567890123456789012345e25,"é":"x"}]}"#;
        assert_eq!(of(&json, "o"), whole);
        assert_eq!(of(&json.replace(": ", " :\n"), "o"), whole);
    }

    #[test]
    fn a_value_that_is_not_in_the_bytes_is_taken_as_it_is() {
        for payload in [&b"not json"[..], b"{}", b"{\"a\":2.5}"] {
            assert_eq!(text(&1.5.into(), "a", payload), "1.5");
        }
    }
}
