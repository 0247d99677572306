//! Puts messages of Kinesis, DynamoDB Streams or SQS into a sequencer, in whatever order they come; swept by a schedule.

use std::process::ExitCode;

use millpond_lambda::FunctionError;
use millpond_lambda::functions::{Intake, Prepared};
use millpond_lambda::settings::Variables;

#[tokio::main]
async fn main() -> ExitCode {
    millpond_lambda::start(Box::pin(function())).await
}

async fn function() -> Result<(), FunctionError> {
    let prepared = Prepared::from(&Variables::of_process()).await?;
    Intake::new(&prepared)?.run().await
}
