//! The flat, readable, typed attributes of an item.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use crate::error::{Result, StoreError};
use crate::limits::{ATTRIBUTES_MAX, NAME_BYTES_MAX};

/// An attribute's name. Names known at compile time cost no allocation.
pub type Name = Cow<'static, str>;

/// Names that backends use for the parts of an item that are not attributes.
const RESERVED: [&str; 4] = ["pk", "sk", "ver", "exp"];

/// An attribute's value.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Number(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
}

impl Value {
    /// What the value adds to an item's size, by DynamoDB's rules.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            // One byte per two digits, one more, and one for the sign.
            Self::Number(n) => {
                let digits = n.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
                digits.div_ceil(2) + 1 + usize::from(*n < 0)
            }
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) if bytes.len() <= 32 => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Self::Bytes(bytes) => write!(f, "<{} bytes>", bytes.len()),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Bytes> for Value {
    fn from(value: Bytes) -> Self {
        Self::Bytes(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value.into())
    }
}

/// An item's attributes, sorted by name, each name once.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(Name, Value)>);

impl Attributes {
    /// No attributes.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The same attributes with `name` set to `value`.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets `name` to `value`, replacing what it had.
    pub fn set(&mut self, name: impl Into<Name>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.binary_search_by(|(known, _)| known.cmp(&name)) {
            Ok(at) => {
                if let Some(slot) = self.0.get_mut(at) {
                    slot.1 = value;
                }
            }
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    /// Removes `name`, returning what it had.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        Some(self.0.remove(at).1)
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// The number under `name`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is missing or of another type: the item is not what its reader wrote.
    pub fn number(&self, name: &str) -> Result<i64> {
        match self.get(name) {
            Some(Value::Number(n)) => Ok(*n),
            other => Err(wrong_kind(name, "a number", other)),
        }
    }

    /// The text under `name`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is missing or of another type.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(wrong_kind(name, "text", other)),
        }
    }

    /// The bytes under `name`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is missing or of another type.
    pub fn bytes(&self, name: &str) -> Result<&Bytes> {
        match self.get(name) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            other => Err(wrong_kind(name, "bytes", other)),
        }
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the attributes add to an item's size, by DynamoDB's rules.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.size()).sum()
    }

    /// Checks names and count.
    pub(crate) fn check(&self) -> Result<()> {
        if self.len() > ATTRIBUTES_MAX {
            let problem = format!("has {} attributes, the limit is {ATTRIBUTES_MAX}", self.len());
            return Err(StoreError::invalid("item", problem));
        }
        self.0.iter().try_for_each(|(name, _)| check_name(name))
    }
}

fn check_name(name: &str) -> Result<()> {
    StoreError::check_size("attribute name", name.len(), NAME_BYTES_MAX)?;
    let lower = |c: char| c.is_ascii_lowercase();
    if !name.starts_with(lower) || !name.chars().all(|c| lower(c) || c.is_ascii_digit() || c == '_')
    {
        let problem = format!("{name:?} is not of the form [a-z][a-z0-9_]*");
        return Err(StoreError::invalid("attribute name", problem));
    }
    if RESERVED.contains(&name) {
        let problem = format!("{name:?} is reserved ({})", RESERVED.join(", "));
        return Err(StoreError::invalid("attribute name", problem));
    }
    Ok(())
}

fn wrong_kind(name: &str, wanted: &str, found: Option<&Value>) -> StoreError {
    let found = found.map_or("nothing", Value::kind);
    StoreError::corrupt("item", format!("attribute {name:?} should be {wanted}, found {found}"))
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl FromIterator<(Name, Value)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (Name, Value)>>(entries: I) -> Self {
        let mut all = Self::new();
        for (name, value) in entries {
            all.set(name, value);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert!(Attributes::new().with("good_1", 1).check().is_ok());
        for bad in ["", "Upper", "1st", "sp ace", "é", "pk", "exp"] {
            assert!(Attributes::new().with(bad, 1).check().is_err(), "{bad:?} was accepted");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        assert!(matches!(
            Attributes::new().with(long, 1).check(),
            Err(StoreError::TooLarge { .. })
        ));
        let many: Attributes =
            (0..=ATTRIBUTES_MAX).map(|n| (format!("a{n}").into(), Value::Number(0))).collect();
        assert!(many.check().is_err());
    }

    #[test]
    fn set_replaces_and_sorts() {
        let attributes = Attributes::new().with("b", 1).with("a", "x").with("b", 2);
        let names: Vec<_> = attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(attributes.number("b").unwrap(), 2);
        assert!(attributes.number("a").is_err());
        assert!(attributes.bytes("c").unwrap_err().to_string().contains("found nothing"));
    }

    #[test]
    fn numbers_are_sized_as_dynamodb_does() {
        let size = |n: i64| Value::Number(n).size();
        assert_eq!((size(0), size(7), size(10), size(100), size(-5)), (2, 2, 2, 3, 3));
        assert_eq!(size(i64::MIN), 12);
    }
}
