//! Access keys: from a file, and one from the environment.

use std::path::Path;

use millpond_sqs::{AccessKey, AccessKeys};

use super::error::ConfigError;
use super::file;

/// The variables of a single key that may do everything.
const ID_VARIABLE: &str = "MILLPOND_ACCESS_KEY_ID";
const SECRET_VARIABLE: &str = "MILLPOND_SECRET_ACCESS_KEY";

/// Keys are looked through one by one.
const KEYS_MAX: usize = 1_000;
/// A secret shorter than this can be guessed.
const SECRET_CHARS_MIN: usize = 8;

/// The keys of the file and of the environment; nothing when there are none at all.
pub fn load(path: Option<&Path>) -> Result<Option<AccessKeys>, ConfigError> {
    let mut keys: AccessKeys = path.map(file::parse).transpose()?.unwrap_or_default();
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (variable(ID_VARIABLE), variable(SECRET_VARIABLE)) {
        (Some(id), Some(secret)) => keys.keys.push(AccessKey::new(id, secret)),
        (None, None) => {}
        (Some(_), None) => {
            return Err(ConfigError::HalfAKey { given: ID_VARIABLE, missing: SECRET_VARIABLE });
        }
        (None, Some(_)) => {
            return Err(ConfigError::HalfAKey { given: SECRET_VARIABLE, missing: ID_VARIABLE });
        }
    }
    if let (Some(path), true) = (path, keys.keys.is_empty()) {
        return Err(ConfigError::Keys(format!("{} has none; add [[keys]]", path.display())));
    }
    check(&keys)?;
    Ok(Some(keys).filter(|keys| !keys.keys.is_empty()))
}

fn check(keys: &AccessKeys) -> Result<(), ConfigError> {
    if keys.keys.len() > KEYS_MAX {
        let given = keys.keys.len();
        return Err(ConfigError::Keys(format!("{given} are given; at most {KEYS_MAX} are taken")));
    }
    let mut seen = std::collections::BTreeSet::new();
    for AccessKey { id, secret, .. } in &keys.keys {
        if id.is_empty() {
            return Err(ConfigError::Keys("one has an empty id".to_owned()));
        }
        if !seen.insert(id) {
            return Err(ConfigError::Keys(format!("{id:?} is given twice")));
        }
        if secret.chars().count() < SECRET_CHARS_MIN {
            return Err(ConfigError::Keys(format!(
                "the secret of {id:?} has fewer than {SECRET_CHARS_MIN} characters"
            )));
        }
    }
    Ok(())
}
