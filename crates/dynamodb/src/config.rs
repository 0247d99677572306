//! Which table, where it is, and how hard to try.

use std::fmt;
use std::time::Duration;

use millpond_store::{Backoff, Meter, Result, StoreError};

use crate::limits::{
    ATTEMPT_TIMEOUT, CONNECT_TIMEOUT, OPERATION_TIMEOUT, TABLE_NAME_MAX, TABLE_NAME_MIN,
};

/// The name of a table: 3 to 255 of `A-Z a-z 0-9 _ . -`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TableName(String);

impl TableName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], which says what is wrong.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if !(TABLE_NAME_MIN..=TABLE_NAME_MAX).contains(&name.len()) || !name.chars().all(allowed) {
            let problem = format!(
                "{name:?} is not {TABLE_NAME_MIN} to {TABLE_NAME_MAX} characters of A-Z a-z 0-9 _ . -"
            );
            return Err(StoreError::invalid("table name", problem));
        }
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Explicit credentials. The secret parts are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The access key's id.
    pub access_key_id: String,
    /// The secret key.
    pub secret_access_key: String,
    /// The session token of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// How to open a [`DynamoDbStore`](crate::DynamoDbStore).
#[derive(Clone, Debug)]
pub struct DynamoDbConfig {
    /// The table.
    pub table: TableName,
    /// The service's address. Default: Amazon's in the region, or what the SDK finds in the environment.
    pub endpoint: Option<String>,
    /// The region. Default: what the SDK finds (environment, profile, the machine's metadata).
    pub region: Option<String>,
    /// Who asks. Default: what the SDK finds (environment, profile, single sign-on, container, machine).
    pub credentials: Option<Credentials>,
    /// How long one attempt may take to connect.
    pub connect_timeout: Duration,
    /// How long one attempt may take in all.
    pub attempt_timeout: Duration,
    /// No attempt begins later than this after the first.
    pub operation_timeout: Duration,
    /// How often an operation is tried, and how long is waited in between.
    pub backoff: Backoff,
    /// Where requests and units are counted. Default: a meter of its own.
    pub meter: Meter,
}

impl DynamoDbConfig {
    /// The table of this name, and the SDK's usual ways for everything else.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when the name cannot be a table's.
    pub fn new(table: impl Into<String>) -> Result<Self> {
        Ok(Self {
            table: TableName::new(table)?,
            endpoint: None,
            region: None,
            credentials: None,
            connect_timeout: CONNECT_TIMEOUT,
            attempt_timeout: ATTEMPT_TIMEOUT,
            operation_timeout: OPERATION_TIMEOUT,
            backoff: Backoff::STANDARD,
            meter: Meter::new(),
        })
    }

    /// At this address, which may be any service that speaks DynamoDB's protocol.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// In this region.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// With these credentials.
    #[must_use]
    pub fn credentials(
        mut self,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
    ) -> Self {
        self.credentials = Some(Credentials {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token: None,
        });
        self
    }

    /// Gives one attempt this long.
    #[must_use]
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Begins no attempt later than this after the first.
    #[must_use]
    pub const fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// Tries this often, waiting this long.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Counts on this meter.
    #[must_use]
    pub fn meter(mut self, meter: Meter) -> Self {
        self.meter = meter;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_checked_at_both_ends() {
        for good in ["abc", "A.b-c_9", &"t".repeat(TABLE_NAME_MAX)] {
            assert!(TableName::new(good).is_ok(), "{good:?} was refused");
        }
        for bad in ["", "ab", "a b c", "täble", "a/b", &"t".repeat(TABLE_NAME_MAX + 1)] {
            let error = TableName::new(bad).unwrap_err();
            assert!(error.to_string().starts_with("table name"), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let config = DynamoDbConfig::new("table").unwrap().credentials("id", "hush");
        let printed = format!("{config:?}");
        assert!(printed.contains("id") && !printed.contains("hush"), "{printed}");
    }
}
