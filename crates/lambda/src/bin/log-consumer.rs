//! Handles the records of a topic of a Millpond log, and continues itself. Replace the handler by your own.

use std::process::ExitCode;

use millpond_lambda::FunctionError;
use millpond_lambda::functions::{Forward, LogWorker, Prepared};
use millpond_lambda::settings::Variables;

#[tokio::main]
async fn main() -> ExitCode {
    millpond_lambda::start(Box::pin(function())).await
}

async fn function() -> Result<(), FunctionError> {
    let prepared = Prepared::from(&Variables::of_process()).await?;
    // The example: each record goes on to a Millpond queue.
    let forward = Forward::new(&prepared)?;
    let worker = LogWorker::new(&prepared, move |record| forward.clone().record(record))?;
    worker.run().await
}
