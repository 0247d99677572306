//! Which store is below, for what only some stores can tell.

use std::path::PathBuf;

use millpond_dynamodb::DynamoDbStore;
use millpond_embedded::EmbeddedStore;

/// The store below.
#[derive(Debug, Clone)]
pub enum Backend {
    /// A directory of this machine.
    Embedded(EmbeddedStore, PathBuf),
    /// A table.
    DynamoDb(DynamoDbStore),
    /// Another one, such as memory in tests.
    #[allow(dead_code, reason = "for tests")]
    Other,
}

impl Backend {
    /// Its kind, in a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Embedded(..) => "embedded",
            Self::DynamoDb(_) => "dynamodb",
            Self::Other => "other",
        }
    }
}
