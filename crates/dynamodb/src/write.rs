//! Writing one item.

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use millpond_store::{
    Item, Key, Operation, Result, StoreError, Timestamp, Verdict, Write, judge_write,
};

use crate::capacity;
use crate::condition::{self, Condition};
use crate::failure::Effect;
use crate::item::{Row, decode, encode, encode_key};
use crate::store::DynamoDbStore;

impl DynamoDbStore {
    /// [`millpond_store::Store::write`].
    pub(crate) async fn write_one(&self, write: Write) -> Result<()> {
        write.check()?;
        self.write_checked(Operation::Write, &write).await
    }

    /// One write, already checked, counted under `operation`.
    pub(crate) async fn write_checked(&self, operation: Operation, write: &Write) -> Result<()> {
        let now = self.now();
        let condition = condition::of_write(write, now);
        let mut retry = self.retry("write");
        let outcome = loop {
            let attempt = match write.item() {
                Some(item) => self.put_once(operation, &item, condition.clone()).await,
                None => self.delete_once(operation, write, condition.clone()).await,
            };
            let error = match attempt {
                Ok(None) => break Ok(()),
                Ok(Some(Refused { row })) => match self.current(row, &write.key, now).await {
                    Ok(current) if is_own(write, current.as_ref()) => break Ok(()),
                    Ok(current) => StoreError::conflict(write.key.clone(), current),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if let Err(last) = retry.pause(error).await {
                break Err(last);
            }
        };
        self.announce(&outcome, [&write.key]);
        outcome
    }

    /// What is there, now that a condition did not hold: as the service returned it with the refusal. Where it
    /// returned nothing, there may be nothing, or the service may be one that does not tell: then it is asked.
    pub(crate) async fn current(
        &self,
        row: Option<Row>,
        key: &Key,
        now: Timestamp,
    ) -> Result<Option<Item>> {
        match row.filter(|row| !row.is_empty()) {
            Some(row) => Ok(Some(decode(row)?).filter(|item| item.is_live(now))),
            None => self.get_item(key).await,
        }
    }

    async fn put_once(
        &self,
        operation: Operation,
        item: &Item,
        condition: Option<Condition>,
    ) -> Result<Option<Refused>> {
        let mut request = self
            .client
            .put_item()
            .table_name(self.table())
            .set_item(Some(encode(item)))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        if let Some(condition) = condition {
            request = request
                .set_expression_attribute_values(condition.values())
                .set_expression_attribute_names(Some(condition.names))
                .condition_expression(condition.text)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
        }
        match Box::pin(request.send()).await {
            Ok(answer) => {
                let consumed = answer.consumed_capacity.as_ref();
                capacity::record(self.meter(), operation, Effect::Write, item.size(), consumed);
                Ok(None)
            }
            Err(error) => {
                capacity::record_failed(self.meter(), operation);
                match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                        Ok(Some(Refused { row: failed.item.clone() }))
                    }
                    _ => Err(self.writing("PutItem").error(error)),
                }
            }
        }
    }

    async fn delete_once(
        &self,
        operation: Operation,
        write: &Write,
        condition: Option<Condition>,
    ) -> Result<Option<Refused>> {
        let mut request = self
            .client
            .delete_item()
            .table_name(self.table())
            .set_key(Some(encode_key(&write.key)))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        if let Some(condition) = condition {
            request = request
                .set_expression_attribute_values(condition.values())
                .set_expression_attribute_names(Some(condition.names))
                .condition_expression(condition.text)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
        }
        match Box::pin(request.send()).await {
            Ok(answer) => {
                let consumed = answer.consumed_capacity.as_ref();
                capacity::record(self.meter(), operation, Effect::Write, write.size(), consumed);
                Ok(None)
            }
            Err(error) => {
                capacity::record_failed(self.meter(), operation);
                match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(failed)) => {
                        Ok(Some(Refused { row: failed.item.clone() }))
                    }
                    _ => Err(self.writing("DeleteItem").error(error)),
                }
            }
        }
    }
}

/// The service found that the condition does not hold, and what is there instead.
struct Refused {
    row: Option<Row>,
}

/// Whether what is there was made by this very write: then it was done before.
pub(crate) fn is_own(write: &Write, current: Option<&Item>) -> bool {
    judge_write(write, current.map(|item| item.version)) == Verdict::AlreadyApplied
}
