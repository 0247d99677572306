//! Appending to a topic.

use millpond_lanes::limits::{LOG_SEGMENT_MESSAGES_MAX, MESSAGE_BYTES_MAX};
use millpond_lanes::{Message, Terms};
use millpond_store::StoreError;

use crate::error::{LogError, Result};
use crate::flush::{Part, Replies};
use crate::limits::BATCH_RECORDS_MAX;
use crate::name::ProducerId;
use crate::partitioner::partition_of;
use crate::record::NewRecord;
use crate::topic::Topic;

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition.
    pub partition: u32,
    /// The offset in it.
    pub offset: u64,
}

/// Under which terms a batch is appended to one partition.
#[derive(Debug, Clone, Default)]
pub struct AppendOptions {
    /// Refuses the batch when the partition has seen a greater token, and refuses smaller ones once the batch is
    /// in. A writer that takes over comes with a greater one than the writer before it.
    pub fence: Option<u64>,
    /// Appends the batch once, however often it is sent: also by another process, after a crash.
    pub sequence: Option<Sequence>,
}

/// Who sends a batch, and which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The producer: the same after a restart.
    pub producer: ProducerId,
    /// The sequence of the batch's first record among the producer's records in this partition. The next batch
    /// continues behind this one. It is remembered for a week.
    pub first: u64,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The partition.
    pub partition: u32,
    /// The offset of its first record; the others follow without a gap.
    pub first: u64,
    /// How many records.
    pub count: usize,
    /// Whether it was there before this call.
    pub duplicate: bool,
}

impl Topic {
    /// Appends one record, together with what others append at the same time: to the partition of its key, or to
    /// any. Acknowledged means stored.
    ///
    /// # Errors
    /// As [`append_batch`](Self::append_batch).
    pub async fn append(&self, record: NewRecord) -> Result<Position> {
        let mut outcomes = self.append_batch(vec![record]).await?;
        outcomes.pop().unwrap_or_else(|| Err(ended().into()))
    }

    /// Appends records, with an outcome for each, in order. Records of one partition keep their order, and behind
    /// one that fails none of the same partition is tried. What goes to the object store goes there as one object
    /// for all partitions.
    ///
    /// # Errors
    /// When a record is too large or the topic is gone: then nothing is appended.
    pub async fn append_batch(&self, records: Vec<NewRecord>) -> Result<Vec<Result<Position>>> {
        let partitions = self.recent().await?.config.partitions;
        LogError::check_size("batch", records.len(), BATCH_RECORDS_MAX)?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let keyless = self.next_turn(partitions);
        let mut parts: Vec<Part> = Vec::new();
        // Where each record went: which part, and its place in it.
        let mut places = Vec::with_capacity(records.len());
        for record in records {
            let partition =
                record.key.as_ref().map_or(keyless, |key| partition_of(key, partitions));
            let message = record.into_message()?;
            let at = parts.iter().position(|part| part.partition == partition);
            let at = at.unwrap_or_else(|| {
                parts.push(Part { partition, messages: Vec::new(), terms: None });
                parts.len() - 1
            });
            if let Some(part) = parts.get_mut(at) {
                places.push((at, part.messages.len()));
                part.messages.push(message);
            }
        }
        let numbers: Vec<u32> = parts.iter().map(|part| part.partition).collect();
        let replies = self.0.flusher.submit(parts).await;
        let mut outcomes = Vec::with_capacity(replies.len());
        for (partition, replies) in numbers.into_iter().zip(replies) {
            outcomes.push(positions(partition, replies).await);
        }
        let outcome = |(part, slot): (usize, usize)| {
            outcomes.get(part).and_then(|part| part.get(slot)).cloned()
        };
        let outcomes = places.into_iter().map(outcome);
        Ok(outcomes.map(|outcome| outcome.unwrap_or_else(|| Err(ended().into()))).collect())
    }

    /// Appends a batch to this partition, all of it or nothing, in one segment.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], [`LogError::TooLarge`] when a segment cannot hold it,
    /// [`LogError::Fenced`], [`LogError::OutOfSequence`], [`LogError::AlreadyAppended`], and as the store's.
    pub async fn append_to(
        &self,
        partition: u32,
        records: Vec<NewRecord>,
        options: &AppendOptions,
    ) -> Result<Appended> {
        self.recent().await?;
        self.lane(partition).await?;
        let count = records.len();
        if count == 0 {
            return Err(LogError::invalid("batch", "has no records"));
        }
        LogError::check_size("batch", count, LOG_SEGMENT_MESSAGES_MAX)?;
        let messages: Vec<Message> =
            records.into_iter().map(NewRecord::into_message).collect::<Result<_>>()?;
        let bytes = messages.iter().map(Message::size).sum();
        LogError::check_size("bytes of the batch", bytes, MESSAGE_BYTES_MAX)?;
        if let Some(sequence) = &options.sequence {
            return self.append_once(partition, messages, options.fence, sequence).await;
        }
        let terms = Terms { fence: options.fence, beside: None };
        let first = self.append_segment(partition, messages, terms).await?;
        Ok(Appended { partition, first, count, duplicate: false })
    }

    /// Appends one segment of its own.
    pub(crate) async fn append_segment(
        &self,
        partition: u32,
        messages: Vec<Message>,
        terms: Terms,
    ) -> Result<u64> {
        let part = Part { partition, messages, terms: Some(terms) };
        let mut replies = self.0.flusher.submit(vec![part]).await;
        match replies.pop().and_then(|mut replies| replies.pop()) {
            Some((_, reply)) => reply.await.unwrap_or_else(|_| Err(ended().into())),
            None => Err(ended().into()),
        }
    }
}

/// The outcome of each record of a part, in order.
pub(crate) async fn positions(partition: u32, replies: Replies) -> Vec<Result<Position>> {
    let mut outcomes = Vec::new();
    let mut failed: Option<LogError> = None;
    for (count, reply) in replies {
        let first = reply.await.unwrap_or_else(|_| Err(ended().into()));
        for at in 0..count as u64 {
            outcomes.push(match (&first, &failed) {
                (Ok(first), _) => Ok(Position { partition, offset: first + at }),
                (Err(_), Some(before)) => {
                    Err(LogError::NotTried { partition, before: Box::new(before.clone()) })
                }
                (Err(error), None) => Err(error.clone()),
            });
        }
        if let (Err(error), None) = (first, &failed) {
            failed = Some(error);
        }
    }
    outcomes
}

fn ended() -> StoreError {
    StoreError::UnknownOutcome {
        operation: "append",
        detail: "the topic's writer ended before it could say".to_owned(),
        cause: None,
    }
}
