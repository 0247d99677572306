//! Commands that ask AWS, against the emulator moto.
//!
//! `cargo xtask moto --run -- cargo test --workspace --test moto -- --ignored`
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

use std::process::{Command, Output};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_sdk_kinesis::primitives::Blob;
use millpond_consumer::{Consumer, Message, Outcome, StoreState};
use millpond_lambda::{Aws, KinesisSink, SqsSink};
use millpond_store::{Environment, MemoryStore};
use serde_json::{Value, json};
use tempfile::TempDir;

const REGION: &str = "eu-central-1";
const ACCOUNT: &str = "123456789012";

/// The emulator, and a directory to run commands in.
struct Cloud {
    endpoint: String,
    config: SdkConfig,
    environment: Environment,
    unique: u64,
    directory: TempDir,
}

impl Cloud {
    async fn connect() -> Self {
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
        Self { endpoint, config, environment, unique, directory: TempDir::new().unwrap() }
    }

    fn aws(&self) -> Aws {
        Aws::with(self.config.clone(), &self.environment)
    }

    fn name(&self, name: &str) -> String {
        format!("{name}-{:016x}", self.unique)
    }

    fn kinesis(&self) -> aws_sdk_kinesis::Client {
        aws_sdk_kinesis::Client::new(&self.config)
    }

    /// A stream with so many shards; its name.
    async fn stream(&self, name: &str, shards: i32) -> String {
        let name = self.name(name);
        let create = self.kinesis().create_stream().stream_name(&name).shard_count(shards);
        create.send().await.unwrap();
        name
    }

    /// A queue; its URL.
    async fn queue(&self, name: &str) -> String {
        let client = aws_sdk_sqs::Client::new(&self.config);
        let made = client.create_queue().queue_name(self.name(name)).send().await.unwrap();
        made.queue_url().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_millpond"))
            .current_dir(self.directory.path())
            .args(arguments)
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env_remove("MILLPOND_STORE")
            .env_remove("MILLPOND_OBJECTS")
            .output()
            .unwrap()
    }

    /// What a command prints that must succeed.
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let printed = self.good(&arguments);
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs a consumer over messages of which all are dead, with their letters in a sink.
    async fn bury(&self, sink: impl millpond_consumer::Sink + Clone, messages: &[&str]) {
        let store = std::sync::Arc::new(MemoryStore::new(&self.environment));
        let consumer = Consumer::builder("billing")
            .state(StoreState::new(store, &self.environment))
            .dead_letters(sink)
            .one("judge", |_: Message| async { Outcome::reject("it is bad") })
            .build()
            .unwrap();
        let record = |body: &&str| {
            json!({
                "messageId": body, "body": format!("{body:?}"), "eventSource": "aws:sqs",
                "eventSourceARN": format!("arn:aws:sqs:{REGION}:{ACCOUNT}:orders"),
                "attributes": {"ApproximateReceiveCount": "1"},
            })
        };
        let event = json!({ "Records": messages.iter().map(record).collect::<Vec<_>>() });
        let deadline = self.environment.now().plus(Duration::from_secs(30));
        let handled = Box::pin(consumer.handle(event.to_string().as_bytes(), deadline)).await;
        assert!(handled.unwrap().1.is_complete());
    }

