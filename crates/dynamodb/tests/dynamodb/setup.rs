//! What is missing from the surroundings is named. Each test runs itself again as a process of its own, whose
//! environment is empty but for what the test says.

use std::process::Command;

use crate::support::engine::Engine;
use crate::support::key;
use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, Role};
use millpond_store::{Environment, Store as _};

/// Set in the second process.
const AGAIN: &str = "MILLPOND_TEST_AGAIN";

/// Runs the test of this name again with this environment; false when this already is that process.
fn ran_again(test: &str, environment: &[(&str, &str)]) -> bool {
    if std::env::var_os(AGAIN).is_some() {
        return false;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("setup::{test}"), "--nocapture"])
        .env_clear()
        .envs([(AGAIN, "1"), ("AWS_EC2_METADATA_DISABLED", "true"), ("HOME", "nowhere")])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "the test did not run: {said}");
    true
}

#[tokio::test]
async fn missing_credentials_are_named() {
    if ran_again("missing_credentials_are_named", &[]) {
        return;
    }
    let engine = Engine::start().await;
    let config = DynamoDbConfig::new("things").unwrap();
    let config = config.endpoint(engine.endpoint()).region("eu-central-1");
    let store = DynamoDbStore::open(config, &Environment::system()).await.unwrap();
    let error = store.get(&key("a")).await.unwrap_err().to_string();
    assert!(error.contains("no credentials were found"), "{error}");
    assert!(error.contains("AWS_ACCESS_KEY_ID"), "{error}");
}

#[tokio::test]
async fn a_missing_region_is_named() {
    if ran_again("a_missing_region_is_named", &[]) {
        return;
    }
    let config = DynamoDbConfig::new("things").unwrap().credentials("test", "test");
    let error = DynamoDbStore::open(config, &Environment::system()).await.unwrap_err().to_string();
    assert!(error.contains("no region") && error.contains("AWS_REGION"), "{error}");
}

#[tokio::test]
async fn an_empty_endpoint_is_named() {
    let found = [("AWS_ENDPOINT_URL", ""), ("AWS_REGION", "eu-central-1")];
    if ran_again("an_empty_endpoint_is_named", &found) {
        return;
    }
    let config = DynamoDbConfig::new("things").unwrap().credentials("test", "test");
    let error = DynamoDbStore::open(config, &Environment::system()).await.unwrap_err().to_string();
    assert!(error.contains("AWS_ENDPOINT_URL is empty"), "{error}");
}

#[tokio::test]
async fn endpoint_region_and_credentials_come_from_the_environment() {
    let engine = Engine::start().await;
    let endpoint = engine.endpoint();
    let found = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ];
    let name = "endpoint_region_and_credentials_come_from_the_environment";
    let again = tokio::task::spawn_blocking({
        let found = found.map(|(name, value)| (name, value.to_owned()));
        move || ran_again(name, &found.each_ref().map(|(name, value)| (*name, value.as_str())))
    });
    if again.await.unwrap() {
        return;
    }
    let config = DynamoDbConfig::new("things").unwrap();
    let environment = Environment::system();
    let store = DynamoDbStore::open(config.clone(), &environment).await.unwrap();
    let missing = DynamoDbStore::open_verified(config.clone(), &environment, Role::Producer).await;
    assert!(missing.unwrap_err().to_string().contains("does not exist"));
    store.admin().create_table(millpond_dynamodb::TableOptions::default()).await.unwrap();
    DynamoDbStore::open_verified(config, &environment, Role::Producer).await.unwrap();
}
