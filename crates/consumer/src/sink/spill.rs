//! Letters that are too large for their sink: the whole letter goes to an object store, and the sink gets a small one
//! that names it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde::{Deserialize, Serialize};

use super::envelope::{DeadLetter, LetterError};
use crate::identity::digest;
use crate::outcome::cut;

/// Where large letters go.
#[derive(Clone)]
pub struct Spill {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spill({})", self.prefix)
    }
}

/// Where a large letter is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spilled {
    /// The object's path.
    pub path: String,
    /// Its size.
    pub bytes: usize,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

/// Why a large letter could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The object store failed.
    #[error("the object {path} cannot be reached")]
    Store {
        /// Which object.
        path: String,
        /// Why.
        #[source]
        source: object_store::Error,
    },
    /// The object is not the one that the letter names.
    #[error("the object {path} is damaged: it has another digest than its letter says")]
    Damaged {
        /// Which object.
        path: String,
    },
    /// The object is not a letter.
    #[error("the object {path} is not a letter: {problem}")]
    NotALetter {
        /// Which object.
        path: String,
        /// What is wrong with it.
        problem: LetterError,
    },
}

impl Spill {
    /// Objects under `prefix` in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix }
    }

    /// Writes the whole letter to an object, and returns the small letter. The object's name has the digest of its bytes: a
    /// letter that is sent again differs in its time at least, and must not overwrite what the sink already has a letter about.
    pub(crate) async fn spill(
        &self,
        letter: &DeadLetter,
        bytes: Bytes,
    ) -> Result<DeadLetter, SpillError> {
        let sha256 = digest(&bytes);
        let path = [letter.consumer.as_str(), &letter.dedupe_id, &sha256]
            .into_iter()
            .fold(self.prefix.clone(), Path::join);
        let spilled = Spilled { path: path.to_string(), bytes: bytes.len(), sha256 };
        let put = self.store.put(&path, bytes.into()).await;
        put.map_err(|source| SpillError::Store { path: path.to_string(), source })?;
        let short = |text: &Option<String>| text.as_deref().map(cut);
        Ok(DeadLetter {
            message: None,
            raw: None,
            id: short(&letter.id),
            key: short(&letter.key),
            partition_key: short(&letter.partition_key),
            spilled: Some(spilled),
            ..letter.clone()
        })
    }

    /// The whole letter that a small one stands for; any other letter as it is.
    ///
    /// # Errors
    /// When the object is missing, damaged or cannot be reached.
    pub async fn fetch(&self, letter: DeadLetter) -> Result<DeadLetter, SpillError> {
        let Some(spilled) = &letter.spilled else {
            return Ok(letter);
        };
        let path = spilled.path.clone();
        let get = async {
            // As it was written: a name with other letters is encoded in it already.
            let place = Path::parse(&path).map_err(object_store::Error::from)?;
            self.store.get(&place).await?.bytes().await
        };
        let bytes = get.await.map_err(|source| SpillError::Store { path: path.clone(), source })?;
        if digest(&bytes) != spilled.sha256 {
            return Err(SpillError::Damaged { path });
        }
        DeadLetter::decode(&bytes).map_err(|problem| SpillError::NotALetter { path, problem })
    }
}
