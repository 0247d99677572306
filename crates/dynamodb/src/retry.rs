//! The one mechanism for trying again: exponential backoff with full jitter, bounded in attempts and in time.

use std::time::Duration;

use millpond_store::{Backoff, Certainty, Environment, Monotonic, Result, StoreError};

/// The attempts at one operation so far.
#[derive(Debug)]
pub(crate) struct Retry<'a> {
    environment: &'a Environment,
    backoff: Backoff,
    longest: Duration,
    operation: &'static str,
    began: Monotonic,
    failed: u32,
    unknown: bool,
}

impl<'a> Retry<'a> {
    /// Nothing was tried yet.
    pub(crate) fn new(
        environment: &'a Environment,
        backoff: Backoff,
        longest: Duration,
        operation: &'static str,
    ) -> Self {
        Self {
            environment,
            backoff,
            longest,
            operation,
            began: environment.clock.monotonic(),
            failed: 0,
            unknown: false,
        }
    }

    /// Takes note of a failed attempt and waits; returns the error when there should be no other. After an
    /// attempt that may have been applied, the error says so.
    pub(crate) async fn pause(&mut self, error: StoreError) -> Result<()> {
        self.failed += 1;
        let wait = self
            .backoff
            .wait(self.failed, self.environment.rng.as_ref())
            .filter(|wait| error.is_transient() && self.elapsed() + *wait <= self.longest);
        let Some(wait) = wait else {
            return Err(if self.unknown { error.after_unknown(self.operation) } else { error });
        };
        self.unknown |= error.certainty() == Certainty::Unknown;
        tracing::debug!(operation = self.operation, attempt = self.failed, %error, "retrying");
        self.environment.clock.sleep(wait).await;
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.environment.clock.monotonic().since(self.began)
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::{Timestamp, VirtualClock};

    use super::*;

    fn throttled() -> StoreError {
        StoreError::Throttled { operation: "test", detail: String::new() }
    }

    fn unknown() -> StoreError {
        StoreError::UnknownOutcome { operation: "test", detail: String::new(), cause: None }
    }

    fn environment() -> Environment {
        Environment::simulated(VirtualClock::automatic(Timestamp::from_millis(0)), 1)
    }

    #[tokio::test]
    async fn attempts_are_bounded_by_number_and_by_time() {
        let environment = environment();
        let hour = Duration::from_secs(3_600);
        let mut retry = Retry::new(&environment, Backoff::STANDARD, hour, "test");
        for _ in 1..Backoff::STANDARD.attempts_max {
            retry.pause(throttled()).await.unwrap();
        }
        assert!(matches!(retry.pause(throttled()).await, Err(StoreError::Throttled { .. })));

        let mut hasty = Retry::new(&environment, Backoff::STANDARD, Duration::ZERO, "test");
        assert!(hasty.pause(throttled()).await.is_err());
    }

    #[tokio::test]
    async fn what_ends_an_uncertain_operation_is_uncertain() {
        let environment = environment();
        let hour = Duration::from_secs(3_600);
        let mut retry = Retry::new(&environment, Backoff::STANDARD, hour, "test");
        retry.pause(unknown()).await.unwrap();
        let last = retry.pause(StoreError::misconfigured("a", "b")).await.unwrap_err();
        assert_eq!(last.certainty(), Certainty::Unknown);

        let mut certain = Retry::new(&environment, Backoff::STANDARD, hour, "test");
        let last = certain.pause(StoreError::misconfigured("a", "b")).await.unwrap_err();
        assert_eq!(last.certainty(), Certainty::Definite);
    }
}
