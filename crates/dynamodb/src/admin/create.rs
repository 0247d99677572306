//! Making the table.

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    BillingMode, StreamSpecification, StreamViewType, TableDescription, TimeToLiveSpecification,
    TimeToLiveStatus,
};
use millpond_store::{Result, StoreError};

use super::DynamoDbAdmin;
use super::schema::{attribute_definitions, is_usable, key_schema};
use crate::failure::missing_table;
use crate::item::EXP;
use crate::limits::TABLE_WAIT;

/// What may be chosen about a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableOptions {
    /// Whether changes are published as a stream with new and old images.
    pub stream: bool,
}

/// How [`create_table`](DynamoDbAdmin::create_table) ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Creation {
    /// The table was made.
    Created,
    /// It was there already, or somebody else made it at the same time, and it is as it should be.
    Existing,
}

impl DynamoDbAdmin {
    /// Makes the table: on-demand, with TTL on `exp`, with a stream if asked for. Returns when it can be used. A
    /// table that exists is checked instead, and given its TTL when it has none; so this may be called again,
    /// and by several at once.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when a table of that name exists and differs, or a permission is missing;
    /// [`StoreError::Unavailable`] when the table did not become ready in time.
    pub async fn create_table(&self, options: TableOptions) -> Result<Creation> {
        let creation = self.request_table(options).await?;
        let table = self.wait_until_usable().await?;
        self.check_keys(&table)?;
        self.check_stream(&table, options)?;
        self.enable_ttl().await?;
        tracing::info!(table = self.store.table(), ?creation, "the table is ready");
        Ok(creation)
    }

    async fn request_table(&self, options: TableOptions) -> Result<Creation> {
        let mut retry = self.store.retry("create table");
        loop {
            let request = self
                .store
                .client
                .create_table()
                .table_name(self.store.table())
                .set_key_schema(Some(key_schema()))
                .set_attribute_definitions(Some(attribute_definitions()))
                .billing_mode(BillingMode::PayPerRequest)
                .set_stream_specification(options.stream.then(stream));
            let Err(error) = Box::pin(request.send()).await else {
                return Ok(Creation::Created);
            };
            if error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception)
            {
                return Ok(Creation::Existing);
            }
            retry.pause(self.store.writing("CreateTable").error(error)).await?;
        }
    }

    async fn wait_until_usable(&self) -> Result<TableDescription> {
        for looks in 1.. {
            // A table that was only just asked for may not be known everywhere yet.
            let found = self.describe().await?;
            if let Some(table) = found.as_ref().filter(|table| is_usable(table)) {
                return Ok(table.clone());
            }
            let environment = &self.store.environment;
            match TABLE_WAIT.wait(looks, environment.rng.as_ref()) {
                Some(wait) => environment.clock.sleep(wait).await,
                None if found.is_none() => return Err(missing_table(&self.store.config.table)),
                None => break,
            }
        }
        Err(StoreError::Unavailable {
            operation: "create table",
            detail: format!("table {} did not become active in time", self.store.table()),
            cause: None,
        })
    }

    pub(super) fn check_stream(
        &self,
        table: &TableDescription,
        options: TableOptions,
    ) -> Result<()> {
        let both_images = table
            .stream_specification()
            .is_some_and(|found| found.stream_enabled() && *found == stream());
        if !options.stream || both_images {
            return Ok(());
        }
        Err(StoreError::misconfigured(
            format!("table {} exists without a stream of new and old images", self.store.table()),
            "turn the stream on (view type NEW_AND_OLD_IMAGES), or create a table of another name",
        ))
    }

    /// Turns TTL on where it is off.
    async fn enable_ttl(&self) -> Result<()> {
        let mut retry = self.store.retry("enable time to live");
        loop {
            if self.ttl_is_on().await? {
                return Ok(());
            }
            let specification = TimeToLiveSpecification::builder()
                .enabled(true)
                .attribute_name(EXP)
                .build()
                .expect("both members are set");
            let request = self
                .store
                .client
                .update_time_to_live()
                .table_name(self.store.table())
                .time_to_live_specification(specification);
            let Err(error) = Box::pin(request.send()).await else {
                return Ok(());
            };
            // Somebody else may have been faster: look again.
            if error.code() == Some("ValidationException") && self.ttl_is_on().await? {
                return Ok(());
            }
            retry.pause(self.store.writing("UpdateTimeToLive").error(error)).await?;
        }
    }

    /// Whether TTL works on `exp`.
    pub(super) async fn ttl_is_on(&self) -> Result<bool> {
        let Some(ttl) = self.describe_ttl().await? else {
            return Ok(false);
        };
        let table = self.store.table();
        match (ttl.time_to_live_status(), ttl.attribute_name()) {
            (Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling), Some(EXP)) => Ok(true),
            (Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling), other) => {
                let other = other.unwrap_or("no attribute");
                Err(StoreError::misconfigured(
                    format!("table {table} has its TTL on `{other}`, not on `{EXP}`"),
                    "turn that TTL off, wait an hour, and create the table again; or use another table",
                ))
            }
            (Some(TimeToLiveStatus::Disabling), _) => Err(StoreError::misconfigured(
                format!("table {table} is turning its TTL off"),
                "wait until that is done (up to an hour) and try again",
            )),
            _ => Ok(false),
        }
    }
}

fn stream() -> StreamSpecification {
    StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build()
        .expect("the one required member is set")
}
