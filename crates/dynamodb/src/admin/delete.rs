//! Deleting the table.

use aws_sdk_dynamodb::operation::delete_table::DeleteTableError;
use millpond_store::{Result, StoreError};

use super::DynamoDbAdmin;
use crate::limits::TABLE_WAIT;

impl DynamoDbAdmin {
    /// Deletes the table and everything in it, for ever, and returns when it is gone. `confirm` must be the
    /// table's name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when `confirm` is not the table's name, [`StoreError::NotFound`] when there is no
    /// such table.
    pub async fn delete_table(&self, confirm: &str) -> Result<()> {
        let table = self.store.table();
        if confirm != table {
            let problem =
                format!("{confirm:?} is not the table's name, {table:?}: nothing was deleted");
            return Err(StoreError::invalid("confirmation", problem));
        }
        self.request_deletion().await?;
        for looks in 1.. {
            if self.describe().await?.is_none() {
                tracing::info!(table, "the table is deleted");
                return Ok(());
            }
            let environment = &self.store.environment;
            let Some(wait) = TABLE_WAIT.wait(looks, environment.rng.as_ref()) else {
                break;
            };
            environment.clock.sleep(wait).await;
        }
        Err(StoreError::UnknownOutcome {
            operation: "delete table",
            detail: format!("table {table} is being deleted, but was not gone in time"),
            cause: None,
        })
    }

    async fn request_deletion(&self) -> Result<()> {
        let mut retry = self.store.retry("delete table");
        let mut attempts = 0_u32;
        loop {
            attempts += 1;
            let request = self.store.client.delete_table().table_name(self.store.table());
            let Err(error) = Box::pin(request.send()).await else {
                return Ok(());
            };
            match error.as_service_error() {
                // Then an earlier attempt of ours has done it.
                Some(DeleteTableError::ResourceNotFoundException(_)) if attempts > 1 => {
                    return Ok(());
                }
                Some(DeleteTableError::ResourceNotFoundException(_)) => {
                    let what = format!("table {}", self.store.table());
                    return Err(StoreError::NotFound { what });
                }
                _ => retry.pause(self.store.writing("DeleteTable").error(error)).await?,
            }
        }
    }
}
