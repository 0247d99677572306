//! Puts messages of Kinesis, DynamoDB Streams or SQS into a sequencer, in whatever order they come.

use std::process::ExitCode;

use millpond_lambda::FunctionError;
use millpond_lambda::functions::{self, Prepared};
use millpond_lambda::settings::Variables;

#[tokio::main]
async fn main() -> ExitCode {
    millpond_lambda::start(function()).await
}

async fn function() -> Result<(), FunctionError> {
    let prepared = Prepared::from(&Variables::of_process()).await?;
    functions::run(functions::intake(&prepared)?).await
}
