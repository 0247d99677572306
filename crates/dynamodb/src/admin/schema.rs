//! What the table must look like, and asking what it looks like.

use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription,
    TableStatus, TimeToLiveDescription,
};
use millpond_store::Result;

use super::DynamoDbAdmin;
use crate::failure::wrong_schema;
use crate::item::{PK, SK};

const SET: &str = "every member is set";

/// The keys: `pk` is the partition key, `sk` the sort key.
pub(super) fn key_schema() -> Vec<KeySchemaElement> {
    [(PK, KeyType::Hash), (SK, KeyType::Range)]
        .into_iter()
        .map(|(name, kind)| {
            let element = KeySchemaElement::builder().attribute_name(name).key_type(kind);
            element.build().expect(SET)
        })
        .collect()
}

/// Their types: text and bytes.
pub(super) fn attribute_definitions() -> Vec<AttributeDefinition> {
    [(PK, ScalarAttributeType::S), (SK, ScalarAttributeType::B)]
        .into_iter()
        .map(|(name, kind)| {
            let definition =
                AttributeDefinition::builder().attribute_name(name).attribute_type(kind);
            definition.build().expect(SET)
        })
        .collect()
}

/// How a table's keys differ from ours, if they do.
pub(super) fn difference(table: &TableDescription) -> Option<String> {
    let found: Vec<String> = table
        .key_schema()
        .iter()
        .map(|key| {
            let name = key.attribute_name();
            let definitions = table.attribute_definitions();
            let definition = definitions.iter().find(|known| known.attribute_name() == name);
            let kind = definition.map_or("?", |known| known.attribute_type().as_str());
            format!("{} key `{name}` ({kind})", key.key_type().as_str())
        })
        .collect();
    let wanted = [format!("HASH key `{PK}` (S)"), format!("RANGE key `{SK}` (B)")];
    (found != wanted)
        .then(|| format!("it has {}, not {}", found.join(" and "), wanted.join(" and ")))
}

impl DynamoDbAdmin {
    /// The table; nothing when it does not exist.
    pub(super) async fn describe(&self) -> Result<Option<TableDescription>> {
        let mut retry = self.store.retry("describe table");
        loop {
            let request = self.store.client.describe_table().table_name(self.store.table());
            let error = match Box::pin(request.send()).await {
                Ok(answer) => return Ok(answer.table),
                Err(error) => error,
            };
            if error
                .as_service_error()
                .is_some_and(DescribeTableError::is_resource_not_found_exception)
            {
                return Ok(None);
            }
            retry.pause(self.store.reading("DescribeTable").error(error)).await?;
        }
    }

    /// The table's TTL setting.
    pub(super) async fn describe_ttl(&self) -> Result<Option<TimeToLiveDescription>> {
        let mut retry = self.store.retry("describe time to live");
        loop {
            let request = self.store.client.describe_time_to_live().table_name(self.store.table());
            match Box::pin(request.send()).await {
                Ok(answer) => return Ok(answer.time_to_live_description),
                Err(error) => {
                    let error = self.store.reading("DescribeTimeToLive").error(error);
                    retry.pause(error).await?;
                }
            }
        }
    }

    /// Refuses a table with other keys.
    pub(super) fn check_keys(&self, table: &TableDescription) -> Result<()> {
        match difference(table) {
            Some(difference) => Err(wrong_schema(&self.store.config.table, &difference)),
            None => Ok(()),
        }
    }
}

/// Whether the table can be used: also while it is being changed.
pub(super) fn is_usable(table: &TableDescription) -> bool {
    matches!(table.table_status(), Some(TableStatus::Active | TableStatus::Updating))
}
