//! Whole numbers: JSON has them as such, the Query encoding as text.

use std::fmt;

use serde::Deserialize;
use serde::de::{Error, Visitor};

use crate::error::{Failure, Result};

/// A whole number as it was given. It is judged when it is used, so that the error can name the parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whole {
    /// One.
    Number(i64),
    /// Text that is none.
    Text(String),
}

impl Whole {
    /// The number, if it is within bounds, which the error then names.
    pub fn within(&self, parameter: &str, least: u64, most: u64, reason: &str) -> Result<u64> {
        let number = match self {
            Self::Number(number) => u64::try_from(*number).ok(),
            Self::Text(_) => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| Failure::value(parameter, self, reason))
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Seen)
    }
}

struct Seen;

impl Visitor<'_> for Seen {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
        Ok(Whole::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole::Number(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Whole, E> {
        Ok(match text.parse() {
            Ok(number) => Whole::Number(number),
            Err(_) => Whole::Text(text.chars().take(64).collect()),
        })
    }
}
