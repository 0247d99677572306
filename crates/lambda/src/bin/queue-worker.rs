//! Works a Millpond queue down when it is woken, and continues itself. Replace the handler by your own.

use std::process::ExitCode;

use millpond_lambda::FunctionError;
use millpond_lambda::functions::{Forward, Prepared, QueueWorker};
use millpond_lambda::settings::Variables;

#[tokio::main]
async fn main() -> ExitCode {
    millpond_lambda::start(Box::pin(function())).await
}

async fn function() -> Result<(), FunctionError> {
    let prepared = Prepared::from(&Variables::of_process()).await?;
    // The example: each message goes on to another Millpond queue.
    let forward = Forward::new(&prepared)?;
    let worker = QueueWorker::new(&prepared, move |delivery| forward.clone().delivery(delivery))?;
    worker.run().await
}
