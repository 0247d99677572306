//! A store whose requests are spans of the request that they are made for.

use std::sync::Arc;

use async_trait::async_trait;
use millpond_store::{
    ChangeHint, Item, Key, Page, Partition, Profile, Query, Result, Store, StoreError, Write,
};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanKind, Status};

use super::request::Traced;

/// A store under watch. What background tasks ask of it, such as those that store messages of many requests together,
/// belongs to no request and has no spans.
#[derive(Debug)]
pub struct TracedStore {
    below: Arc<dyn Store>,
    /// What conventions call it.
    system: &'static str,
    kind: SpanKind,
}

impl TracedStore {
    /// A store in this process.
    pub fn embedded(below: Arc<dyn Store>) -> Self {
        Self { below, system: "millpond", kind: SpanKind::Internal }
    }

    /// A store that is asked over the network.
    pub fn dynamodb(below: Arc<dyn Store>) -> Self {
        Self { below, system: "aws.dynamodb", kind: SpanKind::Client }
    }

    async fn watched<T>(
        &self,
        (name, operation): (&'static str, &'static str),
        writes: Option<usize>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(mut span) = Traced::store_span(name, self.kind.clone()) else { return work.await };
        span.set_attribute(KeyValue::new("db.system.name", self.system));
        span.set_attribute(KeyValue::new("db.operation.name", operation));
        if let Some(writes) = writes.and_then(|writes| i64::try_from(writes).ok()) {
            span.set_attribute(KeyValue::new("db.operation.batch.size", writes));
        }
        let outcome = work.await;
        match &outcome {
            Ok(_) => {}
            // Somebody else was quicker, which is no failure.
            Err(StoreError::Conflict(_)) => {
                span.set_attribute(KeyValue::new("error.type", "conflict"));
            }
            Err(_) => {
                span.set_attribute(KeyValue::new("error.type", "store"));
                span.set_status(Status::error(""));
            }
        }
        span.end();
        outcome
    }
}

#[async_trait]
impl Store for TracedStore {
    fn profile(&self) -> Profile {
        self.below.profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.watched(("store get", "get"), None, self.below.get(key)).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.watched(("store query", "query"), None, self.below.query(query)).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        self.watched(("store write", "write"), None, self.below.write(write)).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        let count = Some(writes.len());
        self.watched(("store write_all", "write_all"), count, self.below.write_all(writes)).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        let count = Some(writes.len());
        self.watched(("store write_each", "write_each"), count, self.below.write_each(writes)).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.below.changed(partition)
    }
}
