//! Clients of AWS, set up as the store's: TLS by rustls and ring, no retries of their own, bounded attempts.

use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::tls;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use millpond_store::Environment;

use crate::failure::AwsError;
use crate::limits::{ATTEMPT_TIMEOUT, CONNECT_TIMEOUT};

/// The way to AWS: region, credentials, and perhaps endpoints, by the SDK's usual ways. In Lambda, all of it is there.
/// Nothing is asked for until a client is used.
#[derive(Clone, Debug)]
pub struct Aws {
    config: SdkConfig,
    environment: Environment,
}

impl Aws {
    /// Finds region and credentials. Endpoints are taken from `AWS_ENDPOINT_URL` and `AWS_ENDPOINT_URL_KINESIS`, `…_SQS`,
    /// `…_LAMBDA`, where these are set.
    ///
    /// # Errors
    /// [`AwsError::Misconfigured`] when no region is known.
    pub async fn load(environment: &Environment) -> Result<Self, AwsError> {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
            .build_https();
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .build();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .sleep_impl(TokioSleep::new())
            // There is one mechanism for retries, in `failure.rs`: it sends again only what has no receipt.
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .load()
            .await;
        if config.region().is_none() {
            return Err(AwsError::Misconfigured {
                problem: "no region is known".into(),
                remedy: "set AWS_REGION; Lambda does so by itself".into(),
            });
        }
        Ok(Self { config, environment: environment.clone() })
    }

    /// With a configuration of your own. Its retries should be off, or failed parts of batches are multiplied.
    #[must_use]
    pub fn with(config: SdkConfig, environment: &Environment) -> Self {
        Self { config, environment: environment.clone() }
    }

    /// Time and chance.
    #[must_use]
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn kinesis(&self) -> aws_sdk_kinesis::Client {
        aws_sdk_kinesis::Client::new(&self.config)
    }

    pub(crate) fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.config)
    }

    pub(crate) fn lambda(&self) -> aws_sdk_lambda::Client {
        aws_sdk_lambda::Client::new(&self.config)
    }
}
