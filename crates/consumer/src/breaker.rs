//! Stops the source when nothing can work any more.

use std::fmt;

use async_trait::async_trait;

use crate::source::Scope;

/// Why a breaker could not stop its source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BreakerError {
    /// The function has no mapping of exactly this source. Nothing was stopped.
    #[error("there is no event source mapping of {arn} to this function")]
    NotFound {
        /// The source's full ARN.
        arn: String,
    },
    /// The service cannot be reached, or refused. Nothing was stopped.
    #[error("the event source mapping cannot be disabled: {0}")]
    Unavailable(String),
}

/// Stops the delivery from exactly one source. It is tripped when the state or a sink is set up wrongly, so that every
/// delivery would fail: a missing table, a missing permission. An error in a handler never trips it.
#[async_trait]
pub trait Breaker: fmt::Debug + Send + Sync + 'static {
    /// Stops the delivery from this source, and returns what was stopped.
    ///
    /// # Errors
    /// When nothing was stopped.
    async fn trip(&self, source: &Scope, reason: &str) -> Result<String, BreakerError>;
}
