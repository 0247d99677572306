//! How messages are told apart, grouped and put in order: ids, keys, sequence properties, digests.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::exact;

/// Where a message's id comes from. Two messages with one id are duplicates of each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ids {
    /// From the source: the event's or message's id. No two messages share it, so that duplicates are not noticed.
    #[default]
    Source,
    /// From properties of the message, such as `order.id`, all of them together.
    Properties(Vec<String>),
    /// From the message's bytes: the same bytes are the same message.
    Digest,
}

/// What messages are identified by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Identity {
    pub ids: Ids,
    pub keys: Vec<String>,
    pub sequence: Vec<String>,
}

/// What was found out about one message.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Identified {
    pub id: Option<String>,
    /// Id properties that the message lacks.
    pub ids_missing: Vec<String>,
    /// The business key, as JSON: values keep their types and cannot run into each other.
    pub key: Option<String>,
    pub sequence: Vec<Rank>,
    /// The first key or sequence property that the message lacks: such a message has no place in an order.
    pub missing: Option<Missing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub what: &'static str,
    pub property: String,
}

impl Identity {
    /// Finds out what names and orders a message.
    pub fn identify(&self, value: Option<&Value>, payload: &[u8], source_id: &str) -> Identified {
        let mut found = Identified::default();
        match &self.ids {
            Ids::Source => found.id = Some(source_id.to_owned()),
            Ids::Digest => found.id = Some(digest(payload)),
            Ids::Properties(names) => {
                let (values, missing) = look_up(names, value, payload);
                found.ids_missing = missing;
                found.id = (!values.is_empty()).then(|| canonical(&values));
            }
        }
        let (keys, keys_missing) = look_up(&self.keys, value, payload);
        let (sequence, sequence_missing) = look_up(&self.sequence, value, payload);
        found.key = (!self.keys.is_empty()).then(|| canonical(&keys));
        found.sequence = sequence.iter().map(Rank::of).collect();
        let first = |what, missing: Vec<String>| {
            missing.into_iter().next().map(|property| Missing { what, property })
        };
        found.missing = first("key", keys_missing).or_else(|| first("sequence", sequence_missing));
        found
    }
}

/// A property of a message.
struct Property<'a> {
    value: &'a Value,
    /// The same as JSON, with all digits of its numbers.
    text: String,
}

/// The values of properties, and the names of those that are missing or null.
fn look_up<'a>(
    names: &[String],
    value: Option<&'a Value>,
    payload: &[u8],
) -> (Vec<Property<'a>>, Vec<String>) {
    let (mut values, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match value.and_then(|value| property(value, name)) {
            None | Some(Value::Null) => missing.push(name.clone()),
            Some(value) => values.push(Property { value, text: exact::text(value, name, payload) }),
        }
    }
    (values, missing)
}

/// The value at a path such as `order.lines.0.id`. A property whose own name has dots is found too.
fn property<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if let Some(direct) = value.get(path) {
        return Some(direct);
    }
    let (first, rest) = path.split_once('.')?;
    let inner = match value {
        Value::Array(items) => items.get(first.parse::<usize>().ok()?)?,
        other => other.get(first)?,
    };
    let last = rest.parse::<usize>().ok().and_then(|at| inner.get(at));
    last.or_else(|| property(inner, rest))
}

fn canonical(values: &[Property<'_>]) -> String {
    let texts: Vec<&str> = values.iter().map(|property| property.text.as_str()).collect();
    format!("[{}]", texts.join(","))
}

/// The hexadecimal SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value of a sequence property, in an order that is total: numbers by their value, however they are written and
/// however many digits they have, and before all texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rank {
    Number(Decimal),
    Text(String),
}

