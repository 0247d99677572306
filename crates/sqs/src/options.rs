//! How the protocol is served.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::keys::AccessKeys;

/// How the protocol is served.
#[derive(Debug, Clone)]
pub struct SqsOptions {
    /// The account of requests that name none: neither in a queue's URL, nor by an access key id of twelve digits,
    /// nor by the key's own configuration. Default: `000000000000`.
    pub account: AccountId,
    /// The region of requests that have no credential scope, which would say. Regions are name spaces: a queue of one
    /// is not seen in another. Default: `us-east-1`.
    pub region: Region,
    /// The address that queue URLs begin with, such as `https://queues.example.com`. Default: none; then it is the
    /// address that the client used: `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-Port`, or `Host`.
    pub public_url: Option<String>,
    /// The keys that requests must be signed with. Default: none; then every request is accepted, signed or not, and
    /// the signature is not looked at.
    pub keys: Option<AccessKeys>,
    /// Whether a queue can be purged only once in 60 seconds, and a deleted one created again only after 60 seconds, as
    /// with the service. Default: true.
    pub quiet_periods: bool,
    /// What the names of Millpond's own queue attributes begin with. Default: `Millpond.`.
    pub attribute_prefix: String,
}

impl Default for SqsOptions {
    fn default() -> Self {
        Self {
            account: AccountId::default(),
            region: Region::default(),
            public_url: None,
            keys: None,
            quiet_periods: true,
            attribute_prefix: "Millpond.".to_owned(),
        }
    }
}

/// Why a value cannot be an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} {problem}")]
pub struct InvalidOption {
    /// What it was to be.
    pub what: &'static str,
    /// What was given.
    pub value: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// The number of an account: twelve digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccountId(Arc<str>);

impl AccountId {
    /// Checks a number.
    ///
    /// # Errors
    /// When it does not have twelve digits.
    pub fn new(id: &str) -> Result<Self, InvalidOption> {
        if id.len() == 12 && id.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(Self(id.into()));
        }
        let problem = "does not have twelve digits";
        Err(InvalidOption { what: "account", value: id.to_owned(), problem })
    }

    /// The number as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for AccountId {
    fn default() -> Self {
        Self("000000000000".into())
    }
}

/// The name of a region: up to 32 lower-case letters, digits and hyphens.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Region(Arc<str>);

/// Longest name of a region.
pub const REGION_CHARS_MAX: usize = 32;

impl Region {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, too long, or has other characters.
    pub fn new(name: &str) -> Result<Self, InvalidOption> {
        let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=REGION_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
            return Ok(Self(name.into()));
        }
        let problem = "is not 1 to 32 lower-case letters, digits and hyphens";
        Err(InvalidOption { what: "region", value: name.to_owned(), problem })
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Region {
    fn default() -> Self {
        Self("us-east-1".into())
    }
}

/// Text in, text out, for both kinds of name.
macro_rules! text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidOption;

            fn from_str(text: &str) -> Result<Self, InvalidOption> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidOption;

            fn try_from(text: String) -> Result<Self, InvalidOption> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

text!(AccountId);
text!(Region);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_twelve_digits() {
        assert!(AccountId::new("123456789012").is_ok());
        for bad in ["", "12345678901", "1234567890123", "12345678901x", "٠١٢٣٤٥"] {
            let error = AccountId::new(bad).unwrap_err();
            assert!(error.to_string().contains("twelve digits"), "{error}");
        }
    }

    #[test]
    fn regions_are_names() {
        assert!(Region::new("eu-central-1").is_ok());
        for bad in ["", "EU", "a/b", "a.b", &"x".repeat(33)] {
            assert!(Region::new(bad).is_err(), "{bad}");
        }
    }
}
