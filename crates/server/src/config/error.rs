//! Why a configuration was refused.

use std::io;
use std::path::PathBuf;

/// Why a configuration was refused. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read: check its name and permissions.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is too large to be what it should be.
    #[error("{} has {bytes} bytes; at most {most} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A file is no TOML, or has a key or a value that is not known: mend the line that is named.
    #[error("{}: {source}", path.display())]
    NotUnderstood {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: toml::de::Error,
    },
    /// A setting has a value that cannot be used.
    #[error("{name}: {problem} (from {given_by})")]
    Invalid {
        /// The setting.
        name: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
        /// Where the value came from.
        given_by: String,
    },
    /// Two settings do not go together.
    #[error("{first} and {second} {problem}")]
    Conflict {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why, and what to do.
        problem: &'static str,
    },
    /// Everybody could do everything.
    #[error(
        "listening on {listen} without access keys would let anyone who can reach it read, change and delete \
         everything; give access keys (--access-keys FILE), listen on a loopback address, or say \
         --insecure-allow-anonymous if that is what you want"
    )]
    Anonymous {
        /// Where the server was to listen.
        listen: String,
    },
    /// Only one half of a key is in the environment.
    #[error("{given} is set and {missing} is not; set both, or neither")]
    HalfAKey {
        /// The variable that is set.
        given: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
    /// The access keys make no sense.
    #[error("access keys: {0}")]
    Keys(String),
    /// A declared queue makes no sense.
    #[error("queue {name:?}: {problem}")]
    Queue {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