impl Rank {
    fn of(property: &Property<'_>) -> Self {
        let text = property.value.as_str().unwrap_or(&property.text);
        Decimal::parse(text).map_or_else(|| Self::Text(text.to_owned()), Self::Number)
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// A decimal number: 0.DIGITS × 10^exponent, with no zeros at either end of the digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    exponent: i64,
    digits: String,
}

impl Decimal {
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, i64::from(power.parse::<i32>().ok()?)),
            None => (text, 0),
        };
        let (negative, unsigned) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let leading = digits.len() - digits.trim_start_matches('0').len();
        let exponent = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()? + power;
        let digits = digits.trim_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, exponent: 0, digits });
        }
        Some(Self { negative, exponent, digits })
    }

    /// Less than, equal to or greater than zero, then the size.
    fn parts(&self) -> (i8, i64, &str) {
        let sign = match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        (sign, self.exponent, &self.digits)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}0.{}e{}", self.digits, self.exponent)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((a, a_exponent, a_digits), (b, b_exponent, b_digits)) = (self.parts(), other.parts());
        a.cmp(&b).then_with(|| {
            let size = a_exponent.cmp(&b_exponent).then_with(|| a_digits.cmp(b_digits));
            if a < 0 { size.reverse() } else { size }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(value: &Value, names: &[&str]) -> Option<String> {
        let keys = names.iter().map(|name| (*name).to_owned()).collect();
        Identity { keys, ..Identity::default() }.identify(Some(value), b"", "").key
    }

    #[test]
    fn keys_never_collide() {
        let names = ["a", "b"];
        let keys = [
            json!({"a": "1", "b": "2"}),
            json!({"a": 1, "b": 2}),
            json!({"a": "1|b:2", "b": ""}),
            json!({"a": "1", "b": "|2"}),
            json!({"a": "1\",\"2", "b": ""}),
            json!({"a": "é", "b": "2"}),
            json!({"a": "e\u{301}", "b": "2"}),
        ];
        let distinct: std::collections::BTreeSet<_> =
            keys.iter().map(|value| key(value, &names).unwrap()).collect();
        assert_eq!(distinct.len(), keys.len(), "{distinct:?}");
    }

    #[test]
    fn properties_are_found_by_path() {
        let value = json!({"order": {"lines": [{"id": 7}], "x.y": 1}, "a.b": 2});
        for (path, found) in [("order.lines.0.id", 7), ("a.b", 2), ("order.x.y", 1)] {
            assert_eq!(property(&value, path), Some(&json!(found)), "{path}");
        }
        assert_eq!(property(&value, "order.lines.1.id"), None);
        assert_eq!(property(&value, "order.lines.0"), Some(&json!({"id": 7})));
    }

    #[test]
    fn missing_properties_are_named() {
        let identity = Identity {
            ids: Ids::Properties(vec!["id".into(), "shop".into()]),
            keys: vec!["customer".into()],
            sequence: vec!["version".into()],
        };
        let value = json!({"shop": 1, "customer": null, "version": 2});
        let found = identity.identify(Some(&value), b"", "");
        assert_eq!(found.ids_missing, ["id"]);
        assert_eq!(found.id.as_deref(), Some("[1]"));
        let missing = found.missing.unwrap();
        assert_eq!((missing.what, missing.property.as_str()), ("key", "customer"));
    }

    #[test]
    fn sequence_values_are_in_a_total_order() {
        let rising = [
            json!("-12345678901234567890123456"),
            json!(-2),
            json!("-1.5"),
            json!(0),
            json!(0.25),
            json!("9"),
            json!(10),
            json!("1e1000"),
            json!("1".repeat(2_000)),
            json!("2017-01-17T23:59:59.000Z"),
            json!("2017-01-17T23:59:59.001Z"),
        ];
        let rank = |value: &Value| Rank::of(&Property { value, text: value.to_string() });
        for (at, a) in rising.iter().enumerate() {
            for (other, b) in rising.iter().enumerate() {
                assert_eq!(rank(a).cmp(&rank(b)), at.cmp(&other), "{a} and {b}");
            }
        }
        assert_eq!(rank(&json!("0010.50")), rank(&json!(10.5)));
    }

    #[test]
    fn numbers_over_64_bits_name_and_order_messages_by_all_their_digits() {
        let identity = Identity {
            ids: Ids::Properties(vec!["n".into()]),
            keys: vec!["n".into()],
            sequence: vec!["n".into()],
        };
        let identify = |n: &str| {
            let payload = format!("{{\"n\": {n}}}");
            let value: Value = serde_json::from_str(&payload).unwrap();
            identity.identify(Some(&value), payload.as_bytes(), "")
        };
        let first = identify("1234567890123456789012345");
        let second = identify("1234567890123456789012346");
        assert!(first.id != second.id && first.key != second.key, "{first:?} {second:?}");
        assert!(first.sequence < second.sequence);
        assert_eq!(first, identify("1234567890123456789012345.0"));
    }
}