    /// What is in a stream.
    async fn data_of(&self, stream: &str) -> Vec<String> {
        let client = self.kinesis();
        let mut data = Vec::new();
        let listed = client.list_shards().stream_name(stream).send().await.unwrap();
        for shard in listed.shards() {
            let iterator = client
                .get_shard_iterator()
                .stream_name(stream)
                .shard_id(shard.shard_id())
                .shard_iterator_type(aws_sdk_kinesis::types::ShardIteratorType::TrimHorizon)
                .send()
                .await
                .unwrap();
            let read = client.get_records().set_shard_iterator(iterator.shard_iterator);
            for record in read.send().await.unwrap().records() {
                data.push(String::from_utf8(record.data().as_ref().to_vec()).unwrap());
            }
        }
        data.sort();
        data
    }
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn letters_in_sqs_are_listed_and_brought_back_by_commands() {
    let cloud = Cloud::connect().await;
    let (dead, back) = (cloud.queue("dead").await, cloud.stream("back", 1).await);
    cloud.bury(SqsSink::new(&cloud.aws(), &dead), &["a", "b"]).await;
    let (from, to) = (format!("sqs:{dead}"), format!("kinesis:{back}"));
    // Without any store, and as often as one likes.
    for _ in 0..2 {
        let letters = cloud.json(&["consumer", "letters", "--from", &from]);
        assert_eq!(letters.len(), 2, "{letters:?}");
        assert_eq!(
            (&letters[0]["reason"], &letters[0]["consumer"]),
            (&json!("rejected"), &json!("billing"))
        );
    }
    let nothing = ["consumer", "redrive", "--from", &from, "--to", &to, "--reason", "expired"];
    let nothing = cloud.json(&nothing).remove(0);
    assert_eq!((&nothing["sent"], &nothing["skipped"]), (&json!(0), &json!(2)));
    let done = cloud.json(&["consumer", "redrive", "--from", &from, "--to", &to]).remove(0);
    assert_eq!((&done["sent"], &done["failed"]), (&json!(2), &json!(0)), "{done}");
    assert!(cloud.json(&["consumer", "letters", "--from", &from]).is_empty());
    assert_eq!(cloud.data_of(&back).await, [r#""a""#, r#""b""#]);
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn letters_in_kinesis_are_listed_and_brought_back_by_commands() {
    let cloud = Cloud::connect().await;
    let dead = cloud.stream("dead", 2).await;
    cloud.bury(KinesisSink::new(&cloud.aws(), &dead), &["a", "b", "c", "d", "e"]).await;
    cloud.good(&["store", "create"]);
    cloud.good(&["queue", "create", "again"]);
    let from = format!("kinesis:{dead}");
    let letters = cloud.json(&["consumer", "letters", "--from", &from]);
    assert_eq!(letters.len(), 5, "{letters:?}");
    let shard = letters[0]["shard"].as_str().unwrap();
    let redrive = ["consumer", "redrive", "--from", &from, "--to-queue", "again"];
    let one: Vec<&str> = redrive.iter().copied().chain(["--shard", shard, "--max", "1"]).collect();
    let done = cloud.json(&one).remove(0);
    assert_eq!(done["sent"], 1, "{done}");
    let after = done["shards"][0]["after"].as_str().unwrap();
    assert_eq!(letters[0]["sequence"], after);
    let rest: Vec<&str> =
        redrive.iter().copied().chain(["--shard", shard, "--after", after]).collect();
    let rest = cloud.json(&rest).remove(0);
    let here = letters.iter().filter(|letter| letter["shard"] == shard).count();
    assert_eq!(rest["sent"], here - 1, "{rest}");
    // For people, all shards, each with where to go on.
    let table = cloud.good(&redrive);
    assert_eq!(table.matches("shardId-").count(), 2, "{table}");
    let count: Value = cloud.json(&["queue", "count", "again"]).remove(0);
    assert_eq!(count["available"], here + 5, "{count}");
}

/// An empty zip archive: the emulator does not run the function.
const CODE: [u8; 22] = [0x50, 0x4b, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn a_mapping_that_was_disabled_is_enabled_by_a_command() {
    let cloud = Cloud::connect().await;
    let stream = cloud.stream("source", 1).await;
    let source = format!("arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/{stream}");
    let lambda = aws_sdk_lambda::Client::new(&cloud.config);
    let function = lambda
        .create_function()
        .function_name(cloud.name("function"))
        .role(role(&cloud).await)
        .runtime(aws_sdk_lambda::types::Runtime::Providedal2023)
        .handler("bootstrap")
        .code(aws_sdk_lambda::types::FunctionCode::builder().zip_file(Blob::new(CODE)).build())
        .send()
        .await
        .unwrap();
    let function = function.function_arn().unwrap();
    let made = lambda
        .create_event_source_mapping()
        .event_source_arn(&source)
        .function_name(function)
        .starting_position(aws_sdk_lambda::types::EventSourcePosition::TrimHorizon)
        .send()
        .await
        .unwrap();
    let uuid = made.uuid().unwrap();
    let by_id = ["consumer", "enable", "--mapping", uuid];
    let by_ends = ["consumer", "enable", "--function", function, "--source", &source];
    for enable in [&by_id[..], &by_ends] {
        let disabled = lambda.update_event_source_mapping().uuid(uuid).enabled(false);
        disabled.send().await.unwrap();
        let enabled = cloud.json(enable).remove(0);
        assert_eq!((&enabled["mapping"], &enabled["source"]), (&json!(uuid), &json!(source)));
        let found = lambda.get_event_source_mapping().uuid(uuid).send().await.unwrap();
        assert!(found.state().unwrap().starts_with("Enab"), "{found:?}");
    }
    let nowhere = cloud.run(&["consumer", "enable", "--function", function, "--source", "arn:x"]);
    let said = String::from_utf8(nowhere.stderr).unwrap();
    assert!(nowhere.status.code() == Some(3) && said.contains("exactly that source"), "{said}");
}

/// Makes a role by a plain request: a client of IAM for this alone would be a large dependency.
async fn role(cloud: &Cloud) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let name = cloud.name("role");
    let body = format!(
        "Action=CreateRole&Version=2010-05-08&RoleName={name}&AssumeRolePolicyDocument=%7B%7D"
    );
    let address = cloud.endpoint.trim_start_matches("http://");
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/iam/aws4_request, \
         SignedHeaders=host, Signature=00\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    format!("arn:aws:iam::{ACCOUNT}:role/{name}")
}
