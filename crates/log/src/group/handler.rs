//! What a group does with records.

use std::fmt;

use async_trait::async_trait;

use crate::read::Gap;
use crate::record::Record;

/// Why a record could not be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl Failure {
    /// A failure with this reason.
    #[must_use]
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Handles the records of each partition in order, one at a time; partitions run beside each other. Its future is
/// dropped when the lease is lost or a hand-off takes too long: it must bear that.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Handles one record. What fails is tried again, and then follows the group's [`Poison`](crate::Poison) policy.
    async fn handle(&self, record: &Record) -> Result<(), Failure>;

    /// Learns that retention removed records before the group read them.
    async fn missed(&self, partition: u32, gap: Gap) {
        tracing::warn!(
            partition,
            from = gap.from,
            to = gap.to,
            "records were removed before they were read"
        );
    }
}

#[async_trait]
impl<F, Fut> Handler for F
where
    F: Fn(Record) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Failure>> + Send,
{
    async fn handle(&self, record: &Record) -> Result<(), Failure> {
        self(record.clone()).await
    }
}
