//! The stream of a table, read through the SDK and delivered as Lambda would.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, TableOptions};
use millpond_lambda::functions::{PassedRange, Prepared, ranges};
use millpond_lambda::settings::Variables;
use millpond_lanes::Ground;
use millpond_sequencer::{Config, Sequencer};
use serde_json::{Map, Value, json};

use crate::cloud::{Cloud, REGION};

fn attribute(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::B(bytes) => json!({ "B": STANDARD.encode(bytes.as_ref()) }),
        other => panic!("Millpond stores no {other:?}"),
    }
}

fn image(attributes: Option<&std::collections::HashMap<String, AttributeValue>>) -> Value {
    let attributes = attributes.into_iter().flatten();
    Value::Object(attributes.map(|(name, value)| (name.clone(), attribute(value))).collect())
}

/// A record as Lambda delivers it.
fn delivered(record: &Record, arn: &str) -> Value {
    let change = record.dynamodb().unwrap();
    let mut dynamodb = Map::new();
    // Moto encodes binary keys twice (5.2.5), and the same attributes of the images once: these are right.
    let mut keys = image(change.new_image().or(change.old_image()));
    keys.as_object_mut().unwrap().retain(|name, _| change.keys().unwrap().contains_key(name));
    dynamodb.insert("Keys".into(), keys);
    if change.new_image().is_some() {
        dynamodb.insert("NewImage".into(), image(change.new_image()));
    }
    if change.old_image().is_some() {
        dynamodb.insert("OldImage".into(), image(change.old_image()));
    }
    dynamodb.insert("SequenceNumber".into(), change.sequence_number().unwrap().into());
    dynamodb.insert("StreamViewType".into(), change.stream_view_type().unwrap().as_str().into());
    json!({
        "eventID": record.event_id().unwrap(), "eventName": record.event_name().unwrap().as_str(),
        "eventSource": "aws:dynamodb", "awsRegion": REGION, "eventSourceARN": arn,
        "dynamodb": dynamodb,
    })
}

async fn event_of(cloud: &Cloud, table: &str) -> Value {
    let client = aws_sdk_dynamodbstreams::Client::new(&cloud.config);
    let streams = client.list_streams().table_name(table).send().await.unwrap();
    let arn = streams.streams()[0].stream_arn().unwrap().to_owned();
    let described = client.describe_stream().stream_arn(&arn).send().await.unwrap();
    let mut records = Vec::new();
    for shard in described.stream_description().unwrap().shards() {
        let iterator = client
            .get_shard_iterator()
            .stream_arn(&arn)
            .shard_id(shard.shard_id().unwrap())
            .shard_iterator_type(ShardIteratorType::TrimHorizon)
            .send()
            .await
            .unwrap();
        let mut next = iterator.shard_iterator().map(str::to_owned);
        while let Some(iterator) = next {
            let page = client.get_records().shard_iterator(iterator).send().await.unwrap();
            if page.records().is_empty() {
                break;
            }
            records.extend(page.records().iter().map(|record| delivered(record, &arn)));
            next = page.next_shard_iterator().map(str::to_owned);
        }
    }
    json!({ "Records": records })
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn the_stream_of_a_sequencers_table_tells_each_range_once_in_order() {
    let cloud = Cloud::connect().await;
    let table = cloud.name("table");
    let config = DynamoDbConfig::new(table.as_str())
        .unwrap()
        .endpoint(&cloud.endpoint)
        .region(REGION)
        .credentials("test", "test");
    let store = DynamoDbStore::open(config, &cloud.environment).await.unwrap();
    store.admin().create_table(TableOptions { stream: true }).await.unwrap();
    let store = Arc::new(store);
    let ground = Ground::new(store.clone(), &cloud.environment);
    let sequencer =
        Sequencer::open(store, &cloud.environment, "orders", Config::default()).unwrap();
    for (queue, seq) in [("a", 1), ("b", 0), ("a", 0), ("a", 3), ("b", 1), ("a", 2)] {
        sequencer.put(queue, seq, format!("{queue}{seq}")).await.unwrap();
    }
    let event = event_of(&cloud, &table).await;
    let records = event["Records"].as_array().unwrap().len();
    assert!(records > 6, "items and cursors: {records}");

    let told = Arc::new(Mutex::new(Vec::new()));
    let variables =
        Variables::of([("MILLPOND_SEQUENCER", "orders"), ("MILLPOND_CONSUMER", "ranges")]);
    let prepared = Prepared::with(variables, &ground, cloud.aws());
    let consumer = ranges(&prepared, {
        let told = Arc::clone(&told);
        move |range: PassedRange, _| {
            told.lock().unwrap().push((range.queue, range.first, range.next));
            async {}
        }
    })
    .unwrap();
    let deadline = cloud.environment.now().plus(Duration::from_secs(60));
    let (answer, report) = consumer.handle(event.to_string().as_bytes(), deadline).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[]}"#, "{report:?}");
    let told = told.lock().unwrap();
    let of = |queue: &str| -> Vec<(u64, u64)> {
        let own = told.iter().filter(|(name, ..)| name == queue);
        own.map(|(_, first, next)| (*first, *next)).collect()
    };
    for (queue, end) in [("a", 4), ("b", 2)] {
        let mut at = 0;
        for (first, next) in of(queue) {
            assert_eq!(first, at, "{queue}: each begins where the former ended");
            at = next;
        }
        assert_eq!(at, end, "{queue}");
    }
}
