//! Setting attributes: each is checked, and brought into the form in which it is kept.

use super::policies::{Allow, Redrive};
use super::{FIFO_ONLY, NUMBERS, Texts, own};
use crate::error::{Code, Failure, Result};

/// Sets attributes of a queue. What is set to nothing is not set any more.
///
/// `fifo`: whether the queue is one. `prefix`: what Millpond's own attributes begin with.
pub fn apply(texts: &mut Texts, given: &Texts, fifo: bool, prefix: &str) -> Result<()> {
    for (name, value) in given {
        let kept = check(name, value, fifo, prefix)?;
        match kept {
            Some(kept) => texts.insert(name.clone(), kept),
            None => texts.remove(name),
        };
    }
    encryption(texts, given)?;
    let is = |name: &str, value: &str| texts.get(name).is_some_and(|text| text == value);
    if is("FifoThroughputLimit", "perMessageGroupId") && !is("DeduplicationScope", "messageGroup") {
        let text = "The perMessageGroupId value is allowed only when the value for \
                    DeduplicationScope is messageGroup.";
        return Err(Failure::new(Code::InvalidAttributeValue, text));
    }
    Ok(())
}

/// Checks one attribute. Returns it as it is kept, and nothing when it is to be as if it had never been set.
fn check(name: &str, value: &str, fifo: bool, prefix: &str) -> Result<Option<String>> {
    if let Some(own) = name.strip_prefix(prefix) {
        own::check(name, own, value)?;
        return Ok(Some(value.to_owned()).filter(|value| !value.is_empty()));
    }
    if let Some((_, least, most, _)) = NUMBERS.iter().find(|(known, ..)| *known == name) {
        let number = value.trim().parse::<u64>().ok().filter(|n| (least..=most).contains(&n));
        return match number {
            Some(number) => Ok(Some(number.to_string())),
            None => Err(Failure::attribute_value(name)),
        };
    }
    if FIFO_ONLY.iter().any(|(known, _)| *known == name) && !fifo {
        if name == "ContentBasedDeduplication" {
            return Err(Failure::unknown_attribute(name));
        }
        let text = format!("You can specify the {name} only when FifoQueue is set to true.");
        return Err(Failure::new(Code::InvalidAttributeName, text));
    }
    let one_of = |all: &[&str]| match all.iter().find(|known| known.eq_ignore_ascii_case(value)) {
        Some(known) => Ok(Some((*known).to_owned())),
        None => Err(Failure::attribute_value(name)),
    };
    match name {
        "Policy" | "RedriveAllowPolicy" | "RedrivePolicy" if value.is_empty() => Ok(None),
        "Policy" => match serde_json::from_str::<serde_json::Value>(value) {
            Ok(serde_json::Value::Object(_)) => Ok(Some(value.to_owned())),
            _ => Err(Failure::attribute_value(name)),
        },
        "RedrivePolicy" => Redrive::read(value).map(|policy| Some(policy.text())),
        // As it was given: who compares it with what they set must find no difference.
        "RedriveAllowPolicy" => Allow::read(value).map(|_| Some(value.to_owned())),
        "KmsMasterKeyId" => Ok(Some(value.to_owned()).filter(|value| !value.is_empty())),
        "SqsManagedSseEnabled" | "ContentBasedDeduplication" => one_of(&["true", "false"]),
        "DeduplicationScope" => one_of(&["queue", "messageGroup"]),
        "FifoThroughputLimit" => one_of(&["perQueue", "perMessageGroupId"]),
        // It cannot be said of a queue that is none.
        "FifoQueue" if fifo && value.eq_ignore_ascii_case("true") => Ok(Some("true".to_owned())),
        "FifoQueue" if fifo => Err(Failure::attribute_value(name)),
        _ => Err(Failure::unknown_attribute(name)),
    }
}

/// A queue is encrypted in one way at a time: setting one ends the other.
fn encryption(texts: &mut Texts, given: &Texts) -> Result<()> {
    let key = given.get("KmsMasterKeyId").is_some_and(|key| !key.is_empty());
    let managed =
        given.get("SqsManagedSseEnabled").is_some_and(|on| on.eq_ignore_ascii_case("true"));
    if key && managed {
        let text = "You can use one type of server-side encryption (SSE) at one time. You can \
                    either enable KMS SSE or SQS SSE.";
        return Err(Failure::new(Code::InvalidAttributeValue, text));
    }
    if key {
        texts.insert("SqsManagedSseEnabled".to_owned(), "false".to_owned());
    } else if managed {
        texts.remove("KmsMasterKeyId");
    }
    Ok(())
}

/// Checks that a queue which exists is what is asked for: each attribute that is named has the same value.
pub fn check_idempotent(existing: &Texts, asked: &Texts) -> Result<()> {
    let default = |name: &str| {
        let number = NUMBERS.iter().find(|(known, ..)| *known == name);
        let number = number.map(|(.., default)| default.to_string());
        let fifo = FIFO_ONLY.iter().find(|(known, _)| *known == name);
        let fifo = fifo.map(|(_, default)| (*default).to_owned());
        let sse = (name == "SqsManagedSseEnabled").then(|| "true".to_owned());
        number.or(fifo).or(sse)
    };
    for (name, value) in asked {
        let current = existing.get(name).cloned().or_else(|| default(name));
        if current.is_none_or(|current| !means_the_same(&current, value)) {
            let text = format!(
                "A queue already exists with the same name and a different value for attribute {name}"
            );
            return Err(Failure::new(Code::QueueNameExists, text));
        }
    }
    Ok(())
}

/// Whether two values are the same, or the same JSON.
fn means_the_same(one: &str, other: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || (one.starts_with('{') && json(one).is_some() && json(one) == json(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str, fifo: bool) -> Result<Option<String>> {
        let mut texts = Texts::new();
        apply(&mut texts, &Texts::from([(name.to_owned(), value.to_owned())]), fifo, "Millpond.")?;
        Ok(texts.remove(name))
    }

    #[test]
    fn numbers_have_bounds_which_are_inclusive() {
        for (name, least, most, _) in NUMBERS {
            for good in [least, most] {
                assert_eq!(set(name, &good.to_string(), false).unwrap(), Some(good.to_string()));
            }
            for bad in [(most + 1).to_string(), "-1".into(), "x".into(), String::new()] {
                let failure = set(name, &bad, false).unwrap_err();
                assert_eq!(failure.code, Code::InvalidAttributeValue, "{name} {bad}");
                assert_eq!(failure.text, format!("Invalid value for the parameter {name}."));
            }
        }
    }

    #[test]
    fn fifo_attributes_are_for_fifo_queues() {
        let refused = |name, value| set(name, value, false).unwrap_err();
        assert_eq!(refused("FifoQueue", "false").text, "Unknown Attribute FifoQueue.");
        assert_eq!(
            refused("DeduplicationScope", "queue").text,
            "You can specify the DeduplicationScope only when FifoQueue is set to true."
        );
        assert!(set("ContentBasedDeduplication", "true", true).is_ok());
        assert!(set("FifoThroughputLimit", "perMessageGroupId", true).is_err());
    }

    #[test]
    fn what_is_only_to_be_read_cannot_be_set() {
        for name in super::super::READ_ONLY.iter().chain(&["All", "Colour", "Millpond.Colour"]) {
            let code = set(name, "1", false).unwrap_err().code;
            assert_eq!(code, Code::InvalidAttributeName, "{name}");
        }
    }
}
