//! Invoking functions: a worker that has work left invokes itself, a sender wakes a worker.

use aws_sdk_lambda::Client;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use millpond_queue::{QueueError, Trigger, worker::Wake};

use crate::aws::Aws;
use crate::error::InvokeError;
use crate::failure::{AwsError, Request};
use crate::functions::WorkerEvent;
use crate::limits::AWS_BACKOFF;

/// Invokes a function and does not wait for it: Lambda has it in a queue, and tries it again when it fails. Needs
/// `lambda:InvokeFunction`.
///
/// Lambda ends what it takes for an endless loop after 16 rounds: a function that continues itself must have
/// `RecursiveLoop: Allow`, as in `template.yaml`.
#[derive(Debug, Clone)]
pub struct Invoker {
    client: Client,
    aws: Aws,
    function: String,
}

impl Invoker {
    /// For the function of this name or ARN.
    #[must_use]
    pub fn new(aws: &Aws, function: impl Into<String>) -> Self {
        Self { client: aws.lambda(), aws: aws.clone(), function: function.into() }
    }

    /// Invokes it with this event.
    ///
    /// # Errors
    /// When the service did not take it, after a few attempts. It may have been invoked all the same.
    pub async fn invoke(&self, event: &[u8]) -> Result<(), AwsError> {
        let request = Request { action: "lambda:InvokeFunction", what: &self.function };
        let invoked = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            let answer = self
                .client
                .invoke()
                .function_name(&self.function)
                .invocation_type(InvocationType::Event)
                .payload(Blob::new(event))
                .send()
                .await
                .map_err(|error| request.error(&error))?;
            match answer.status_code() {
                200..300 => Ok(()),
                status => Err(request.failed(format!("the service answered with status {status}"))),
            }
        });
        invoked.await
    }
}

/// For senders: starts a queue's worker function when nobody runs. Call it after sending.
#[derive(Debug, Clone)]
pub struct Waker {
    trigger: Trigger,
    invoker: Invoker,
    event: Vec<u8>,
}

impl Waker {
    /// The waker of a client of a queue, whose worker is the function of `invoker`.
    ///
    /// # Errors
    /// None in practice.
    pub fn new(client: &millpond_queue::Client, invoker: Invoker) -> Result<Self, QueueError> {
        let event = WorkerEvent::wake(client).encode();
        Ok(Self { trigger: Trigger::new(client)?, invoker, event })
    }

    /// Sees to it that somebody works on what was sent. Cheap while a worker runs.
    ///
    /// # Errors
    /// When the store or Lambda cannot be reached: call it again. The worker's schedule finds the message in any case.
    pub async fn wake(&self) -> Result<Wake, InvokeError> {
        let wake = self.trigger.wake().await?;
        if wake == Wake::Start {
            self.invoker.invoke(&self.event).await?;
        }
        Ok(wake)
    }
}
