//! Consumes Kinesis, DynamoDB Streams or SQS, message by message. Replace the handler by your own.

use std::process::ExitCode;

use millpond_lambda::FunctionError;
use millpond_lambda::functions::{self, Forward, Prepared};
use millpond_lambda::settings::Variables;

#[tokio::main]
async fn main() -> ExitCode {
    millpond_lambda::start(Box::pin(function())).await
}

async fn function() -> Result<(), FunctionError> {
    let prepared = Prepared::from(&Variables::of_process()).await?;
    // The example: each message goes on to a Millpond queue.
    let forward = Forward::new(&prepared)?;
    let consumer =
        prepared.consumer()?.one("forward", move |message| forward.clone().message(message));
    functions::run(consumer.build()?).await
}
