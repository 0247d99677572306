//! Dead letters in an SQS queue.

use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, Message};
use millpond_consumer::redrive::{Destination, Fate, RedriveError, Redriven, Which, redrive_one};
use millpond_consumer::sink::LetterError;
use millpond_consumer::{DeadLetter, Spill};

use super::to::redrive_error;
use crate::aws::Aws;
use crate::failure::Request;
use crate::limits::{AWS_BACKOFF, REDRIVE_VISIBILITY_SECONDS, SQS_BATCH_MAX};

/// Dead letters in an SQS queue. Needs `sqs:ReceiveMessage`; `sqs:DeleteMessage` to bring them back; and
/// `sqs:ChangeMessageVisibility`, or what was looked at and stays cannot be received for a minute.
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
    /// the queue; while it looks, nobody else can receive them.
    ///
    /// # Errors
    /// When the queue cannot be reached.
    pub async fn list(
        &self,
        which: &Which,
        max: usize,
    ) -> Result<Vec<Result<DeadLetter, LetterError>>, RedriveError> {
        let mut found = Vec::new();
        let mut kept = Vec::new();
        while kept.len() < max {
            let messages = self.receive(max - kept.len()).await?;
            if messages.is_empty() {
                break;
            }
            let letters = messages.iter().map(|message| DeadLetter::decode(body(message)));
            found.extend(letters.filter(|letter| which.lists(letter)));
            kept.extend(messages);
        }
        self.release(&kept).await;
        Ok(found)
    }

    /// Brings letters back, up to `max` looked at. A letter is deleted only when its destination has it; what is not meant,
    /// or fails, stays.
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
        let mut kept = Vec::new();
        while looked_at < max {
            let messages = self.receive(max - looked_at).await?;
            if messages.is_empty() {
                break;
            }
            looked_at += messages.len();
            for message in messages {
                match redrive_one(body(&message), to, which, spill).await {
                    Fate::Sent => {
                        self.delete(&message).await?;
                        redriven.sent += 1;
                        continue;
                    }
                    Fate::Skipped => redriven.skipped += 1,
                    Fate::Failed(error) => redriven.failed.push(error.to_string()),
                }
                kept.push(message);
            }
        }
        self.release(&kept).await;
        Ok(redriven)
    }

    /// Lets others receive messages again, once all are looked at: before that they would come again here. What fails here ends
    /// by itself.
    async fn release(&self, messages: &[Message]) {
        let request = Request { action: "sqs:ChangeMessageVisibility", what: &self.url };
        for some in messages.chunks(SQS_BATCH_MAX) {
            let entries = some.iter().enumerate().map(|(at, message)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(at.to_string())
                    .receipt_handle(message.receipt_handle().unwrap_or_default())
                    .visibility_timeout(0)
                    .build()
            });
            let Ok(entries) = entries.collect::<Result<Vec<_>, _>>() else { continue };
            let change = self.client.change_message_visibility_batch().queue_url(&self.url);
            if let Err(error) = change.set_entries(Some(entries)).send().await {
                let error = request.error(&error);
                tracing::warn!(%error, "dead letters stay hidden for a minute");
            }
        }
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
        let received = received.await.map_err(|error| redrive_error(&error))?;
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
        deleted.await.map(|_| ()).map_err(|error| redrive_error(&error))
    }
}

fn body(message: &Message) -> &[u8] {
    message.body().unwrap_or_default().as_bytes()
}
