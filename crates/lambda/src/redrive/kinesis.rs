//! Dead letters in a Kinesis stream.

use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::types::{Record, ShardIteratorType};
use millpond_consumer::redrive::{Destination, Fate, RedriveError, Redriven, Which, redrive_one};
use millpond_consumer::sink::LetterError;
use millpond_consumer::{DeadLetter, Spill};

use super::to::redrive_error;
use crate::aws::Aws;
use crate::failure::Request;
use crate::limits::{
    AWS_BACKOFF, KINESIS_EMPTY_READS_MAX, KINESIS_READ_MAX, SHARDS_MAX, SHARDS_PAGE,
};

/// Dead letters in a Kinesis stream, shard by shard. The stream keeps them until they are too old; what is brought back stays
/// in it, so remember how far you came. Needs `kinesis:ListShards`, `kinesis:GetShardIterator` and `kinesis:GetRecords`.
#[derive(Debug, Clone)]
pub struct KinesisLetters {
    client: Client,
    aws: Aws,
    stream: String,
}

/// What was done with letters of one shard, and how far that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardLetters<T> {
    /// What was done.
    pub found: T,
    /// How many records were looked at.
    pub looked_at: usize,
    /// The sequence number of the last record that was looked at, to go on after; where it began when there was none.
    pub after: Option<String>,
}

impl KinesisLetters {
    /// Those in this stream: its name or its ARN.
    #[must_use]
    pub fn new(aws: &Aws, stream: impl Into<String>) -> Self {
        Self { client: aws.kinesis(), aws: aws.clone(), stream: stream.into() }
    }

    /// The stream's shards, also those that are closed and still have records.
    ///
    /// # Errors
    /// When the stream cannot be reached.
    pub async fn shards(&self) -> Result<Vec<String>, RedriveError> {
        let request = Request { action: "kinesis:ListShards", what: &self.stream };
        let (mut shards, mut next) = (Vec::new(), None::<String>);
        while shards.len() < SHARDS_MAX {
            let listed = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
                let list = self.client.list_shards().max_results(SHARDS_PAGE);
                // A token stands for the stream too, and is not taken together with its name.
                let list = match (&next, self.is_arn()) {
                    (Some(next), _) => list.next_token(next),
                    (None, true) => list.stream_arn(&self.stream),
                    (None, false) => list.stream_name(&self.stream),
                };
                list.send().await.map_err(|error| request.error(&error))
            });
            let listed = listed.await.map_err(|error| redrive_error(&error))?;
            shards.extend(listed.shards().iter().map(|shard| shard.shard_id().to_owned()));
            match listed.next_token().filter(|next| !next.is_empty()) {
                Some(token) => next = Some(token.to_owned()),
                None => break,
            }
        }
        Ok(shards)
    }

    /// Looks at up to `max` records of a shard, from its beginning or after a sequence number, and returns the letters that
    /// are meant, with their sequence numbers; what is no letter is named.
    ///
    /// # Errors
    /// When the stream cannot be reached.
    pub async fn list(
        &self,
        shard: &str,
        after: Option<&str>,
        which: &Which,
        max: usize,
    ) -> Result<ShardLetters<Vec<(String, Result<DeadLetter, LetterError>)>>, RedriveError> {
        let mut reading = self.reading(shard, after, max);
        let mut found = Vec::new();
        loop {
            let records = reading.page().await?;
            if records.is_empty() {
                return Ok(reading.ended_with(found));
            }
            let letters = records.iter().map(|record| {
                (record.sequence_number().to_owned(), DeadLetter::decode(record.data().as_ref()))
            });
            found.extend(letters.filter(|(_, letter)| which.lists(letter)));
        }
    }

    /// Brings letters of a shard back, from its beginning or after a sequence number, up to `max` records looked at.
    ///
    /// # Errors
    /// When the stream cannot be reached.
    pub async fn redrive(
        &self,
        (shard, after): (&str, Option<&str>),
        to: &dyn Destination,
        which: &Which,
        spill: Option<&Spill>,
        max: usize,
    ) -> Result<ShardLetters<Redriven>, RedriveError> {
        let mut reading = self.reading(shard, after, max);
        let mut found = Redriven::default();
        loop {
            let records = match reading.page().await {
                Ok(records) => records,
                // How far it came must not be lost.
                Err(error) if found != Redriven::default() => {
                    found.failed.push(error.to_string());
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            if records.is_empty() {
                return Ok(reading.ended_with(found));
            }
            for record in &records {
                match redrive_one(record.data().as_ref(), to, which, spill).await {
                    Fate::Sent => found.sent += 1,
                    Fate::Skipped => found.skipped += 1,
                    Fate::Failed(error) => {
                        found.failed.push(format!("{}: {error}", record.sequence_number()));
                    }
                }
            }
        }
    }

    fn is_arn(&self) -> bool {
        self.stream.starts_with("arn:")
    }

    async fn iterator(
        &self,
        shard: &str,
        after: Option<&str>,
    ) -> Result<Option<String>, RedriveError> {
        let request = Request { action: "kinesis:GetShardIterator", what: &self.stream };
        let found = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            let begin = match after {
                Some(_) => ShardIteratorType::AfterSequenceNumber,
                None => ShardIteratorType::TrimHorizon,
            };
            let ask = self.client.get_shard_iterator().shard_id(shard).shard_iterator_type(begin);
            let ask = ask.set_starting_sequence_number(after.map(str::to_owned));
            let ask = if self.is_arn() {
                ask.stream_arn(&self.stream)
            } else {
                ask.stream_name(&self.stream)
            };
            ask.send().await.map_err(|error| request.error(&error))
        });
        let found = found.await.map_err(|error| redrive_error(&error))?;
        Ok(found.shard_iterator)
    }

    fn reading<'a>(&'a self, shard: &'a str, after: Option<&str>, max: usize) -> Reading<'a> {
        let after = after.map(str::to_owned);
        Reading { letters: self, shard, after, looked_at: 0, left: max, ended: false }
    }
}

