//! Names, checked when made.

use std::fmt;
use std::sync::Arc;

use millpond_store::UniqueId;

use crate::error::{LogError, Result};
use crate::limits::{NAME_BYTES_MAX, WORKER_NAME_BYTES_MAX};

fn check(field: &'static str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(LogError::invalid(field, "is empty"));
    }
    LogError::check_size(field, name.len(), NAME_BYTES_MAX)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match name.chars().find(|c| !allowed(*c)) {
        Some(c) => {
            let problem = format!("{name:?} has {c:?} in it: letters, digits, '.', '_', '-' only");
            Err(LogError::invalid(field, problem))
        }
        None => Ok(()),
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($field:literal);)+) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and wraps a name: 1 to 200 letters, digits, dots, underscores and dashes.
            ///
            /// # Errors
            /// [`LogError::Invalid`] or [`LogError::TooLarge`], which name the field.
            pub fn new(name: &str) -> Result<Self> {
                check($field, name)?;
                Ok(Self(name.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+ };
}

names! {
    /// The name of a topic.
    TopicName("topic");
    /// The name of a consumer group.
    GroupName("group");
    /// The id of an idempotent producer: the same across its restarts.
    ProducerId("producer id");
    /// One worker of a group, new each time it joins.
    WorkerId("worker");
}

impl WorkerId {
    pub(crate) fn fresh(name: Option<&str>, id: UniqueId) -> Result<Self> {
        let Some(name) = name else { return Ok(Self(id.to_string().into())) };
        LogError::check_size("worker", name.len(), WORKER_NAME_BYTES_MAX)?;
        check("worker", name)?;
        Ok(Self(format!("{name}.{id}").into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_say_what_is_wrong() {
        assert!(TopicName::new("orders.eu-1_x").is_ok());
        assert!(TopicName::new(&"a".repeat(NAME_BYTES_MAX)).is_ok());
        for (name, said) in [("", "is empty"), ("a/b", "'/'"), ("ä", "'ä'"), ("a b", "' '")] {
            let error = TopicName::new(name).unwrap_err().to_string();
            assert!(error.starts_with("topic ") && error.contains(said), "{error}");
        }
        let long = GroupName::new(&"g".repeat(NAME_BYTES_MAX + 1)).unwrap_err().to_string();
        assert_eq!(long, "group is too large: 201, the limit is 200");
    }
}
