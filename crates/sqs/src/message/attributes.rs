//! What is said about a message.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millpond_queue::{Attribute, AttributeValue};
use serde::{Deserialize, Serialize};

use super::text::check_text;
use crate::error::{Failure, Result};
use crate::limits::{ATTRIBUTE_NAME_CHARS_MAX, MESSAGE_ATTRIBUTES_MAX};

/// An attribute as it travels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MessageAttribute {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_value: Option<String>,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_value: Option<String>,
    #[serde(default)]
    pub data_type: String,
}

impl MessageAttribute {
    /// The bytes of its type and value.
    pub fn size(&self) -> usize {
        let text = self.string_value.as_ref().map_or(0, String::len);
        // Three bytes are four characters, the last of which may be padding.
        let binary = self.binary_value.as_ref().map_or(0, |text| {
            let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
            (text.len() / 4 * 3).saturating_sub(padding)
        });
        self.data_type.len() + text + binary
    }
}

/// Attributes as they travel, by name.
pub type MessageAttributes = BTreeMap<String, MessageAttribute>;

/// Attributes as they are kept.
type Kept = BTreeMap<String, Attribute>;

/// The type of an attribute, with its label.
pub fn data_type(attribute: &Attribute) -> String {
    let kind = match attribute.value {
        AttributeValue::String(_) => "String",
        AttributeValue::Number(_) => "Number",
        AttributeValue::Binary(_) => "Binary",
    };
    match attribute.label.as_str() {
        "" => kind.to_owned(),
        label => format!("{kind}.{label}"),
    }
}

/// Reads the attributes of a message that is sent.
pub fn read(given: &MessageAttributes) -> Result<Kept> {
    if given.len() > MESSAGE_ATTRIBUTES_MAX {
        let count = given.len();
        return Err(Failure::parameter(format!(
            "Number of message attributes [{count}] exceeds the allowed maximum [{MESSAGE_ATTRIBUTES_MAX}]."
        )));
    }
    let mut kept = Kept::new();
    for (name, attribute) in given {
        check_name(name)?;
        kept.insert(name.clone(), read_one(name, attribute, "(user)")?);
    }
    Ok(kept)
}

/// Reads the attributes that are for the service: a trace header is all that can be set.
pub fn read_system(given: &MessageAttributes) -> Result<Kept> {
    let mut kept = Kept::new();
    for (name, attribute) in given {
        if name != "AWSTraceHeader" {
            return Err(Failure::parameter(format!(
                "Message system attribute name '{name}' is invalid. The only supported name is AWSTraceHeader."
            )));
        }
        let read = read_one(name, attribute, "(system)")?;
        if !matches!(read.value, AttributeValue::String(_)) {
            return Err(Failure::parameter(format!(
                "The message system attribute '{name}' must be of type String."
            )));
        }
        kept.insert(name.clone(), read);
    }
    Ok(kept)
}

fn check_name(name: &str) -> Result<()> {
    let lower = name.to_ascii_lowercase();
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > ATTRIBUTE_NAME_CHARS_MAX {
        return Err(Failure::parameter(format!(
            "Message (user) attribute name must be between 1 and {ATTRIBUTE_NAME_CHARS_MAX} characters long."
        )));
    }
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return Err(Failure::parameter(format!(
            "Message (user) attribute name '{name}' can not start with reserved prefixes 'AWS.' or 'Amazon.'."
        )));
    }
    if !name.bytes().all(is_allowed)
        || name.starts_with('.')
        || name.ends_with('.')
        || name.contains("..")
    {
        return Err(Failure::parameter(format!(
            "Invalid message (user) attribute name '{name}': it can contain alphanumeric characters, hyphens, \
             underscores and periods, and can neither begin nor end with a period, nor have two in a row."
        )));
    }
    Ok(())
}

