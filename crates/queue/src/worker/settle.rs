//! Telling the queue what became of a message.

use std::time::Duration;

use bytes::Bytes;

use super::tally::Fate;
use super::task::Verdict;
use super::{Outcome, Worker};
use crate::client::{Heartbeat, Nack};
use crate::error::{QueueError, Result};
use crate::limits::{
    DELAY_MAX, ERROR_BYTES_MAX, RESULT_BYTES_MAX, SETTLE_ATTEMPTS_MAX, WORKER_BACKOFF,
};
use crate::message::Delivery;

impl Worker {
    /// Does what a verdict says, trying again while the store fails for the moment and the lease is kept.
    pub(super) async fn settle(
        &self,
        delivery: &Delivery,
        verdict: Verdict,
        heartbeat: Option<&Heartbeat>,
    ) -> Fate {
        let outcome = match verdict {
            Verdict::Outcome(outcome) => Some(outcome),
            Verdict::Untouched => None,
            Verdict::Lost => return Fate::Lost,
        };
        let environment = self.client.core.queue.root.environment();
        let delay = self.delay(delivery, outcome.as_ref());
        let mut attempts = 0;
        loop {
            let error = match self.tell(delivery, outcome.as_ref(), delay).await {
                Ok(fate) => return fate,
                Err(error) => error,
            };
            attempts += 1;
            let is_lost = heartbeat.is_some_and(|heartbeat| heartbeat.lost().is_some());
            if !error.is_transient() || is_lost || attempts >= SETTLE_ATTEMPTS_MAX {
                tracing::warn!(message = %delivery.id, %error, "what became of a message is lost");
                return Fate::Lost;
            }
            let wait = WORKER_BACKOFF.wait(attempts, environment.rng.as_ref()).unwrap_or_default();
            environment.clock.sleep(wait).await;
        }
    }

    async fn tell(
        &self,
        delivery: &Delivery,
        outcome: Option<&Outcome>,
        delay: Duration,
    ) -> Result<Fate> {
        let (client, receipt) = (&self.client, &delivery.receipt);
        let Some(outcome) = outcome else {
            client.return_untouched(receipt).await?;
            return Ok(Fate::Released);
        };
        match outcome {
            Outcome::Done(result) => {
                client.succeed(receipt, kept(delivery, result)).await?;
                Ok(Fate::Done)
            }
            Outcome::Retry { error, .. } => {
                client.nack(receipt, Nack { delay, error: error.clone() }).await?;
                Ok(Fate::Retried)
            }
            Outcome::Fail(error) => {
                client.fail(receipt, cut(error)).await?;
                Ok(Fate::Failed)
            }
            Outcome::Release => {
                client.release(receipt).await?;
                Ok(Fate::Released)
            }
        }
    }

    /// How long a failed message waits.
    fn delay(&self, delivery: &Delivery, outcome: Option<&Outcome>) -> Duration {
        let Some(Outcome::Retry { after, .. }) = outcome else { return Duration::ZERO };
        let rng = &self.client.core.queue.root.environment().rng;
        let wait =
            after.unwrap_or_else(|| self.options.retry.wait(delivery.receives, rng.as_ref()));
        wait.min(DELAY_MAX)
    }
}

/// A result, if it is one that can be kept.
fn kept(delivery: &Delivery, result: &Bytes) -> Bytes {
    if result.len() <= RESULT_BYTES_MAX {
        return result.clone();
    }
    let limit = RESULT_BYTES_MAX;
    tracing::warn!(message = %delivery.id, bytes = result.len(), limit, "a result is not kept");
    Bytes::new()
}

/// An error, cut to what is kept of it.
fn cut(error: &str) -> Bytes {
    let mut end = error.len().min(ERROR_BYTES_MAX.min(RESULT_BYTES_MAX));
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    Bytes::copy_from_slice(error.get(..end).unwrap_or_default().as_bytes())
}

/// Whether trying again may help.
pub(super) const fn may_recover(error: &QueueError) -> bool {
    error.is_transient()
}
