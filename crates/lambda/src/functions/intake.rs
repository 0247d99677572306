//! Messages of streams and queues into a sequencer.

use bytes::Bytes;
use millpond_consumer::{Consumer, Message, Order, Outcome};
use millpond_sequencer::limits::PUT_BATCH_MAX;
use millpond_sequencer::{Arrival, Config, JsonFeed, Sequencer, SequencerError};
use millpond_store::Environment;
use serde::Serialize;

use super::consumer::ConsumerHandler;
use super::prepared::Prepared;
use super::worker_event::is_scheduled;
use crate::error::{FunctionError, InvokeError};
use crate::serve::serve;

/// Puts each message into the sequencer that the settings name. The message is a JSON object that says to which queue of
/// the sequencer it belongs and which number it has; it is stored as it came.
///
/// What can never be put (no queue, no number, the number taken by other content, too late) goes to the dead letters at
/// once; what does not fit the window yet, or meets a store that fails, is tried again. When a schedule invokes it, it
/// sweeps: queues that nobody writes to are healed, and gaps whose time is over are skipped.
#[derive(Debug, Clone)]
pub struct Intake {
    consumer: Consumer,
    sequencer: Sequencer,
    environment: Environment,
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SweepAnswer {
    /// Queues that were looked at.
    pub visited: usize,
    /// Of those, the ones whose cursor moved.
    pub advanced: usize,
    /// Gaps that were skipped.
    pub skipped: usize,
    /// Queues that are parked at a gap: somebody should look.
    pub parked: usize,
    /// Queues that could not be looked at; the next sweep will.
    pub failed: usize,
}

impl Intake {
    /// As the settings say.
    ///
    /// # Errors
    /// What is missing or makes no sense, by the variable's name.
    pub fn new(prepared: &Prepared) -> Result<Self, FunctionError> {
        Self::into(prepared, prepared.sequencer(Config::default())?)
    }

    /// Into a sequencer with a configuration of your own: gap policy, window, start.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn into(prepared: &Prepared, sequencer: Sequencer) -> Result<Self, FunctionError> {
        let property = |variable, default: &'static str| {
            prepared.variables.text(variable).map(|text| text.unwrap_or(default).to_owned())
        };
        let queue = property("MILLPOND_QUEUE_PROPERTY", "queue")?;
        let feed = JsonFeed::new(queue, property("MILLPOND_SEQUENCE_PROPERTY", "seq")?);
        let mut builder = prepared.consumer()?;
        if prepared.variables.text("MILLPOND_ORDER")?.is_none() {
            // The sequencer makes the order.
            builder = builder.order(Order::None);
        }
        let into = sequencer.clone();
        let consumer = builder.all("put", move |messages| {
            let (sequencer, feed) = (into.clone(), feed.clone());
            async move { put(&sequencer, &feed, &messages).await }
        });
        let environment = prepared.environment.clone();
        Ok(Self { consumer: consumer.build()?, sequencer, environment })
    }

    /// Handles invocations until Lambda ends the process.
    ///
    /// # Errors
    /// As [`serve`].
    pub async fn run(self) -> Result<(), FunctionError> {
        let handler = ConsumerHandler::new(self.consumer.clone(), &self.environment)?;
        let (intake, handler) = (&self, &handler);
        serve(&self.environment, |invocation| async move {
            let scheduled = serde_json::from_slice(&invocation.event);
            if scheduled.is_ok_and(|event| is_scheduled(&event)) {
                let answer = Box::pin(intake.sweep()).await?;
                tracing::info!(?answer, "a sweep is done");
                let answer = serde_json::to_vec(&answer).map(Bytes::from);
                return answer.map_err(|error| InvokeError::Handler(error.to_string()));
            }
            Box::pin(handler.handle(&invocation)).await
        })
        .await
    }

    /// One pass over the queues in which messages wait.
    ///
    /// # Errors
    /// When the store fails. The next pass begins anew.
    pub async fn sweep(&self) -> Result<SweepAnswer, InvokeError> {
        let swept = self.sequencer.sweep().await?;
        for (queue, number) in &swept.parked {
            tracing::warn!(%queue, number, "a queue is parked: a number did not come");
        }
        for (queue, error) in &swept.failed {
            tracing::warn!(%queue, %error, "a queue could not be swept");
        }
        Ok(SweepAnswer {
            visited: swept.visited,
            advanced: swept.advanced.len(),
            skipped: swept.skipped.len(),
            parked: swept.parked.len(),
            failed: swept.failed.len(),
        })
    }
}

/// Puts all messages, in as few calls as may be: one outcome for each, in order.
async fn put(sequencer: &Sequencer, feed: &JsonFeed, messages: &[Message]) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(messages.len());
    for some in messages.chunks(PUT_BATCH_MAX) {
        let mut refused = Vec::with_capacity(some.len());
        let mut entries = Vec::with_capacity(some.len());
        for message in some {
            match feed.entry(message.payload().clone()) {
                Ok(entry) => {
                    refused.push(None);
                    entries.push(entry);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        let count = entries.len();
        let arrivals = match sequencer.put_batch(entries).await {
            Ok(result) => result.arrivals,
            Err(error) => vec![Err(error); count],
        };
        let mut arrivals = arrivals.into_iter();
        outcomes.extend(refused.into_iter().map(|refused| match refused {
            Some(error) => Outcome::reject(error),
            None => arrivals.next().map_or_else(|| Outcome::retry("no answer"), outcome),
        }));
    }
    outcomes
}

fn outcome(arrival: Result<Arrival, SequencerError>) -> Outcome {
    match arrival {
        Ok(_) => Outcome::Done,
        Err(error @ SequencerError::Store(_)) => Outcome::retry(error),
        Err(error) if error.is_transient() => Outcome::retry(error),
        // A queue that must be started by hand can be.
        Err(error @ SequencerError::NotStarted { .. }) => Outcome::retry(error),
        Err(error) => Outcome::reject(error),
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::StoreError;

    use super::*;

    #[test]
    fn only_what_will_never_fit_is_rejected() {
        let queue = || "q".to_owned();
        assert_eq!(outcome(Ok(Arrival::Duplicate)), Outcome::Done);
        let full = SequencerError::WindowFull {
            queue: queue(),
            seq: 9,
            next: 1,
            held: 8,
            unit: "numbers",
            limit: 7,
        };
        assert!(matches!(outcome(Err(full)), Outcome::Retry { .. }));
        let table = StoreError::misconfigured("no table", "make it");
        assert!(matches!(outcome(Err(table.into())), Outcome::Retry { .. }));
        let other = SequencerError::Conflict { queue: queue(), seq: 1 };
        assert!(matches!(outcome(Err(other)), Outcome::Reject { .. }));
    }
}
