//! Making, checking and deleting the table.

use crate::support::proxy::{Fault, error_body};
use crate::support::{Setup, key};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use millpond_dynamodb::{Creation, Finding, Role, TableOptions};
use millpond_store::{Expect, Query, SortRange, Store as _, StoreError};
use serde_json::json;

const PLAIN: TableOptions = TableOptions { stream: false };
const STREAM: TableOptions = TableOptions { stream: true };

/// The SDK's own client on the setup's engine, for what the store does not offer.
fn client(setup: &Setup) -> aws_sdk_dynamodb::Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version_latest()
        .endpoint_url(setup.proxy.endpoint())
        .region(aws_sdk_dynamodb::config::Region::new("eu-central-1"))
        .credentials_provider(aws_credential_types::Credentials::new("t", "t", None, None, "t"))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

/// Makes a table with these keys: name, role, type.
async fn make(setup: &Setup, keys: &[(&str, KeyType, ScalarAttributeType)]) {
    let mut request = client(setup).create_table().table_name("things");
    for (name, role, kind) in keys {
        let element = KeySchemaElement::builder().attribute_name(*name).key_type(role.clone());
        let definition =
            AttributeDefinition::builder().attribute_name(*name).attribute_type(kind.clone());
        request = request
            .key_schema(element.build().unwrap())
            .attribute_definitions(definition.build().unwrap());
    }
    request.billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
}

fn misconfigured(error: StoreError) -> (String, String) {
    match error {
        StoreError::Misconfigured { problem, remedy } => (problem, remedy),
        other => panic!("expected a wrong set-up, got {other:?}"),
    }
}

