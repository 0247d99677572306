//! A consumer as a function.

use bytes::Bytes;
use millpond_consumer::{Consumer, Report};
use millpond_store::Environment;

use crate::error::{FunctionError, InvokeError};
use crate::metrics;
use crate::serve::{Invocation, serve};
use crate::settings::Variables;

/// Runs a consumer as a Lambda function: for events of Kinesis, DynamoDB Streams and SQS. This is all that a `main` needs
/// once the consumer is built. For each batch, a line of metrics is written, unless `MILLPOND_METRICS` is `off`.
///
/// # Errors
/// When the process is not a function's, or its Runtime API goes away. What becomes of batches is in the answers.
pub async fn run(consumer: Consumer) -> Result<(), FunctionError> {
    let environment = Environment::system();
    let handler = ConsumerHandler::new(consumer, &environment)?;
    let handler = &handler;
    serve(&environment, |invocation| async move { Box::pin(handler.handle(&invocation)).await })
        .await
}

/// Hands invocations to a consumer.
#[derive(Debug)]
pub(super) struct ConsumerHandler {
    consumer: Consumer,
    environment: Environment,
    metered: bool,
}

impl ConsumerHandler {
    pub fn new(consumer: Consumer, environment: &Environment) -> Result<Self, FunctionError> {
        let metered = Variables::of_process().switch("MILLPOND_METRICS", true)?;
        Ok(Self { consumer, environment: environment.clone(), metered })
    }

    /// Handles one batch, within its deadline, and answers it.
    pub async fn handle(&self, invocation: &Invocation) -> Result<Bytes, InvokeError> {
        // Before `serve` gives it up, whatever share of the time is the handlers'.
        let answer_by = invocation.answer_by(self.environment.now());
        match Box::pin(self.consumer.handle(&invocation.event, answer_by)).await {
            Ok((answer, report)) => {
                self.emit(&report);
                Ok(answer)
            }
            Err(failed) => {
                self.emit(&failed.report);
                Err(InvokeError::Unfinished(failed.to_string()))
            }
        }
    }

    fn emit(&self, report: &Report) {
        if self.metered {
            metrics::emit(report, self.environment.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use millpond_consumer::{Message, Outcome, StoreState};
    use millpond_testing::consumer_suite::events::stream;
    use millpond_testing::consumer_suite::fakes::{Mood, MoodyStore};
    use millpond_testing::consumer_suite::world::World;
    use millpond_testing::in_virtual_time;

    use super::*;

    #[tokio::test]
    async fn a_slow_store_costs_no_answer_whatever_the_share_and_the_timeout() {
        for (share, millis) in [(0.95, 60_000), (0.95, 1_000), (0.8, 1_000), (0.8, 300)] {
            let world = World::new();
            let store = MoodyStore::new(Arc::clone(&world.store));
            let mood = store.mood.clone();
            let consumer = Consumer::builder("orders")
                .environment(&world.environment)
                .state(StoreState::new(store, &world.environment))
                .dead_letters(world.messages.clone())
                .timeout_share(share)
                .one("hang", move |_: Message| {
                    // So that nothing can be saved afterwards.
                    mood.set(Mood::Hangs);
                    std::future::pending::<Outcome>()
                })
                .build()
                .unwrap();
            let environment = world.environment.clone();
            let begun = environment.now();
            let invocation = Invocation {
                event: stream([1]).into(),
                deadline: begun.plus(Duration::from_millis(millis)),
                request_id: String::new(),
                function_arn: String::new(),
            };
            let given_up = invocation.remaining(begun);
            let handler = ConsumerHandler { consumer, environment, metered: false };
            let answer = in_virtual_time(&world.clock, &world.watched, handler.handle(&invocation));
            assert_eq!(answer.await.unwrap(), r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#);
            let took = world.environment.now().since(begun);
            assert!(took < given_up, "{took:?} of {given_up:?}, with {share}");
        }
    }
}
