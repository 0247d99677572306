//! Dead letters in an SQS queue.

use aws_sdk_sqs::types::Message;
use millpond_consumer::redrive::{Destination, RedriveError, Redriven, Which};
use millpond_consumer::sink::LetterError;
use millpond_consumer::{DeadLetter, Spill};

use super::to::refused;
use crate::aws::Aws;
use crate::failure::Request;
use crate::limits::{AWS_BACKOFF, REDRIVE_VISIBILITY_SECONDS, SQS_BATCH_MAX};

/// Dead letters in an SQS queue. Needs `sqs:ReceiveMessage`, and `sqs:DeleteMessage` to bring them back.
#[derive(Debug, Clone)]
pub struct SqsLetters {
    client: aws_sdk_sqs::Client,
    aws: Aws,
    url: String,
}

impl SqsLetters {
    /// Those in the queue with this URL.
    #[must_use]
    pub fn new(aws: &Aws, url: impl Into<String>) -> Self {
        Self { client: aws.sqs(), aws: aws.clone(), url: url.into() }
    }

    /// Looks at up to `max` letters, and returns those that are meant; those that are not letters are named. They stay in
    /// the queue, and cannot be received again for a minute.
    ///
    /// # Errors
    /// When the queue cannot be reached.
    pub async fn list(
        &self,
        which: &Which,
        max: usize,
    ) -> Result<Vec<Result<DeadLetter, LetterError>>, RedriveError> {
        let mut found = Vec::new();
        let mut looked_at = 0;
        while looked_at < max {
            let messages = self.receive(max - looked_at).await?;
            if messages.is_empty() {
                break;
            }
            looked_at += messages.len();
            let letters = messages.iter().map(decode);
            found.extend(
                letters
                    .filter(|letter| letter.as_ref().map_or(true, |letter| which.matches(letter))),
            );
        }
        Ok(found)
    }

    /// Brings letters back, up to `max` looked at. A letter is deleted only when its destination has it; what is not meant,
    /// or fails, comes back after a minute.
    ///
    /// # Errors
    /// When the queue cannot be reached.
    pub async fn redrive(
        &self,
        to: &dyn Destination,
        which: &Which,
        spill: Option<&Spill>,
        max: usize,
    ) -> Result<Redriven, RedriveError> {
        let mut redriven = Redriven::default();
        let mut looked_at = 0;
        while looked_at < max {
            let messages = self.receive(max - looked_at).await?;
            if messages.is_empty() {
                break;
            }
            looked_at += messages.len();
            for message in &messages {
                let letter = match decode(message) {
                    Ok(letter) if !which.matches(&letter) => {
                        redriven.skipped += 1;
                        continue;
                    }
                    letter => letter,
                };
                let sent = match letter {
                    Ok(letter) => send_whole(letter, to, spill).await,
                    Err(error) => Err(error.into()),
                };
                match sent {
                    Ok(()) => {
                        self.delete(message).await?;
                        redriven.sent += 1;
                    }
                    Err(error) => redriven.failed.push(error.to_string()),
                }
            }
        }
        Ok(redriven)
    }

    async fn receive(&self, max: usize) -> Result<Vec<Message>, RedriveError> {
        let request = Request { action: "sqs:ReceiveMessage", what: &self.url };
        let count = i32::try_from(max.min(SQS_BATCH_MAX)).unwrap_or(1);
        let received = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            self.client
                .receive_message()
                .queue_url(&self.url)
                .max_number_of_messages(count)
                .visibility_timeout(REDRIVE_VISIBILITY_SECONDS)
                .wait_time_seconds(1)
                .send()
                .await
                .map_err(|error| request.error(&error))
        });
        let received = received.await.map_err(|error| refused(&error))?;
        Ok(received.messages.unwrap_or_default())
    }

    async fn delete(&self, message: &Message) -> Result<(), RedriveError> {
        let request = Request { action: "sqs:DeleteMessage", what: &self.url };
        let deleted = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            self.client
                .delete_message()
                .queue_url(&self.url)
                .receipt_handle(message.receipt_handle().unwrap_or_default())
                .send()
                .await
                .map_err(|error| request.error(&error))
        });
        deleted.await.map(|_| ()).map_err(|error| refused(&error))
    }
}

fn decode(message: &Message) -> Result<DeadLetter, LetterError> {
    DeadLetter::decode(message.body().unwrap_or_default().as_bytes())
}

async fn send_whole(
    letter: DeadLetter,
    to: &dyn Destination,
    spill: Option<&Spill>,
) -> Result<(), RedriveError> {
    let whole = match (spill, letter.spilled.is_some()) {
        (Some(spill), true) => spill.fetch(letter).await?,
        (None, true) => return Err(RedriveError::NoSpill(letter.dedupe_id)),
        (_, false) => letter,
    };
    to.send(&whole).await
}
