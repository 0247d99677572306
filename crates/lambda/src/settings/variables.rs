//! Reading environment variables, with errors that say what to write.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::limits::VARIABLE_BYTES_MAX;

/// All variables of the ready functions.
pub const NAMES: [&str; 20] = [
    "MILLPOND_STORE",
    "MILLPOND_OBJECTS",
    "MILLPOND_CONSUMER",
    "MILLPOND_DEAD_LETTERS",
    "MILLPOND_DEAD_RECORDS",
    "MILLPOND_ATTEMPTS",
    "MILLPOND_CONCURRENCY",
    "MILLPOND_TIMEOUT_SHARE",
    "MILLPOND_ORDER",
    "MILLPOND_RESPONSES",
    "MILLPOND_BREAKER",
    "MILLPOND_METRICS",
    "MILLPOND_FORWARD_QUEUE",
    "MILLPOND_SEQUENCER",
    "MILLPOND_QUEUE_PROPERTY",
    "MILLPOND_SEQUENCE_PROPERTY",
    "MILLPOND_QUEUE",
    "MILLPOND_QUEUE_ORDER",
    "MILLPOND_TOPIC",
    "MILLPOND_GROUP",
];

/// Why a setting cannot be used. Set the variable that is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// A variable must be set and is not.
    #[error("{variable} is not set: {remedy}")]
    Missing {
        /// Which one.
        variable: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A variable has a value that makes no sense.
    #[error("{variable} is {value:?}: {problem}")]
    Invalid {
        /// Which one.
        variable: &'static str,
        /// Its value, cut short.
        value: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}

/// The variables of a process. An empty one counts as not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Those of this process. Names that begin with `MILLPOND_` and are not known are logged: they may be misspelt.
    #[must_use]
    pub fn of_process() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let variables =
            Self::of(std::env::vars_os().map(|(name, value)| (text(name), text(value))));
        for name in variables.unknown() {
            tracing::warn!(variable = name, "a variable is not known, and is not read");
        }
        variables
    }

    /// These.
    pub fn of<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(pairs.filter(|(_, value): &(String, String)| !value.is_empty()).collect())
    }

    /// Variables that look like ours and are not.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let ours = |name: &&str| name.starts_with("MILLPOND_") && !NAMES.contains(name);
        self.0.keys().map(String::as_str).filter(ours)
    }

    /// A variable that may be missing.
    ///
    /// # Errors
    /// When it is too long.
    pub fn text(&self, variable: &'static str) -> Result<Option<&str>, SettingError> {
        match self.0.get(variable) {
            Some(value) if value.len() > VARIABLE_BYTES_MAX => {
                let problem = format!("it has over {VARIABLE_BYTES_MAX} bytes");
                Err(invalid(variable, value, problem))
            }
            found => Ok(found.map(String::as_str)),
        }
    }

    /// A variable that must be there.
    ///
    /// # Errors
    /// When it is not, with what to write.
    pub fn required(
        &self,
        variable: &'static str,
        remedy: &'static str,
    ) -> Result<&str, SettingError> {
        self.text(variable)?.ok_or(SettingError::Missing { variable, remedy })
    }

    /// The function's own name, which Lambda sets.
    #[must_use]
    pub fn function_name(&self) -> Option<&str> {
        self.0.get("AWS_LAMBDA_FUNCTION_NAME").map(String::as_str)
    }

    /// A number within bounds, if it is set.
    ///
    /// # Errors
    /// When it is no number, or out of bounds.
    pub fn number<N>(
        &self,
        variable: &'static str,
        bounds: RangeInclusive<N>,
    ) -> Result<Option<N>, SettingError>
    where
        N: FromStr + PartialOrd + Display,
    {
        let Some(text) = self.text(variable)? else { return Ok(None) };
        match text.parse::<N>() {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => {
                let problem =
                    format!("it should be a number from {} to {}", bounds.start(), bounds.end());
                Err(invalid(variable, text, problem))
            }
        }
    }

    /// One of a few words, if it is set.
    ///
    /// # Errors
    /// When it is another.
    pub fn choice<T: Copy>(
        &self,
        variable: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, SettingError> {
        let Some(text) = self.text(variable)? else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == text);
        match found {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                Err(invalid(variable, text, format!("it should be one of {}", words.join(", "))))
            }
        }
    }

    /// Whether something is on.
    ///
    /// # Errors
    /// When it is neither `on` nor `off`.
    pub fn switch(&self, variable: &'static str, default: bool) -> Result<bool, SettingError> {
        Ok(self.choice(variable, &[("on", true), ("off", false)])?.unwrap_or(default))
    }

    /// A value of a type that can be read from text, if it is set.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn parsed<T>(&self, variable: &'static str) -> Result<Option<T>, SettingError>
    where
        T: FromStr<Err = String>,
    {
        let Some(text) = self.text(variable)? else { return Ok(None) };
        text.parse().map(Some).map_err(|problem| invalid(variable, text, problem))
    }
}

fn invalid(variable: &'static str, value: &str, problem: String) -> SettingError {
    let value = value.chars().take(80).collect();
    SettingError::Invalid { variable, value, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        let variables = Variables::of([
            ("MILLPOND_ATTEMPTS", "none"),
            ("MILLPOND_CONCURRENCY", "0"),
            ("MILLPOND_ORDER", "random"),
            ("MILLPOND_BREAKER", "yes"),
            ("MILLPOND_STORE", ""),
            ("MILLPOND_GROUP", "billing"),
            ("MILLPOND_TIMEOUT_SHARE", "0.5"),
        ]);
        let said = variables.number("MILLPOND_ATTEMPTS", 1..=1_000_u32).unwrap_err().to_string();
        assert_eq!(said, "MILLPOND_ATTEMPTS is \"none\": it should be a number from 1 to 1000");
        assert!(variables.number("MILLPOND_CONCURRENCY", 1..=9_usize).is_err());
        let said = variables.choice("MILLPOND_ORDER", &[("none", 1), ("key", 2)]).unwrap_err();
        assert_eq!(said.to_string(), "MILLPOND_ORDER is \"random\": it should be one of none, key");
        assert!(variables.switch("MILLPOND_BREAKER", false).is_err());
        assert!(variables.switch("MILLPOND_METRICS", true).unwrap());
        let said = variables.required("MILLPOND_STORE", "name the table").unwrap_err();
        assert_eq!(said.to_string(), "MILLPOND_STORE is not set: name the table");
        assert_eq!(variables.text("MILLPOND_GROUP").unwrap(), Some("billing"));
        let share = variables.number("MILLPOND_TIMEOUT_SHARE", 0.05..=0.95_f64).unwrap();
        assert_eq!(share, Some(0.5));
        let long = Variables::of([("MILLPOND_GROUP", "x".repeat(VARIABLE_BYTES_MAX + 1))]);
        assert!(long.text("MILLPOND_GROUP").unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn misspelt_names_are_noticed() {
        let variables = Variables::of([("MILLPOND_ATEMPTS", "3"), ("MILLPOND_ORDER", "key")]);
        assert_eq!(variables.unknown().collect::<Vec<_>>(), ["MILLPOND_ATEMPTS"]);
    }

    #[test]
    fn the_page_of_settings_lists_every_variable() {
        let page = include_str!("mod.rs");
        for name in NAMES {
            assert!(page.contains(&format!("//! | `{name}` |")), "{name} is not documented");
        }
        let documented = page.lines().filter(|line| line.starts_with("//! | `MILLPOND_"));
        assert_eq!(documented.count(), NAMES.len(), "a documented variable is not read");
    }
}
