//! The breaker against event source mappings of the emulator's Lambda.

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{EventSourcePosition, FunctionCode, Runtime};
use millpond_consumer::source::{Scope, SourceKind};
use millpond_consumer::{Breaker as _, BreakerError};
use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, TableOptions};
use millpond_lambda::{MappingBreaker, Mappings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::cloud::{ACCOUNT, Cloud, REGION};

/// An empty zip archive: the emulator does not run the function.
const CODE: [u8; 22] = [0x50, 0x4b, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Makes a role by a plain request: a client of IAM for this alone would be a large dependency.
async fn role(cloud: &Cloud) -> String {
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

async fn function(cloud: &Cloud, name: &str, role: &str) -> String {
    let client = aws_sdk_lambda::Client::new(&cloud.config);
    let made = client
        .create_function()
        .function_name(cloud.name(name))
        .role(role)
        .runtime(Runtime::Providedal2023)
        .handler("bootstrap")
        .code(FunctionCode::builder().zip_file(Blob::new(CODE)).build())
        .send()
        .await
        .unwrap();
    made.function_arn().unwrap().to_owned()
}

async fn map(cloud: &Cloud, source: &str, function: &str) {
    let client = aws_sdk_lambda::Client::new(&cloud.config);
    client
        .create_event_source_mapping()
        .event_source_arn(source)
        .function_name(function)
        .starting_position(EventSourcePosition::TrimHorizon)
        .enabled(true)
        .send()
        .await
        .unwrap();
}

async fn table_stream(cloud: &Cloud) -> String {
    let table = cloud.name("table");
    let config = DynamoDbConfig::new(table.as_str())
        .unwrap()
        .endpoint(&cloud.endpoint)
        .region(REGION)
        .credentials("test", "test");
    let store = DynamoDbStore::open(config, &cloud.environment).await.unwrap();
    store.admin().create_table(TableOptions { stream: true }).await.unwrap();
    let streams = aws_sdk_dynamodbstreams::Client::new(&cloud.config);
    let found = streams.list_streams().table_name(table).send().await.unwrap();
    found.streams()[0].stream_arn().unwrap().to_owned()
}

fn scope(kind: SourceKind, arn: &str) -> Scope {
    Scope { kind, arn: arn.to_owned(), shard: String::new() }
}

#[tokio::test]
#[ignore = "needs moto: `cargo xtask moto --run -- cargo test …`"]
async fn the_breaker_stops_its_own_mapping_and_no_other_and_it_can_be_started_again() {
    let cloud = Cloud::connect().await;
    let role = role(&cloud).await;
    let (own, other) =
        (function(&cloud, "own", &role).await, function(&cloud, "own-too", &role).await);
    let (_, stream) = cloud.stream("stream").await;
    let (_, longer) = cloud.stream("stream-archive").await;
    let table = table_stream(&cloud).await;
    for function in [&own, &other] {
        for source in [&longer, &stream, &table] {
            map(&cloud, source, function).await;
        }
    }
    let mappings = Mappings::new(&cloud.aws());
    let states = async || {
        let mut states = Vec::new();
        for function in [&own, &other] {
            for source in [&longer, &stream, &table] {
                let found = mappings.find(function, source).await.unwrap();
                assert_eq!(found.len(), 1, "{source} to {function}");
                states.push(found[0].state.starts_with("Enab"));
            }
        }
        states
    };
    assert_eq!(states().await, [true; 6]);

    let breaker = MappingBreaker::of(&cloud.aws(), &own);
    let stopped = breaker.trip(&scope(SourceKind::Kinesis, &stream), "no table").await.unwrap();
    assert_eq!(stopped, mappings.find(&own, &stream).await.unwrap()[0].uuid);
    assert_eq!(states().await, [true, false, true, true, true, true]);
    breaker.trip(&scope(SourceKind::DynamoDb, &table), "no table").await.unwrap();
    assert_eq!(states().await, [true, false, false, true, true, true]);

    let unknown = stream.replace("stream-", "another-");
    let error = breaker.trip(&scope(SourceKind::Kinesis, &unknown), "x").await.unwrap_err();
    assert_eq!(error, BreakerError::NotFound { arn: unknown });

    for source in [&stream, &table] {
        let found = mappings.find(&own, source).await.unwrap();
        mappings.enable(&found[0]).await.unwrap();
    }
    assert_eq!(states().await, [true; 6]);
}
