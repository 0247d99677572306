//! Writing several items, all or none.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Delete, Put, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem,
};
use millpond_store::{Conflict, Operation, Result, StoreError, Timestamp, Write, check_group};

use crate::capacity;
use crate::condition::{self, Condition};
use crate::failure::Effect;
use crate::item::{encode, encode_key};
use crate::store::DynamoDbStore;
use crate::write::is_own;

const ACTION: &str = "TransactWriteItems";

impl DynamoDbStore {
    /// [`millpond_store::Store::write_all`].
    pub(crate) async fn write_group(&self, writes: Vec<Write>) -> Result<()> {
        check_group(&writes)?;
        match writes.as_slice() {
            [] => Ok(()),
            // Alone, it is atomic anyway, at half the price.
            [only] => self.write_checked(Operation::WriteAll, only).await,
            all => self.transact(all).await,
        }
    }

    async fn transact(&self, writes: &[Write]) -> Result<()> {
        // Every attempt is the same request under the same token, so that the service itself knows it again
        // for ten minutes, even a group of nothing but deletes. It is built once: the order within maps, which
        // is random, is then the same too.
        let now = self.now();
        let token = format!(
            "{:016x}{:016x}",
            self.environment.rng.next_u64(),
            self.environment.rng.next_u64()
        );
        let items: Vec<_> = writes.iter().map(|write| self.transact_item(write, now)).collect();
        let mut retry = self.retry("write_all");
        let outcome = loop {
            let attempt = self.transact_once(writes, items.clone(), &token, now);
            let Err(error) = attempt.await else {
                break Ok(());
            };
            if let Err(last) = retry.pause(error).await {
                break Err(last);
            }
        };
        self.announce(&outcome, writes.iter().map(|write| &write.key));
        outcome
    }

    async fn transact_once(
        &self,
        writes: &[Write],
        items: Vec<TransactWriteItem>,
        token: &str,
        now: Timestamp,
    ) -> Result<()> {
        let request = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .client_request_token(token)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match Box::pin(request.send()).await {
            Ok(answer) => {
                let bytes = writes.iter().map(Write::size).sum();
                let consumed = answer.consumed_capacity();
                capacity::record(self.meter(), Operation::WriteAll, Effect::Write, bytes, consumed);
                Ok(())
            }
            Err(error) => {
                capacity::record_failed(self.meter(), Operation::WriteAll);
                match error.as_service_error() {
                    Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                        let reasons = cancelled.cancellation_reasons().to_vec();
                        self.judge_cancelled(writes, reasons, now).await
                    }
                    _ => Err(self.writing(ACTION).error(error)),
                }
            }
        }
    }

    fn transact_item(&self, write: &Write, now: Timestamp) -> TransactWriteItem {
        const SET: &str = "table and item or key are set";
        let condition = condition::of_group_write(write, now);
        let returned = condition.as_ref().map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let values = condition.as_ref().and_then(Condition::values);
        let (text, names) = condition.map(|condition| (condition.text, condition.names)).unzip();
        let item = TransactWriteItem::builder();
        match write.item() {
            Some(whole) => {
                let put = Put::builder()
                    .table_name(self.table())
                    .set_item(Some(encode(&whole)))
                    .set_condition_expression(text)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(returned);
                item.put(put.build().expect(SET)).build()
            }
            None => {
                let delete = Delete::builder()
                    .table_name(self.table())
                    .set_key(Some(encode_key(&write.key)))
                    .set_condition_expression(text)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(returned);
                item.delete(delete.build().expect(SET)).build()
            }
        }
    }

    /// What a cancelled transaction means, by the rule of [`millpond_store::judge_group`]: one put found under
    /// its own version shows that the group was applied before.
    async fn judge_cancelled(
        &self,
        writes: &[Write],
        reasons: Vec<CancellationReason>,
        now: Timestamp,
    ) -> Result<()> {
        let mut conflicts = Vec::new();
        let mut other = None;
        for (index, (write, reason)) in writes.iter().zip(reasons).enumerate() {
            match reason.code.as_deref() {
                None | Some("None") => {}
                Some("ConditionalCheckFailed") => {
                    let current = self.current(reason.item, &write.key, now).await?;
                    if is_own(write, current.as_ref()) {
                        return Ok(());
                    }
                    let key = write.key.clone();
                    conflicts.push(Conflict { index, key, current });
                }
                Some(code) => {
                    let message =
                        format!("{}, for {}", reason.message.unwrap_or_default(), write.key);
                    let error = self.writing(ACTION).refused(code, &message, 400);
                    other = other.or(error);
                }
            }
        }
        if conflicts.is_empty() {
            let unexplained =
                || self.writing(ACTION).throttled("TransactionCanceled", "no reason was given");
            return Err(other.unwrap_or_else(unexplained));
        }
        let first = conflicts.remove(0);
        Err(StoreError::conflicts(first, conflicts))
    }
}
