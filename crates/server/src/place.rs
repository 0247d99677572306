//! Where a store is, as a user says it.

use std::path::PathBuf;
use std::str::FromStr;

use millpond_dynamodb::TableName;

/// What a table's place begins with.
const TABLE_SCHEME: &str = "dynamodb";

/// A store's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A DynamoDB table. Region, credentials and endpoint are found in the SDK's usual ways.
    Table(TableName),
}

/// Why a store's place was not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Nothing was given.
    #[error("it is empty; give a directory, such as ./millpond-data, or dynamodb:TABLE")]
    Empty,
    /// Another kind of store than there is.
    #[error(
        "'{scheme}:' is not a store; give a directory, such as ./millpond-data, or dynamodb:TABLE"
    )]
    Scheme {
        /// What stood before the colon.
        scheme: String,
    },
    /// A name that no table can have.
    #[error("{problem}; give dynamodb:TABLE")]
    Table {
        /// What is wrong with it.
        problem: String,
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
            Some((TABLE_SCHEME, table)) => TableName::new(table)
                .map(Self::Table)
                .map_err(|error| PlaceError::Table { problem: error.to_string() }),
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
            Self::Table(table) => write!(f, "{TABLE_SCHEME}:{table}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_tables_are_taken_and_unknown_schemes_are_named() {
        let directory = |path: &str| Ok(StorePlace::Directory(path.into()));
        assert_eq!("./data".parse(), directory("./data"));
        assert_eq!("data".parse(), directory("data"));
        assert_eq!("file:///srv/data".parse(), directory("/srv/data"));
        assert_eq!("./a:b".parse(), directory("./a:b"));
        let table = "dynamodb:orders".parse::<StorePlace>().unwrap();
        assert_eq!(table, StorePlace::Table(TableName::new("orders").unwrap()));
        assert_eq!(table.to_string(), "dynamodb:orders");
        assert_eq!("".parse::<StorePlace>(), Err(PlaceError::Empty));
        let error = "redis://x".parse::<StorePlace>().unwrap_err();
        assert_eq!(error, PlaceError::Scheme { scheme: "redis".into() });
        assert!(error.to_string().contains("redis") && error.to_string().contains("directory"));
        let error = "dynamodb:a b".parse::<StorePlace>().unwrap_err();
        assert!(error.to_string().contains("a b"), "{error}");
    }
}