/// The records of a shard, page by page.
struct Reading<'a> {
    letters: &'a KinesisLetters,
    shard: &'a str,
    /// The last record that was read.
    after: Option<String>,
    looked_at: usize,
    left: usize,
    ended: bool,
}

impl Reading<'_> {
    /// The next records; none at the end of the shard, or of what is there now. Each page begins with an iterator of its own:
    /// what is done with a page may take longer than one lasts.
    async fn page(&mut self) -> Result<Vec<Record>, RedriveError> {
        let KinesisLetters { client, aws, stream } = self.letters;
        let request = Request { action: "kinesis:GetRecords", what: stream };
        if self.ended || self.left == 0 {
            return Ok(Vec::new());
        }
        let mut next = self.letters.iterator(self.shard, self.after.as_deref()).await?;
        for _ in 0..KINESIS_EMPTY_READS_MAX {
            let Some(iterator) = next else { break };
            let limit = i32::try_from(self.left.min(KINESIS_READ_MAX)).unwrap_or(1);
            let page = request.lasting(aws.environment(), AWS_BACKOFF, || async {
                let get = client.get_records().shard_iterator(&iterator).limit(limit);
                let get = if self.letters.is_arn() { get.stream_arn(stream) } else { get };
                get.send().await.map_err(|error| request.error(&error))
            });
            let page = page.await.map_err(|error| redrive_error(&error))?;
            if let Some(record) = page.records().last() {
                self.after = Some(record.sequence_number().to_owned());
                self.looked_at += page.records().len();
                self.left = self.left.saturating_sub(page.records().len());
                self.ended = page.next_shard_iterator().is_none();
                return Ok(page.records);
            }
            // A page may be empty though more is behind it; at the tip every one is.
            if page.millis_behind_latest().is_none_or(|behind| behind <= 0) {
                break;
            }
            next = page.next_shard_iterator;
        }
        self.ended = true;
        Ok(Vec::new())
    }

    fn ended_with<T>(self, found: T) -> ShardLetters<T> {
        ShardLetters { found, looked_at: self.looked_at, after: self.after }
    }
}
