//! Reading: one item, or a page of a range.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use millpond_store::limits::{PAGE_BYTES_MAX, PAGE_ITEMS_MAX, SORT_KEY_BYTES_MAX};
use millpond_store::{
    Consistency, Direction, Item, Key, Operation, Page, Partition, Query, Result, SortKey,
    SortRange,
};

use crate::capacity;
use crate::failure::Effect;
use crate::item::{PK, Row, SK, decode, decode_key, encode_key, partition_value, sort_value};
use crate::limits::SERVICE_PAGES_MAX;
use crate::store::DynamoDbStore;

impl DynamoDbStore {
    /// [`millpond_store::Store::get`].
    pub(crate) async fn get_item(&self, key: &Key) -> Result<Option<Item>> {
        let now = self.now();
        let mut retry = self.retry("get");
        let item = loop {
            match self.get_once(key).await {
                Ok(item) => break item,
                Err(error) => retry.pause(error).await?,
            }
        };
        Ok(item.filter(|item| item.is_live(now)))
    }

    async fn get_once(&self, key: &Key) -> Result<Option<Item>> {
        let request = self
            .client
            .get_item()
            .table_name(self.table())
            .set_key(Some(encode_key(key)))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = match Box::pin(request.send()).await {
            Ok(answer) => answer,
            Err(error) => {
                capacity::record_failed(self.meter(), Operation::Get);
                return Err(self.reading("GetItem").error(error));
            }
        };
        let consumed = answer.consumed_capacity.as_ref();
        let item = answer.item.map(decode).transpose();
        let bytes = item.as_ref().map_or(0, |item| item.as_ref().map_or(0, Item::size));
        capacity::record(self.meter(), Operation::Get, Effect::Read, bytes, consumed);
        item
    }

    /// [`millpond_store::Store::query`]. Expired items are left out here, so a service page may give less than
    /// was asked for, or nothing: then the next one is read, up to a bound.
    pub(crate) async fn query_page(&self, query: Query) -> Result<Page> {
        query.check()?;
        let now = self.now();
        let mut items: Vec<Item> = Vec::new();
        let mut bytes = 0;
        let mut rest = query;
        // What is asked for is what is missing. Where much has expired, more is asked for each time, so that
        // a small limit does not crawl.
        let mut ask = rest.limit;
        for _ in 0..SERVICE_PAGES_MAX {
            let range = rest.remaining();
            if range.is_empty() {
                return Ok(Page { items, next: None });
            }
            let answer = self.service_page(&rest, &range, ask).await?;
            let last = answer.last_evaluated_key.as_ref().map(decode_key).transpose()?;
            for row in answer.items.unwrap_or_default() {
                let item = decode(row)?;
                if !item.is_live(now) {
                    continue;
                }
                if items.len() == rest.limit {
                    // More came than fits: go on behind the last one taken.
                    let next = items.last().map(|last| rest.after(last.key.sort.clone()));
                    return Ok(Page { items, next });
                }
                bytes += item.size();
                items.push(item);
            }
            let Some(last) = last else {
                return Ok(Page { items, next: None });
            };
            rest = rest.after(last.sort);
            if items.len() == rest.limit || bytes >= PAGE_BYTES_MAX {
                break;
            }
            ask = (ask * 2).max(rest.limit - items.len()).min(PAGE_ITEMS_MAX);
        }
        Ok(Page { items, next: Some(rest) })
    }

