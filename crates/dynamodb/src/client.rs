//! The SDK's client, set up our way: rustls with ring, no retries of its own, bounded attempts.

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials as SdkCredentials;
use aws_sdk_dynamodb::Client;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::tls;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use millpond_store::{Result, StoreError};

use crate::config::DynamoDbConfig;

/// Where the SDK looks for the address of DynamoDB.
const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"];

/// Makes the client. The table is not asked for anything; finding the region may ask the machine's metadata
/// service when nothing else names one.
pub(crate) async fn connect(config: &DynamoDbConfig) -> Result<Client> {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(config.connect_timeout)
        .operation_attempt_timeout(config.attempt_timeout)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http)
        .sleep_impl(TokioSleep::new())
        // There is one mechanism for retries, in `retry.rs`: it knows what is safe to repeat, and the meter
        // sees every request.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts);
    match &config.endpoint {
        Some(endpoint) => loader = loader.endpoint_url(endpoint),
        None => check_environment()?,
    }
    if let Some(region) = &config.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(given) = &config.credentials {
        loader = loader.credentials_provider(SdkCredentials::new(
            &given.access_key_id,
            &given.secret_access_key,
            given.session_token.clone(),
            None,
            "millpond",
        ));
    }
    let sdk = loader.load().await;
    if sdk.region().is_none() {
        return Err(StoreError::misconfigured(
            format!("no region is known for table {}", config.table),
            "set AWS_REGION, name a region in the profile, or pass one in the configuration",
        ));
    }
    Ok(Client::new(&sdk))
}

/// At an address that is empty the SDK panics.
fn check_environment() -> Result<()> {
    let is_empty = |name: &&&str| std::env::var_os(name).is_some_and(|value| value.is_empty());
    match ENDPOINT_VARIABLES.iter().find(is_empty) {
        None => Ok(()),
        Some(name) => Err(StoreError::misconfigured(
            format!("{name} is empty"),
            "set it to an address, such as http://127.0.0.1:8000, or unset it",
        )),
    }
}
