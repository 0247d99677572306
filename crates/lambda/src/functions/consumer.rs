//! A consumer as a function.

use millpond_consumer::{Consumer, Report};
use millpond_store::Environment;

use crate::error::{FunctionError, InvokeError};
use crate::metrics;
use crate::serve::serve;
use crate::settings::Variables;

/// Runs a consumer as a Lambda function: for events of Kinesis, DynamoDB Streams and SQS. This is all that a `main` needs
/// once the consumer is built. For each batch, a line of metrics is written, unless `MILLPOND_METRICS` is `off`.
///
/// # Errors
/// When the process is not a function's, or its Runtime API goes away. What becomes of batches is in the answers.
pub async fn run(consumer: Consumer) -> Result<(), FunctionError> {
    let environment = Environment::system();
    let metered = Variables::of_process().switch("MILLPOND_METRICS", true)?;
    let (consumer, environment) = (&consumer, &environment);
    let emit = |report: &Report| {
        if metered {
            metrics::emit(report, environment.now());
        }
    };
    serve(environment, |invocation| async move {
        match Box::pin(consumer.handle(&invocation.event, invocation.deadline)).await {
            Ok((answer, report)) => {
                emit(&report);
                Ok(answer)
            }
            Err(failed) => {
                emit(&failed.report);
                Err(InvokeError::Unfinished(failed.to_string()))
            }
        }
    })
    .await
}
