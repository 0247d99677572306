//! Writing several items, each on its own.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, ReturnConsumedCapacity, WriteRequest};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use millpond_store::{Expect, Key, Operation, Result, StoreError, Write, check_each};

use crate::capacity;
use crate::failure::Effect;
use crate::item::{decode_key, encode, encode_key};
use crate::limits::{BATCH_WRITES_MAX, EACH_IN_FLIGHT_MAX};
use crate::store::DynamoDbStore;

const ACTION: &str = "BatchWriteItem";

/// A write and its place in the call.
type Placed = (usize, Write);

/// An outcome and the place of its write in the call.
type Outcome = (usize, Result<()>);

impl DynamoDbStore {
    /// [`millpond_store::Store::write_each`]: writes that always apply go in batches, the others, for which the
    /// service has no batches, one by one, some at a time.
    pub(crate) async fn write_independent(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        check_each(&writes)?;
        let mut outcomes: Vec<Option<Result<()>>> = writes.iter().map(|_| None).collect();
        let mut batched = Vec::new();
        let mut work: Vec<BoxFuture<'_, Vec<Outcome>>> = Vec::new();
        for (index, (write, outcome)) in writes.into_iter().zip(&mut outcomes).enumerate() {
            match (write.check(), write.expect) {
                (Err(error), _) => *outcome = Some(Err(error)),
                (Ok(()), Expect::Any) => batched.push((index, write)),
                (Ok(()), _) => work.push(self.write_placed((index, write)).boxed()),
            }
        }
        for batch in batched.chunks(BATCH_WRITES_MAX) {
            work.push(self.write_batch(batch.to_vec()).boxed());
        }
        let mut done = futures::stream::iter(work).buffer_unordered(EACH_IN_FLIGHT_MAX);
        while let Some(results) = done.next().await {
            for (index, result) in results {
                if let Some(outcome) = outcomes.get_mut(index) {
                    *outcome = Some(result);
                }
            }
        }
        Ok(outcomes
            .into_iter()
            .map(|outcome| outcome.expect("every write was refused, batched or written"))
            .collect())
    }

    async fn write_placed(&self, (index, write): Placed) -> Vec<Outcome> {
        vec![(index, self.write_checked(Operation::WriteEach, &write).await)]
    }

    /// Writes a batch; what the service leaves unprocessed is sent again, with backoff.
    async fn write_batch(&self, mut pending: Vec<Placed>) -> Vec<Outcome> {
        if let [only] = pending.as_slice() {
            return self.write_placed(only.clone()).await;
        }
        let mut outcomes = Vec::with_capacity(pending.len());
        let mut retry = self.retry("write_each");
        loop {
            let error = match self.batch_once(&pending).await {
                Ok(unprocessed) => {
                    let (left, written): (Vec<_>, Vec<_>) = pending
                        .into_iter()
                        .partition(|(_, write)| unprocessed.contains(&write.key));
                    for (index, write) in written {
                        self.announce(&Ok(()), [&write.key]);
                        outcomes.push((index, Ok(())));
                    }
                    pending = left;
                    if pending.is_empty() {
                        return outcomes;
                    }
                    self.writing(ACTION).throttled("UnprocessedItems", "some writes were left over")
                }
                // One write that the service finds wrong spoils its batch: alone, each gets its own outcome.
                Err(StoreError::Invalid { .. } | StoreError::TooLarge { .. }) => {
                    for placed in pending {
                        outcomes.extend(self.write_placed(placed).await);
                    }
                    return outcomes;
                }
                Err(error) => error,
            };
            if let Err(last) = retry.pause(error).await {
                for (index, write) in pending {
                    let outcome = Err(last.clone());
                    self.announce(&outcome, [&write.key]);
                    outcomes.push((index, outcome));
                }
                return outcomes;
            }
        }
    }

    /// Sends a batch once; returns the keys that were left unprocessed.
    async fn batch_once(&self, batch: &[Placed]) -> Result<HashSet<Key>> {
        let requests = batch.iter().map(|(_, write)| batch_request(write)).collect();
        let request = self
            .client
            .batch_write_item()
            .request_items(self.table(), requests)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = match Box::pin(request.send()).await {
            Ok(answer) => answer,
            Err(error) => {
                capacity::record_failed(self.meter(), Operation::WriteEach);
                return Err(self.writing(ACTION).error(error));
            }
        };
        let consumed = answer.consumed_capacity();
        let left =
            answer.unprocessed_items().into_iter().flat_map(|tables| tables.values().flatten());
        let unprocessed = left.map(key_of).collect::<Result<HashSet<_>>>().map_err(|error| {
            // The service did something, but does not say what.
            self.writing(ACTION).failed(false, error.to_string(), None)
        })?;
        let written = batch.iter().filter(|(_, write)| !unprocessed.contains(&write.key));
        let bytes = written.map(|(_, write)| write.size()).sum();
        capacity::record(self.meter(), Operation::WriteEach, Effect::Write, bytes, consumed);
        Ok(unprocessed)
    }
}

fn batch_request(write: &Write) -> WriteRequest {
    const SET: &str = "item or key is set";
    let request = WriteRequest::builder();
    match write.item() {
        Some(item) => {
            let put = PutRequest::builder().set_item(Some(encode(&item))).build();
            request.put_request(put.expect(SET)).build()
        }
        None => {
            let delete = DeleteRequest::builder().set_key(Some(encode_key(&write.key))).build();
            request.delete_request(delete.expect(SET)).build()
        }
    }
}

fn key_of(request: &WriteRequest) -> Result<Key> {
    match (&request.put_request, &request.delete_request) {
        (Some(put), _) => decode_key(put.item()),
        (None, Some(delete)) => decode_key(delete.key()),
        (None, None) => {
            Err(StoreError::corrupt("the list of unprocessed writes", "an entry is empty"))
        }
    }
}
