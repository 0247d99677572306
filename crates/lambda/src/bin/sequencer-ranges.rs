//! Hands on what a sequencer has put in order, from the stream of its table. Replace the handler by your own.

use std::process::ExitCode;

use millpond_lambda::FunctionError;
use millpond_lambda::functions::{self, Forward, Prepared};
use millpond_lambda::settings::Variables;
use millpond_sequencer::Config;

#[tokio::main]
async fn main() -> ExitCode {
    millpond_lambda::start(Box::pin(function())).await
}

async fn function() -> Result<(), FunctionError> {
    let prepared = Prepared::from(&Variables::of_process()).await?;
    let sequencer = prepared.sequencer(Config::default())?;
    // The example: each message of the range goes on to a Millpond queue, in order.
    let forward = Forward::new(&prepared)?;
    let consumer = functions::ranges(&prepared, move |range, _| {
        let (forward, sequencer) = (forward.clone(), sequencer.clone());
        async move { forward.range(&sequencer, &range).await }
    })?;
    functions::run(consumer).await
}
