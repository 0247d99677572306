//! Dead letters in a Kinesis stream.

use async_trait::async_trait;
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::operation::put_records::PutRecordsOutput;
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::PutRecordsRequestEntry;
use bytes::Bytes;
use millpond_consumer::sink::{Letter, Sink, SinkError, SinkReceipt};
use millpond_store::Environment;

use super::batches::{self, Bounds, Fate, Outlet};
use crate::aws::Aws;
use crate::failure::{AwsError, Request};
use crate::limits::{
    KINESIS_BATCH_BYTES_MAX, KINESIS_BATCH_MAX, KINESIS_LETTER_BYTES_MAX, PARTITION_KEY_MAX,
};

const BOUNDS: Bounds = Bounds { count: KINESIS_BATCH_MAX, bytes: KINESIS_BATCH_BYTES_MAX };

/// Dead letters in a Kinesis stream. Letters of one source key go to one shard, in order as far as none is sent again.
/// The receipt is the record's shard and sequence number. A letter that is sent twice is there twice, with the same
/// `dedupe_id`.
#[derive(Debug, Clone)]
pub struct KinesisSink {
    client: Client,
    stream: String,
    environment: Environment,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    key: String,
    data: Bytes,
}

impl KinesisSink {
    /// Letters go to this stream: its name, or its ARN, which may be of another account.
    #[must_use]
    pub fn new(aws: &Aws, stream: impl Into<String>) -> Self {
        let environment = aws.environment().clone();
        Self { client: aws.kinesis(), stream: stream.into(), environment }
    }

    fn request(&self) -> Request<'_> {
        Request { action: "kinesis:PutRecords", what: &self.stream }
    }
}

#[async_trait]
impl Outlet for KinesisSink {
    type Entry = Entry;

    fn size(&self, entry: &Entry) -> usize {
        entry.key.len().saturating_add(entry.data.len())
    }

    async fn send(&self, batch: Vec<Entry>) -> Result<Vec<Fate>, AwsError> {
        let request = self.request();
        let mut records = Vec::with_capacity(batch.len());
        for entry in batch {
            let record = PutRecordsRequestEntry::builder()
                .data(Blob::new(entry.data))
                .partition_key(entry.key)
                .build();
            records.push(record.map_err(|error| request.failed(error.to_string()))?);
        }
        let put = self.client.put_records().set_records(Some(records));
        let put = if self.stream.starts_with("arn:") {
            put.stream_arn(&self.stream)
        } else {
            put.stream_name(&self.stream)
        };
        let answer = put.send().await.map_err(|error| request.error(&error))?;
        Ok(fates(&answer))
    }
}

fn fates(answer: &PutRecordsOutput) -> Vec<Fate> {
    let fate = |record: &aws_sdk_kinesis::types::PutRecordsResultEntry| {
        if let Some(code) = record.error_code() {
            return Fate::Again(format!("{code}: {}", record.error_message().unwrap_or_default()));
        }
        match record.sequence_number().filter(|number| !number.is_empty()) {
            Some(number) => Fate::Kept(format!("{}/{number}", record.shard_id().unwrap_or("?"))),
            None => Fate::Again("the service gave no sequence number".into()),
        }
    };
    answer.records().iter().map(fate).collect()
}

/// The source's own key where it can be one here, and else the letter's id: any key spreads.
pub(crate) fn partition_key_of(key: Option<&String>, id: &str) -> String {
    let usable = |key: &&String| !key.is_empty() && key.chars().count() <= PARTITION_KEY_MAX;
    key.filter(usable).map_or_else(|| id.to_owned(), String::clone)
}

#[async_trait]
impl Sink for KinesisSink {
    fn bytes_max(&self) -> usize {
        KINESIS_LETTER_BYTES_MAX
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        let entry = |letter: Letter| Entry {
            key: partition_key_of(letter.group.as_ref(), &letter.dedupe_id),
            data: letter.body,
        };
        let entries = letters.into_iter().map(entry).collect();
        batches::deliver(self, entries, BOUNDS, &self.environment).await
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_kinesis::types::PutRecordsResultEntry;

    use super::*;

    #[test]
    fn a_record_without_a_sequence_number_has_no_receipt() {
        let good = PutRecordsResultEntry::builder().sequence_number("49").shard_id("shard-1");
        let slow = PutRecordsResultEntry::builder()
            .error_code("ProvisionedThroughputExceededException")
            .error_message("rate");
        let answer = PutRecordsOutput::builder()
            .records(good.build())
            .records(slow.build())
            .records(PutRecordsResultEntry::builder().build())
            .build()
            .unwrap();
        let fates = fates(&answer);
        assert_eq!(fates[0], Fate::Kept("shard-1/49".into()));
        let slow = "ProvisionedThroughputExceededException: rate";
        assert_eq!(fates[1], Fate::Again(slow.into()));
        assert!(
            matches!(&fates[2], Fate::Again(problem) if problem.contains("no sequence number"))
        );
    }

    #[test]
    fn keys_that_cannot_be_a_partition_key_give_way_to_the_letters_id() {
        let key = |key: Option<&str>| partition_key_of(key.map(str::to_owned).as_ref(), "id");
        assert_eq!(key(Some("customer 7")), "customer 7");
        assert_eq!(key(Some(&"ü".repeat(256))), "ü".repeat(256));
        for none in [None, Some(""), Some("x".repeat(257).as_str())] {
            assert_eq!(key(none), "id");
        }
    }
}
