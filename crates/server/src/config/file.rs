//! The file of settings.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use super::error::ConfigError;
use super::settings::Settings;

/// A file larger than this is no configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads and understands the file.
pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    parse(path)
}

/// Reads a TOML file into anything that it can be.
pub fn parse<T: de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge { path: path.to_owned(), bytes, most: FILE_BYTES_MAX });
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    toml::from_str(&text)
        .map_err(|source| ConfigError::NotUnderstood { path: path.to_owned(), source })
}

/// A value that is text in the file and has a form of its own.
pub fn from_text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|error| de::Error::custom(format!("{text:?}: {error}")))
}
