//! The emulator, and clients of it.

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use millpond_lambda::Aws;
use millpond_store::Environment;
use serde_json::{Value, json};

use crate::support::events::kinesis_record;

pub const REGION: &str = "eu-central-1";
pub const ACCOUNT: &str = "123456789012";

/// The emulator that `cargo xtask moto` has started.
pub struct Cloud {
    pub endpoint: String,
    pub config: SdkConfig,
    pub environment: Environment,
    /// Makes names that no other test uses.
    unique: u64,
}

impl Cloud {
    pub async fn connect() -> Self {
        let endpoint = std::env::var("MILLPOND_MOTO")
            .expect("MILLPOND_MOTO is not set: run `cargo xtask moto --run -- cargo test …`");
        let config = aws_config::defaults(BehaviorVersion::latest())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .region(Region::new(REGION))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(&endpoint)
            .load()
            .await;
        let environment = Environment::system();
        let unique = environment.rng.next_u64();
        Self { endpoint, config, environment, unique }
    }

    pub fn aws(&self) -> Aws {
        Aws::with(self.config.clone(), &self.environment)
    }

    pub fn name(&self, name: &str) -> String {
        format!("{name}-{:016x}", self.unique)
    }

    pub fn kinesis(&self) -> aws_sdk_kinesis::Client {
        aws_sdk_kinesis::Client::new(&self.config)
    }

    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.config)
    }

    /// A stream with one shard; its name and ARN.
    pub async fn stream(&self, name: &str) -> (String, String) {
        let (name, client) = (self.name(name), self.kinesis());
        client.create_stream().stream_name(&name).shard_count(1).send().await.unwrap();
        let arn = format!("arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/{name}");
        (name, arn)
    }

    /// The records of a stream, as an event of Lambda.
    pub async fn event_of(&self, name: &str, arn: &str) -> Value {
        let records = self.records_of(name).await;
        let record = |record: &aws_sdk_kinesis::types::Record| {
            let data = record.data().as_ref();
            kinesis_record(arn, record.sequence_number(), record.partition_key().unwrap(), data)
        };
        json!({ "Records": records.iter().map(record).collect::<Vec<_>>() })
    }

    pub async fn records_of(&self, name: &str) -> Vec<aws_sdk_kinesis::types::Record> {
        let client = self.kinesis();
        let stream = client.describe_stream().stream_name(name).send().await.unwrap();
        let shard = stream.stream_description().unwrap().shards()[0].shard_id().to_owned();
        let from = aws_sdk_kinesis::types::ShardIteratorType::TrimHorizon;
        let iterator = client.get_shard_iterator().stream_name(name).shard_id(shard);
        let iterator = iterator.shard_iterator_type(from).send().await.unwrap();
        let mut next = iterator.shard_iterator().map(str::to_owned);
        let mut found = Vec::new();
        while let Some(iterator) = next {
            let page = client.get_records().shard_iterator(iterator).send().await.unwrap();
            if page.records().is_empty() {
                break;
            }
            found.extend_from_slice(page.records());
            next = page.next_shard_iterator().map(str::to_owned);
        }
        found
    }

    /// A queue; its URL.
    pub async fn queue(&self, name: &str) -> String {
        let mut name = self.name(name);
        let mut create = self.sqs().create_queue();
        if name.contains("fifo") {
            name.push_str(".fifo");
            create = create
                .attributes(aws_sdk_sqs::types::QueueAttributeName::FifoQueue, "true")
                .attributes(aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout, "600");
        }
        let made = create.queue_name(name).send().await.unwrap();
        made.queue_url().unwrap().to_owned()
    }

    /// All messages of a queue: bodies and message groups.
    pub async fn messages_of(&self, url: &str) -> Vec<(String, Option<String>)> {
        let group = aws_sdk_sqs::types::MessageSystemAttributeName::MessageGroupId;
        let mut found = Vec::new();
        loop {
            let page = self
                .sqs()
                .receive_message()
                .queue_url(url)
                .max_number_of_messages(10)
                .visibility_timeout(600)
                .message_system_attribute_names(group.clone())
                .send()
                .await
                .unwrap();
            if page.messages().is_empty() {
                return found;
            }
            found.extend(page.messages().iter().map(|message| {
                let group = message.attributes().and_then(|all| all.get(&group)).cloned();
                (message.body().unwrap().to_owned(), group)
            }));
        }
    }
}