    async fn service_page(
        &self,
        query: &Query,
        range: &SortRange,
        limit: usize,
    ) -> Result<QueryOutput> {
        let mut retry = self.retry("query");
        loop {
            match self.service_page_once(query, range, limit).await {
                Ok(answer) => return Ok(answer),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    async fn service_page_once(
        &self,
        query: &Query,
        range: &SortRange,
        limit: usize,
    ) -> Result<QueryOutput> {
        let (condition, names, values) = key_condition(&query.partition, range);
        let request = self
            .client
            .query()
            .table_name(self.table())
            .key_condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .scan_index_forward(query.direction == Direction::Forward)
            .consistent_read(query.consistency == Consistency::Strong)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = match Box::pin(request.send()).await {
            Ok(answer) => answer,
            Err(error) => {
                capacity::record_failed(self.meter(), Operation::Query);
                return Err(self.reading("Query").error(error));
            }
        };
        let bytes = answer.items().iter().map(row_size).sum();
        let consumed = answer.consumed_capacity.as_ref();
        capacity::record(self.meter(), Operation::Query, Effect::Read, bytes, consumed);
        Ok(answer)
    }
}

/// A range in the service's words. Only one condition on the sort key is allowed, and the one with two ends
/// includes both: so the far end is lowered to the key just before it.
fn key_condition(
    partition: &Partition,
    range: &SortRange,
) -> (&'static str, HashMap<String, String>, Row) {
    let condition = match (&range.start, &range.end) {
        (None, None) => "#pk = :pk",
        (Some(_), None) => "#pk = :pk AND #sk >= :start",
        (None, Some(_)) => "#pk = :pk AND #sk < :end",
        (Some(_), Some(_)) => "#pk = :pk AND #sk BETWEEN :start AND :end",
    };
    let mut names = HashMap::from([("#pk".to_owned(), PK.to_owned())]);
    let mut values = HashMap::from([(":pk".to_owned(), partition_value(partition))]);
    if range.start.is_some() || range.end.is_some() {
        names.insert("#sk".to_owned(), SK.to_owned());
    }
    if let Some(start) = &range.start {
        values.insert(":start".to_owned(), sort_value(start.as_bytes()));
    }
    if let Some(end) = &range.end {
        let end = match range.start {
            Some(_) => sort_value(&predecessor(end)),
            None => sort_value(end.as_bytes()),
        };
        values.insert(":end".to_owned(), end);
    }
    (condition, names, values)
}

/// The greatest key before `sort`: without its last byte when that is zero, else with that byte lowered and
/// the longest possible tail. (Before the least key of all there is none; a range that ends there is empty.)
fn predecessor(sort: &SortKey) -> Vec<u8> {
    let mut bytes = sort.as_bytes().to_vec();
    if let Some(last) = bytes.pop()
        && let Some(lowered) = last.checked_sub(1)
    {
        bytes.push(lowered);
        bytes.resize(SORT_KEY_BYTES_MAX, u8::MAX);
    }
    bytes
}

/// What a row weighs: names and values, numbers by their digits.
fn row_size(row: &Row) -> usize {
    let value_size = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 1,
        AttributeValue::B(blob) => blob.as_ref().len(),
        _ => 0,
    };
    row.iter().map(|(name, value)| name.len() + value_size(value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(bytes: &[u8]) -> SortKey {
        SortKey::new(bytes.to_vec()).unwrap()
    }

    #[test]
    fn nothing_lies_between_a_key_and_its_predecessor() {
        assert_eq!(predecessor(&sort(b"ab\0")), b"ab");
        let before_b = predecessor(&sort(b"b"));
        assert_eq!(before_b.len(), SORT_KEY_BYTES_MAX);
        assert!(before_b.starts_with(b"a\xff") && before_b.ends_with(b"\xff"));
        let mut full = vec![7; SORT_KEY_BYTES_MAX];
        full[SORT_KEY_BYTES_MAX - 1] = 5;
        let before = predecessor(&sort(&full));
        assert_eq!((before.len(), before[SORT_KEY_BYTES_MAX - 1]), (SORT_KEY_BYTES_MAX, 4));
    }

    #[test]
    fn names_and_values_are_only_those_that_are_mentioned() {
        let partition = Partition::new("p").unwrap();
        let ranges = [
            SortRange::all(),
            SortRange::from(sort(b"a")),
            SortRange::to(sort(b"b")),
            SortRange::between(sort(b"a"), sort(b"b")),
        ];
        for range in ranges {
            let (text, names, values) = key_condition(&partition, &range);
            for mark in ["#pk", "#sk"] {
                assert_eq!(text.contains(mark), names.contains_key(mark), "{text}");
            }
            for mark in [":pk", ":start", ":end"] {
                assert_eq!(text.contains(mark), values.contains_key(mark), "{text}");
            }
        }
    }
}
