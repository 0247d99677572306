//! What errors of AWS mean: try again, or correct the set-up.

use std::error::Error;

use aws_sdk_lambda::config::http::HttpResponse;
use aws_sdk_lambda::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use millpond_consumer::BreakerError;
use millpond_consumer::sink::SinkError;
use millpond_store::{Backoff, Environment};

/// Why a request to AWS failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AwsError {
    /// The service cannot be reached, is busy, or failed. It may pass; a request that writes may have happened.
    #[error("{action} failed: {problem}")]
    Unavailable {
        /// The service's action, as in `kinesis:PutRecords`.
        action: &'static str,
        /// What went wrong.
        problem: String,
    },
    /// The service refused. The same request is refused again until somebody does what the remedy says.
    #[error("{problem}; {remedy}")]
    Misconfigured {
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

impl AwsError {
    /// Whether trying again may help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

impl From<AwsError> for SinkError {
    fn from(error: AwsError) -> Self {
        match error {
            AwsError::Unavailable { .. } => Self::Unavailable(error.to_string()),
            AwsError::Misconfigured { problem, remedy } => Self::Misconfigured { problem, remedy },
        }
    }
}

impl From<AwsError> for BreakerError {
    fn from(error: AwsError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Which request failed, and what it was about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The action as IAM names it.
    pub action: &'static str,
    /// The stream, queue or function.
    pub what: &'a str,
}

impl Request<'_> {
    /// What an error of the SDK means.
    pub fn error<E>(&self, error: &SdkError<E, HttpResponse>) -> AwsError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        if let SdkError::ServiceError(service) = error {
            let status = service.raw().status().as_u16();
            let meta = service.err().meta();
            let code = meta.code().unwrap_or("no code");
            let message = meta.message().unwrap_or("no message");
            return self.refused(code, message, status);
        }
        if let SdkError::ConstructionFailure(_) = error {
            return AwsError::Misconfigured {
                problem: format!(
                    "{} on {} could not be asked: {}",
                    self.action,
                    self.what,
                    DisplayErrorContext(error)
                ),
                remedy: "check the name, the region and the credentials".into(),
            };
        }
        self.failed(DisplayErrorContext(error).to_string())
    }

    /// It may pass.
    pub fn failed(&self, problem: impl Into<String>) -> AwsError {
        AwsError::Unavailable { action: self.action, problem: problem.into() }
    }

    /// What an error code means. Codes come with a namespace here and there.
    pub fn refused(&self, code: &str, message: &str, status: u16) -> AwsError {
        let Self { action, what } = self;
        let name = code.rsplit(['#', '.']).next().unwrap_or(code);
        let remedy = match name {
            "ResourceNotFoundException" | "QueueDoesNotExist" | "NonExistentQueue" => {
                "create it, or correct its name, region or account"
            }
            "AccessDeniedException"
            | "AccessDenied"
            | "KMSAccessDeniedException"
            | "KmsAccessDenied" => {
                "allow the action in the function's role (template.yaml has the policies)"
            }
            "UnrecognizedClientException"
            | "InvalidClientTokenId"
            | "InvalidSignatureException"
            | "SignatureDoesNotMatch"
            | "MissingAuthenticationToken"
            | "ExpiredTokenException"
            | "ExpiredToken" => "check the credentials, the region and the machine's clock",
            "KMSDisabledException"
            | "KMSInvalidStateException"
            | "KMSNotFoundException"
            | "KmsDisabled"
            | "KmsNotFound" => "repair the key that it is encrypted with",
            "InvalidAddress" | "UnsupportedOperation" => "give the queue's URL as SQS shows it",
            _ => {
                // Throttling, a service that failed, and what is not known: it may pass.
                return self.failed(format!("{code}: {message} (status {status})"));
            }
        };
        let problem = format!("{action} on {what} was refused: {code}: {message}");
        AwsError::Misconfigured { problem, remedy: remedy.into() }
    }

    /// Tries a request again while it may pass, within the bounds of `backoff`.
    pub async fn lasting<T, F>(
        &self,
        environment: &Environment,
        backoff: Backoff,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, AwsError>
    where
        F: Future<Output = Result<T, AwsError>>,
    {
        let mut failures = 0;
        loop {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let wait = backoff.wait(failures, environment.rng.as_ref());
            let Some(wait) = wait.filter(|_| error.is_transient()) else { return Err(error) };
            tracing::debug!(action = self.action, %error, failures, "a request is tried again");
            environment.clock.sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_what_a_caller_does() {
        let request = Request { action: "sqs:SendMessage", what: "letters" };
        for fatal in [
            "ResourceNotFoundException",
            "com.amazonaws.sqs#QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "AccessDeniedException",
        ] {
            let error = request.refused(fatal, "no", 400);
            assert!(!error.is_transient(), "{error}");
            assert!(
                error.to_string().contains("sqs:SendMessage on letters was refused"),
                "{error}"
            );
            assert!(SinkError::from(error).is_fatal());
        }
        for passing in ["ThrottlingException", "InternalFailure", "brand new"] {
            let error = request.refused(passing, "slow", 400);
            assert!(error.is_transient() && error.to_string().contains(passing), "{error}");
            assert!(!SinkError::from(error).is_fatal());
        }
    }
}
