//! Checking the table, without changing anything in it.

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use millpond_store::{Attributes, Environment, Key, Query, Result, Store as _, StoreError, Write};

use super::policy::Role;
use super::report::{Check, TableReport};
use super::schema::is_usable;
use super::{DynamoDbAdmin, TableOptions};
use crate::condition;
use crate::config::DynamoDbConfig;
use crate::failure::missing_table;
use crate::item::{encode, encode_key};
use crate::store::DynamoDbStore;

/// The partition that probes name. Nothing is ever stored there.
const PROBE_PARTITION: &str = "millpond/verify";

impl DynamoDbStore {
    /// Opens the table and verifies it for `role` before anything relies on it.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`DynamoDbAdmin::verify`], and [`StoreError::Misconfigured`] when a check
    /// failed.
    pub async fn open_verified(
        config: DynamoDbConfig,
        environment: &Environment,
        role: Role,
    ) -> Result<Self> {
        let store = Self::open(config, environment).await?;
        store.admin().verify(role, TableOptions::default()).await?.require()?;
        Ok(store)
    }
}

impl DynamoDbAdmin {
    /// Checks that the table is fit for `role`: its keys, status, TTL and stream, and that everything the role
    /// does is permitted. Writes are tried with a condition that cannot hold, and a batch with the removal of an
    /// item that is not there, so nothing changes.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when the table is missing or has other keys: then there is nothing more to
    /// check. Any other error when a check could not be made.
    pub async fn verify(&self, role: Role, options: TableOptions) -> Result<TableReport> {
        let Some(table) = self.describe().await? else {
            return Err(missing_table(&self.store.config.table));
        };
        self.check_keys(&table)?;
        let mut checks = vec![
            Check::of("keys", Ok(()))?,
            Check::of("status", self.check_status(is_usable(&table)))?,
            Check::of("TTL on `exp`", self.check_ttl().await)?,
        ];
        if options.stream {
            checks.push(Check::of("stream", self.check_stream(&table, options))?);
        }
        let probe = self.probe_key()?;
        for action in role.data_actions() {
            let outcome = match *action {
                "GetItem" => self.store.get(&probe).await.map(|_| ()),
                "Query" => {
                    let query = Query::new(probe.partition.clone()).limit(1);
                    self.store.query(query).await.map(|_| ())
                }
                "PutItem" => self.probe_put(&probe).await,
                "DeleteItem" => self.probe_delete(&probe).await,
                "BatchWriteItem" => self.probe_batch(&probe).await,
                other => Err(StoreError::invalid("action", format!("{other} has no probe"))),
            };
            checks.push(Check::of(format!("permission dynamodb:{action}"), outcome)?);
        }
        let table = self.store.table().to_owned();
        Ok(TableReport { table, checks })
    }

    fn check_status(&self, usable: bool) -> Result<()> {
        if usable {
            return Ok(());
        }
        Err(StoreError::misconfigured(
            format!("table {} is not active", self.store.table()),
            "wait until it is, or run `create_table`, which waits",
        ))
    }

    async fn check_ttl(&self) -> Result<()> {
        if self.ttl_is_on().await? {
            return Ok(());
        }
        Err(StoreError::misconfigured(
            format!("table {} has no TTL: what expires is never removed", self.store.table()),
            "turn TTL on for the attribute `exp`, or run `create_table`, which does",
        ))
    }

    /// A key that nobody uses.
    fn probe_key(&self) -> Result<Key> {
        let id = self.store.environment.unique_id();
        Key::new(PROBE_PARTITION, format!("{id:?}").into_bytes())
    }

    async fn probe_put(&self, key: &Key) -> Result<()> {
        let version = self.store.environment.version();
        let write =
            Write::put(key.clone(), Attributes::new(), millpond_store::Expect::Any, version);
        let never = condition::never();
        let mut retry = self.store.retry("probe PutItem");
        loop {
            let request = self
                .store
                .client
                .put_item()
                .table_name(self.store.table())
                .set_item(write.item().as_ref().map(encode))
                .condition_expression(&never.text)
                .set_expression_attribute_names(Some(never.names.clone()));
            match Box::pin(request.send()).await {
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
                    return Ok(());
                }
                Ok(_) => return Err(probe_was_applied("PutItem")),
                Err(error) => retry.pause(self.store.reading("PutItem").error(error)).await?,
            }
        }
    }

    async fn probe_delete(&self, key: &Key) -> Result<()> {
        let never = condition::never();
        let mut retry = self.store.retry("probe DeleteItem");
        loop {
            let request = self
                .store
                .client
                .delete_item()
                .table_name(self.store.table())
                .set_key(Some(encode_key(key)))
                .condition_expression(&never.text)
                .set_expression_attribute_names(Some(never.names.clone()));
            match Box::pin(request.send()).await {
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
                    return Ok(());
                }
                Ok(_) => return Err(probe_was_applied("DeleteItem")),
                Err(error) => retry.pause(self.store.reading("DeleteItem").error(error)).await?,
            }
        }
    }

    async fn probe_batch(&self, key: &Key) -> Result<()> {
        let delete = DeleteRequest::builder().set_key(Some(encode_key(key))).build();
        let delete =
            WriteRequest::builder().delete_request(delete.expect("the key is set")).build();
        let mut retry = self.store.retry("probe BatchWriteItem");
        loop {
            let request = self.store.client.batch_write_item();
            let request = request.request_items(self.store.table(), vec![delete.clone()]);
            match Box::pin(request.send()).await {
                Ok(_) => return Ok(()),
                Err(error) => {
                    retry.pause(self.store.reading("BatchWriteItem").error(error)).await?;
                }
            }
        }
    }
}

fn probe_was_applied(action: &str) -> StoreError {
    StoreError::misconfigured(
        format!("the service applied a {action} whose condition cannot hold"),
        "use a service that keeps conditions: nothing here is safe without them",
    )
}