#[tokio::test]
async fn a_table_is_made_once_and_verified_after() {
    let setup = Setup::without_table(|config| config).await;
    let admin = setup.store.admin();
    assert_eq!(admin.create_table(STREAM).await.unwrap(), Creation::Created);
    assert_eq!(admin.create_table(STREAM).await.unwrap(), Creation::Existing);
    assert_eq!(admin.create_table(PLAIN).await.unwrap(), Creation::Existing);

    let client = client(&setup);
    let ttl = client.describe_time_to_live().table_name("things").send().await.unwrap();
    let ttl = ttl.time_to_live_description.unwrap();
    assert_eq!(ttl.attribute_name(), Some("exp"));
    assert_eq!(ttl.time_to_live_status().unwrap().as_str(), "ENABLED");
    let table = client.describe_table().table_name("things").send().await.unwrap().table.unwrap();
    assert_eq!(
        table.billing_mode_summary().unwrap().billing_mode(),
        Some(&BillingMode::PayPerRequest)
    );
    let stream = table.stream_specification().unwrap();
    assert_eq!(stream.stream_view_type().unwrap().as_str(), "NEW_AND_OLD_IMAGES");

    for role in [Role::Producer, Role::Consumer, Role::Admin] {
        let report = admin.verify(role, STREAM).await.unwrap();
        assert!(report.is_good(), "{report}");
        report.require().unwrap();
        assert!(report.to_string().contains("ok      permission dynamodb:Query"), "{report}");
    }
    assert!(setup.stored("millpond/verify").await.is_empty(), "verifying left something behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_may_make_the_table_at_once() {
    let setup = Setup::without_table(|config| config).await;
    let makers: Vec<_> = (0..8)
        .map(|_| {
            let admin = setup.store.admin();
            tokio::spawn(async move { admin.create_table(PLAIN).await })
        })
        .collect();
    let mut created = 0;
    for maker in makers {
        created += usize::from(maker.await.unwrap().unwrap() == Creation::Created);
    }
    assert_eq!(created, 1);
    assert!(setup.store.admin().verify(Role::Admin, PLAIN).await.unwrap().is_good());
}

#[tokio::test]
async fn making_a_table_waits_and_survives_failures() {
    let setup = Setup::without_table(|config| config).await;
    let creating = json!({ "Table": { "TableName": "things", "TableStatus": "CREATING" } });
    setup.faults([
        Fault::error(400, "LimitExceededException"),
        Fault::ForwardThenAnswer(500, error_body("InternalServerError")),
        // It exists by now; describing it finds nothing at first, then a table in the making.
        Fault::None,
        Fault::error(400, "ResourceNotFoundException"),
        Fault::Answer(200, creating),
    ]);
    assert_eq!(setup.store.admin().create_table(PLAIN).await.unwrap(), Creation::Existing);
    assert_eq!(setup.proxy.left(), 0);
    let asked = setup.proxy.actions();
    assert_eq!(asked.iter().filter(|action| *action == "DescribeTable").count(), 3, "{asked:?}");
}

#[tokio::test]
async fn a_missing_table_is_named_with_the_remedy() {
    let setup = Setup::without_table(|config| config).await;
    let write = setup.put(&key("a"), 1, Expect::Absent);
    let errors = [
        setup.store.get(&key("a")).await.unwrap_err(),
        setup.store.query(Query::new(key("a").partition)).await.unwrap_err(),
        setup.store.write(write.clone()).await.unwrap_err(),
        setup.store.write_all(vec![write, setup.put(&key("b"), 1, Expect::Any)]).await.unwrap_err(),
        setup.store.admin().verify(Role::Producer, PLAIN).await.unwrap_err(),
    ];
    for error in errors {
        let (problem, remedy) = misconfigured(error);
        assert!(problem.contains("table things does not exist"), "{problem}");
        assert!(remedy.contains("create_table"), "{remedy}");
    }
    let gone = setup.store.admin().delete_table("things").await.unwrap_err();
    assert!(matches!(gone, StoreError::NotFound { .. }), "{gone:?}");
}

#[tokio::test]
async fn another_schema_is_refused_and_named() {
    let other_name = [("id", KeyType::Hash, ScalarAttributeType::S)];
    let other_type = [
        ("pk", KeyType::Hash, ScalarAttributeType::S),
        ("sk", KeyType::Range, ScalarAttributeType::S),
    ];
    for (keys, named) in [(&other_name[..], "`id` (S)"), (&other_type[..], "`sk` (S)")] {
        let setup = Setup::without_table(|config| config).await;
        make(&setup, keys).await;
        let verified = setup.store.admin().verify(Role::Admin, PLAIN).await.unwrap_err();
        let created = setup.store.admin().create_table(PLAIN).await.unwrap_err();
        for error in [verified, created] {
            let (problem, _) = misconfigured(error);
            assert!(problem.contains("another schema") && problem.contains(named), "{problem}");
        }
        let write = setup.put(&key("a"), 1, Expect::Absent);
        let query = Query::new(key("a").partition).range(SortRange::from(key("a").sort));
        for error in [
            setup.store.get(&key("a")).await.unwrap_err(),
            setup.store.query(query).await.unwrap_err(),
            setup.store.write(write).await.unwrap_err(),
        ] {
            let (problem, _) = misconfigured(error);
            assert!(problem.contains("another schema"), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_table_without_ttl_or_stream_fails_its_check_and_creation_adds_the_ttl() {
    let setup = Setup::without_table(|config| config).await;
    let keys = [
        ("pk", KeyType::Hash, ScalarAttributeType::S),
        ("sk", KeyType::Range, ScalarAttributeType::B),
    ];
    make(&setup, &keys).await;
    let admin = setup.store.admin();
    let report = admin.verify(Role::Consumer, STREAM).await.unwrap();
    let failed: Vec<_> = report
        .checks
        .iter()
        .filter(|check| check.finding != Finding::Passed)
        .map(|check| check.what.as_str())
        .collect();
    assert_eq!(failed, ["TTL on `exp`", "stream"]);
    let (problem, remedy) = misconfigured(report.require().unwrap_err());
    assert!(problem.contains("no TTL") && remedy.contains("`exp`"), "{problem}; {remedy}");

    let (problem, _) = misconfigured(admin.create_table(STREAM).await.unwrap_err());
    assert!(problem.contains("without a stream"), "{problem}");
    assert_eq!(admin.create_table(PLAIN).await.unwrap(), Creation::Existing);
    assert!(admin.verify(Role::Consumer, PLAIN).await.unwrap().is_good());
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let setup = Setup::new().await;
    let denied = || Fault::error(400, "AccessDeniedException");
    setup.faults([denied()]);
    let (problem, remedy) = misconfigured(setup.store.get(&key("a")).await.unwrap_err());
    assert!(problem.contains("GetItem on table things"), "{problem}");
    assert!(remedy.contains("dynamodb:GetItem"), "{remedy}");
    setup.faults([Fault::error(400, "UnrecognizedClientException")]);
    let (problem, _) = misconfigured(setup.store.get(&key("a")).await.unwrap_err());
    assert!(problem.contains("credentials are not accepted"), "{problem}");
    setup.faults([Fault::error(400, "ExpiredTokenException")]);
    let (problem, _) = misconfigured(setup.store.get(&key("a")).await.unwrap_err());
    assert!(problem.contains("expired"), "{problem}");

    // Describing is allowed, each probe of an action is not.
    let probes = Role::Consumer.data_actions();
    setup.faults([Fault::None, Fault::None]);
    setup.faults(probes.iter().map(|_| denied()));
    let report = setup.store.admin().verify(Role::Consumer, PLAIN).await.unwrap();
    assert_eq!(setup.proxy.left(), 0);
    for action in probes {
        let what = format!("permission dynamodb:{action}");
        let check = report.checks.iter().find(|check| check.what == what).unwrap();
        assert!(
            matches!(&check.finding, Finding::Failed { remedy, .. } if remedy.contains(action))
        );
    }
}

#[tokio::test]
async fn a_table_is_deleted_only_by_its_name() {
    let setup = Setup::new().await;
    let admin = setup.store.admin();
    let error = admin.delete_table("thing").await.unwrap_err();
    assert!(error.to_string().contains("nothing was deleted"), "{error}");
    assert!(setup.proxy.actions().is_empty());
    setup.faults([Fault::ForwardThenAnswer(500, error_body("InternalServerError"))]);
    admin.delete_table("things").await.unwrap();
    misconfigured(setup.store.get(&key("a")).await.unwrap_err());
}
