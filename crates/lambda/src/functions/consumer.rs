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
        match Box::pin(self.consumer.handle(&invocation.event, invocation.deadline)).await {
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