fn read_one(name: &str, given: &MessageAttribute, whose: &str) -> Result<Attribute> {
    let (kind, label) = match given.data_type.split_once('.') {
        Some((kind, label)) => (kind, label.to_owned()),
        None => (given.data_type.as_str(), String::new()),
    };
    if given.data_type.is_empty() {
        return Err(Failure::parameter(format!(
            "The message attribute '{name}' must contain a non-empty message attribute type."
        )));
    }
    if given.data_type.len() > ATTRIBUTE_NAME_CHARS_MAX {
        return Err(Failure::parameter(format!(
            "The type of message attribute '{name}' must be at most {ATTRIBUTE_NAME_CHARS_MAX} characters long."
        )));
    }
    let empty = || {
        Failure::parameter(format!(
            "The message attribute '{name}' must contain a non-empty message attribute value for \
             message attribute type '{}'.",
            given.data_type
        ))
    };
    let text = || given.string_value.clone().filter(|text| !text.is_empty()).ok_or_else(empty);
    let value = match kind {
        "String" => {
            let text = text()?;
            check_text(&text)?;
            AttributeValue::String(text)
        }
        "Number" => {
            let text = text()?;
            if !is_number(&text) {
                return Err(Failure::parameter(format!(
                    "Can't cast the value of message {whose} attribute '{name}' to a number."
                )));
            }
            AttributeValue::Number(text)
        }
        "Binary" => {
            let text = given.binary_value.as_deref().filter(|text| !text.is_empty());
            let bytes = STANDARD.decode(text.ok_or_else(empty)?).map_err(|_| {
                Failure::parameter(format!(
                    "The value of message attribute '{name}' is not base64."
                ))
            })?;
            AttributeValue::Binary(bytes.into())
        }
        _ => {
            return Err(Failure::parameter(format!(
                "The message attribute '{name}' has an invalid message attribute type, the set of \
                 supported type prefixes is Binary, Number, and String."
            )));
        }
    };
    Ok(Attribute { value, label })
}

/// Whether the queue below takes a text for a number: decimal, with up to 38 digits.
fn is_number(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.chars().filter(char::is_ascii_digit).count();
    let plain =
        text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'));
    plain && (1..=38).contains(&digits) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Which attributes a receiver asks for.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    all: bool,
    exact: Vec<String>,
    prefixes: Vec<String>,
}

impl Chosen {
    /// `All` and `.*` mean all, `prefix.*` those that begin so, and other names themselves.
    pub fn of(names: &[String]) -> Self {
        let mut chosen = Self::default();
        for name in names {
            match name.strip_suffix(".*") {
                Some("") => chosen.all = true,
                Some(prefix) => chosen.prefixes.push(prefix.to_owned()),
                None if name == "All" => chosen.all = true,
                None => chosen.exact.push(name.clone()),
            }
        }
        chosen
    }

    pub fn has(&self, name: &str) -> bool {
        self.all
            || self.exact.iter().any(|exact| exact == name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }
}

/// Attributes as they travel.
pub fn show(kept: &Kept) -> MessageAttributes {
    let one = |attribute: &Attribute| {
        let data_type = data_type(attribute);
        match &attribute.value {
            AttributeValue::String(text) | AttributeValue::Number(text) => MessageAttribute {
                string_value: Some(text.clone()),
                data_type,
                ..MessageAttribute::default()
            },
            AttributeValue::Binary(bytes) => MessageAttribute {
                binary_value: Some(STANDARD.encode(bytes)),
                data_type,
                ..MessageAttribute::default()
            },
        }
    };
    kept.iter().map(|(name, attribute)| (name.clone(), one(attribute))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(data_type: &str, value: &str) -> MessageAttribute {
        let (string_value, binary_value) = if data_type.starts_with("Binary") {
            (None, Some(value.to_owned()))
        } else {
            (Some(value.to_owned()), None)
        };
        MessageAttribute { string_value, binary_value, data_type: data_type.to_owned() }
    }

    #[test]
    fn labels_are_kept() {
        let given: MessageAttributes = [
            ("a", attribute("String.uuid", "x")),
            ("b", attribute("Number.int.unsigned", "7")),
            ("c", attribute("Binary.gif", "AAEC")),
        ]
        .map(|(name, attribute)| (name.to_owned(), attribute))
        .into();
        assert_eq!(show(&read(&given).unwrap()), given);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (name, bad, part) in [
            ("a", attribute("", "x"), "non-empty message attribute type"),
            ("a", attribute("Text", "x"), "supported type prefixes"),
            ("a", attribute("String", ""), "non-empty message attribute value"),
            ("a", attribute("Number", "x"), "to a number"),
            ("a", attribute("Binary", "%"), "base64"),
            ("AWS.a", attribute("String", "x"), "reserved prefixes"),
            ("a..b", attribute("String", "x"), "Invalid message (user) attribute name"),
            ("a b", attribute("String", "x"), "Invalid message (user) attribute name"),
        ] {
            let given = MessageAttributes::from([(name.to_owned(), bad)]);
            let failure = read(&given).unwrap_err();
            assert!(failure.text.contains(part), "{name}: {}", failure.text);
        }
    }

    #[test]
    fn names_are_chosen_by_wildcards_of_two_forms() {
        let names =
            |names: &[&str]| Chosen::of(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert!(names(&["All"]).has("x") && names(&[".*"]).has("x"));
        let some = names(&["NServiceBus.*", "exact"]);
        assert!(some.has("NServiceBus.Id") && some.has("exact"));
        assert!(!some.has("exact.more") && !some.has("other"));
        assert!(!names(&[]).has("x"));
    }
}
