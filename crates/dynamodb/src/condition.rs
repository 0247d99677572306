//! What a write expects, in the service's words. Nothing of this language leaves the crate.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use millpond_store::{Expect, Timestamp, Version, Write};

use crate::item::{EXP, PK, Row, VER, version_value};

/// An expression with the names and values it mentions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    /// The expression.
    pub text: String,
    /// What its `#` names stand for.
    pub names: HashMap<String, String>,
    /// What its `:` values stand for.
    pub values: Row,
}

/// The condition for a write on its own; none when it always applies.
pub(crate) fn of_write(write: &Write, now: Timestamp) -> Option<Condition> {
    match write.expect {
        Expect::Absent => Some(absent(now)),
        Expect::Version(version) => Some(at_version(version, now)),
        Expect::Any => None,
    }
}

/// The condition for a write of an atomic group. There, a put that always applies is given one too: that its own
/// version is not there yet. So a group that is repeated knows itself again.
pub(crate) fn of_group_write(write: &Write, now: Timestamp) -> Option<Condition> {
    of_write(write, now).or_else(|| write.version().map(|version| not_yet(version, now)))
}

/// A condition that never holds: for asking whether a write would be permitted.
pub(crate) fn never() -> Condition {
    Condition::new(
        "attribute_exists(#pk) AND attribute_not_exists(#pk)",
        &[("#pk", PK)],
        Vec::new(),
    )
}

/// No item, or one past its expiry.
fn absent(now: Timestamp) -> Condition {
    Condition::new(
        "attribute_not_exists(#pk) OR #exp <= :now",
        &[("#pk", PK), ("#exp", EXP)],
        vec![(":now", second(now))],
    )
}

/// A live item of this version.
fn at_version(version: Version, now: Timestamp) -> Condition {
    Condition::new(
        "#ver = :ver AND (attribute_not_exists(#exp) OR #exp > :now)",
        &[("#ver", VER), ("#exp", EXP)],
        vec![(":ver", version_value(version)), (":now", second(now))],
    )
}

/// Anything but a live item of this version.
fn not_yet(version: Version, now: Timestamp) -> Condition {
    Condition::new(
        "attribute_not_exists(#ver) OR #ver <> :ver OR #exp <= :now",
        &[("#ver", VER), ("#exp", EXP)],
        vec![(":ver", version_value(version)), (":now", second(now))],
    )
}

/// The whole second that expiries are compared with, as [`millpond_store::Expiry::is_past`] does.
fn second(now: Timestamp) -> AttributeValue {
    AttributeValue::N((now.as_millis() / 1_000).to_string())
}

impl Condition {
    fn new(text: &str, names: &[(&str, &str)], values: Vec<(&str, AttributeValue)>) -> Self {
        Self {
            text: text.to_owned(),
            names: names
                .iter()
                .map(|(mark, name)| ((*mark).to_owned(), (*name).to_owned()))
                .collect(),
            values: values.into_iter().map(|(mark, value)| (mark.to_owned(), value)).collect(),
        }
    }

    /// The values, in the form requests want them: an empty map is refused by the service.
    pub(crate) fn values(&self) -> Option<Row> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }
}
