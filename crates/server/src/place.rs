//! Where a store is, as a user says it.

use std::path::PathBuf;
use std::str::FromStr;

/// A store's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A directory of this machine.
    Directory(PathBuf),
}

/// Why a store's place was not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Nothing was given.
    #[error("it is empty; give a directory, such as ./millpond-data")]
    Empty,
    /// Another kind of store than this command can use.
    #[error(
        "'{scheme}:' is not a store that this command can use; give a directory, such as ./millpond-data"
    )]
    Scheme {
        /// What stood before the colon.
        scheme: String,
    },
}

impl FromStr for StorePlace {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if text.is_empty() {
            return Err(PlaceError::Empty);
        }
        match text.split_once(':') {
            Some(("file", path)) => Ok(Self::Directory(path.trim_start_matches("//").into())),
            // A path with a colon in it can be written as ./a:b.
            Some((scheme, _)) if !scheme.contains(['/', '\\', '.']) => {
                Err(PlaceError::Scheme { scheme: scheme.to_owned() })
            }
            _ => Ok(Self::Directory(text.into())),
        }
    }
}

impl std::fmt::Display for StorePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_taken_and_unknown_schemes_are_named() {
        let directory = |path: &str| Ok(StorePlace::Directory(path.into()));
        assert_eq!("./data".parse(), directory("./data"));
        assert_eq!("data".parse(), directory("data"));
        assert_eq!("file:///srv/data".parse(), directory("/srv/data"));
        assert_eq!("./a:b".parse(), directory("./a:b"));
        assert_eq!("".parse::<StorePlace>(), Err(PlaceError::Empty));
        for (text, scheme) in [("redis://x", "redis"), ("dynamodb:table", "dynamodb")] {
            let error = text.parse::<StorePlace>().unwrap_err();
            assert_eq!(error, PlaceError::Scheme { scheme: scheme.into() });
            assert!(error.to_string().contains(scheme) && error.to_string().contains("directory"));
        }
    }
}
