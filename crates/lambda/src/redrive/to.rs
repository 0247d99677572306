//! Destinations in AWS.

use async_trait::async_trait;
use aws_sdk_kinesis::primitives::Blob;
use millpond_consumer::DeadLetter;
use millpond_consumer::redrive::{Destination, Original, RedriveError};

use crate::aws::Aws;
use crate::failure::{AwsError, Request};
use crate::limits::AWS_BACKOFF;
use crate::sink::{group_of, partition_key_of};

/// Back into a Kinesis stream, byte for byte, under the same partition key. Needs `kinesis:PutRecord`.
#[derive(Debug, Clone)]
pub struct ToKinesis {
    client: aws_sdk_kinesis::Client,
    aws: Aws,
    stream: String,
}

impl ToKinesis {
    /// Into this stream: its name or its ARN.
    #[must_use]
    pub fn new(aws: &Aws, stream: impl Into<String>) -> Self {
        Self { client: aws.kinesis(), aws: aws.clone(), stream: stream.into() }
    }
}

#[async_trait]
impl Destination for ToKinesis {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let Original { payload, key } = Original::of(letter)?;
        let key = partition_key_of(key.as_ref(), &letter.dedupe_id);
        let request = Request { action: "kinesis:PutRecord", what: &self.stream };
        let put = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            let put = self.client.put_record().partition_key(&key).data(Blob::new(payload.clone()));
            let put = if self.stream.starts_with("arn:") {
                put.stream_arn(&self.stream)
            } else {
                put.stream_name(&self.stream)
            };
            put.send().await.map_err(|error| request.error(&error))
        });
        put.await.map(|_| ()).map_err(|error| redrive_error(&error))
    }
}

/// Back into an SQS queue. In a FIFO queue, under the same message group. Needs `sqs:SendMessage`.
#[derive(Debug, Clone)]
pub struct ToSqs {
    client: aws_sdk_sqs::Client,
    aws: Aws,
    url: String,
}

impl ToSqs {
    /// Into the queue with this URL.
    #[must_use]
    pub fn new(aws: &Aws, url: impl Into<String>) -> Self {
        Self { client: aws.sqs(), aws: aws.clone(), url: url.into() }
    }
}

#[async_trait]
impl Destination for ToSqs {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let Original { payload, key } = Original::of(letter)?;
        let body = String::from_utf8(payload.into()).map_err(|_| {
            RedriveError::Refused(format!("letter {}: SQS takes text only", letter.dedupe_id))
        })?;
        let request = Request { action: "sqs:SendMessage", what: &self.url };
        let send = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            let mut send = self.client.send_message().queue_url(&self.url).message_body(&body);
            if self.url.ends_with(".fifo") {
                send = send
                    .message_group_id(group_of(key.as_ref(), &letter.dedupe_id))
                    .message_deduplication_id(format!("redrive-{}", letter.dedupe_id));
            }
            send.send().await.map_err(|error| request.error(&error))
        });
        send.await.map(|_| ()).map_err(|error| redrive_error(&error))
    }
}

pub(super) fn redrive_error(error: &AwsError) -> RedriveError {
    match error {
        AwsError::Unavailable { .. } => RedriveError::Unreachable(error.to_string()),
        AwsError::Misconfigured { .. } => RedriveError::Refused(error.to_string()),
    }
}
