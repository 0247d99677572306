//! Queues that the file declares.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::ConfigError;

/// Declared queues: more than this belong to a script.
const DECLARED_MAX: usize = 1_000;

/// A queue that is made at the start, or set to these attributes: `[[queue]]` in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredQueue {
    /// Its name; one that ends in `.fifo` is a FIFO queue.
    pub name: String,
    /// Its attributes, by the names that the service gives them.
    #[serde(default)]
    pub attributes: BTreeMap<String, Scalar>,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A value that may be written as text, number or boolean, and goes over the wire as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Text(String),
    Number(i64),
    Truth(bool),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Truth(truth) => write!(f, "{truth}"),
        }
    }
}

impl DeclaredQueue {
    /// The attributes as they go over the wire. A name that ends in `.fifo` says already what it is.
    pub fn wire_attributes(&self) -> BTreeMap<String, String> {
        let mut attributes: BTreeMap<String, String> =
            self.attributes.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        if self.name.ends_with(".fifo") {
            attributes.entry("FifoQueue".to_owned()).or_insert_with(|| "true".to_owned());
        }
        attributes
    }
}

/// Refuses a queue that is declared twice, and too many. What the service refuses is found when they are made.
pub fn check(queues: &[DeclaredQueue]) -> Result<(), ConfigError> {
    let problem = |queue: &DeclaredQueue, problem: String| {
        Err(ConfigError::Queue { name: queue.name.clone(), problem })
    };
    let mut seen = std::collections::BTreeSet::new();
    for queue in queues {
        if !seen.insert(&queue.name) {
            return problem(queue, "it is declared twice".to_owned());
        }
        if seen.len() > DECLARED_MAX {
            return problem(queue, format!("more than {DECLARED_MAX} queues are declared"));
        }
    }
    Ok(())
}
