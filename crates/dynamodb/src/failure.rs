//! What the SDK's errors mean to a caller of the waist.
//!
//! The question that matters for a write is whether it may have happened. It has not when the service refused
//! it with a client error, or when no connection was made. After a server error, a timeout or a lost connection
//! it may have.

use std::error::Error;
use std::sync::Arc;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use millpond_store::limits::ITEM_BYTES_MAX;
use millpond_store::{Cause, StoreError};

use crate::config::TableName;

/// Whether a request changes anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It only reads: its outcome is never unknown.
    Read,
    /// It writes.
    Write,
}

/// Which request failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The service's action, as in `dynamodb:PutItem`.
    pub action: &'static str,
    /// Whether it writes.
    pub effect: Effect,
    /// The table it was about.
    pub table: &'a TableName,
}

impl Request<'_> {
    /// The error of the waist for an error of the SDK.
    pub(crate) fn error<E>(&self, error: SdkError<E, HttpResponse>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        if let (SdkError::ServiceError(service), Some(status)) = (&error, status) {
            let meta = service.err().meta();
            let code = meta.code().unwrap_or("no code");
            let message = meta.message().unwrap_or("no message");
            if let Some(known) = self.refused(code, message, status) {
                return known;
            }
        }
        if let Some(problem) = find::<CredentialsError>(&error) {
            return no_credentials(problem);
        }
        let before_sending = match &error {
            SdkError::ConstructionFailure(_) => true,
            SdkError::DispatchFailure(_) => find::<hyper_util::client::legacy::Error>(&error)
                .is_some_and(hyper_util::client::legacy::Error::is_connect),
            _ => false,
        };
        let detail = DisplayErrorContext(&error).to_string();
        self.failed(before_sending, detail, Some(Arc::new(error)))
    }

    /// A failure that may pass; `before_sending` when the service cannot have seen the request.
    pub(crate) fn failed(
        &self,
        before_sending: bool,
        detail: String,
        cause: Option<Cause>,
    ) -> StoreError {
        let operation = self.action;
        if self.effect == Effect::Write && !before_sending {
            return StoreError::UnknownOutcome { operation, detail, cause };
        }
        StoreError::Unavailable { operation, detail, cause }
    }

    /// No capacity, or another writer in the way, for the moment.
    pub(crate) fn throttled(&self, code: &str, message: &str) -> StoreError {
        StoreError::Throttled { operation: self.action, detail: format!("{code}: {message}") }
    }

    /// What an error code of the service means; nothing when the service itself failed.
    pub(crate) fn refused(&self, code: &str, message: &str, status: u16) -> Option<StoreError> {
        let (action, table) = (self.action, self.table);
        let error = match code {
            "ThrottlingException"
            | "Throttling"
            | "ThrottlingError"
            | "ProvisionedThroughputExceededException"
            | "ProvisionedThroughputExceeded"
            | "RequestLimitExceeded"
            | "LimitExceededException"
            | "TooManyRequestsException"
            | "TransactionConflictException"
            | "TransactionConflict"
            | "ReplicatedWriteConflictException" => self.throttled(code, message),
            // Our own earlier attempt is still at work.
            "TransactionInProgressException" => self.failed(false, message.to_owned(), None),
            "ResourceNotFoundException" => missing_table(table),
            "AccessDeniedException" | "AccessDenied" => StoreError::misconfigured(
                format!("{action} on table {table} is not permitted: {message}"),
                format!("allow dynamodb:{action} (the policy for the role names what is needed)"),
            ),
            "UnrecognizedClientException"
            | "InvalidClientTokenId"
            | "InvalidSignatureException"
            | "SignatureDoesNotMatch"
            | "IncompleteSignatureException"
            | "MissingAuthenticationTokenException"
            | "MissingAuthenticationToken" => StoreError::misconfigured(
                format!("the credentials are not accepted: {code}: {message}"),
                "check the access key, its region and the machine's clock",
            ),
            "ExpiredTokenException" | "ExpiredToken" => StoreError::misconfigured(
                format!("the credentials have expired: {message}"),
                "sign in again, or let the SDK find credentials that renew themselves",
            ),
            "ValidationException" | "ValidationError" => self.invalid(message),
            "ItemCollectionSizeLimitExceededException" | "ItemCollectionSizeLimitExceeded" => {
                StoreError::misconfigured(
                    format!(
                        "table {table} has a local secondary index, which bounds a partition to 10 GB: {message}"
                    ),
                    "use a table without local secondary indexes",
                )
            }
            _ if status >= 500 => return None,
            _ => StoreError::misconfigured(
                format!("{action} on table {table} was refused: {code}: {message}"),
                "check that the endpoint is DynamoDB or speaks its protocol, and that the table may be used",
            ),
        };
        Some(error)
    }

    /// A request that the service finds wrong. Since the waist checks sizes and names before, what remains is a
    /// table of another schema.
    fn invalid(&self, message: &str) -> StoreError {
        if message.contains("tem size") && message.contains("exceeded") {
            return StoreError::TooLarge {
                what: "item, as the service counts it,",
                size: ITEM_BYTES_MAX + 1,
                unit: "bytes or more",
                limit: ITEM_BYTES_MAX,
            };
        }
        if ["key", "schema"].iter().any(|word| message.contains(word)) {
            return wrong_schema(self.table, message);
        }
        StoreError::invalid("request", format!("was refused by {}: {message}", self.action))
    }
}

/// The table is not there.
pub(crate) fn missing_table(table: &TableName) -> StoreError {
    StoreError::misconfigured(
        format!("table {table} does not exist in this account and region, or is still being made"),
        "create it with `DynamoDbAdmin::create_table`, or correct the name, region or endpoint",
    )
}

/// The table has other keys.
pub(crate) fn wrong_schema(table: &TableName, what_differs: &str) -> StoreError {
    StoreError::misconfigured(
        format!("table {table} has another schema: {what_differs}"),
        "use a table with the partition key `pk` (S) and the sort key `sk` (B), as `create_table` makes it",
    )
}

fn no_credentials(problem: &CredentialsError) -> StoreError {
    StoreError::misconfigured(
        format!("no credentials were found: {}", DisplayErrorContext(problem)),
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or run where a role is given",
    )
}

/// The first error of this type in the chain.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use millpond_store::Certainty;

    use super::*;

    fn request(table: &TableName) -> Request<'_> {
        Request { action: "PutItem", effect: Effect::Write, table }
    }

    #[test]
    fn codes_become_what_a_caller_does() {
        let table = TableName::new("things").unwrap();
        let said = |code: &str, message: &str, status| {
            request(&table)
                .refused(code, message, status)
                .map(|error| (error.is_transient(), error.to_string()))
        };
        assert!(said("ThrottlingException", "slow", 400).unwrap().0);
        assert!(said("InternalServerError", "oops", 500).is_none());
        let (transient, text) = said("AccessDeniedException", "no", 400).unwrap();
        assert!(!transient && text.contains("dynamodb:PutItem"), "{text}");
        let schema = "The provided key element does not match the schema";
        assert!(said("ValidationException", schema, 400).unwrap().1.contains("another schema"));
        assert!(said("ValidationException", "odd", 400).unwrap().1.starts_with("request"));
        assert!(said("Brand New", "odd", 400).unwrap().1.contains("Brand New"));
    }

    #[test]
    fn only_a_write_that_may_have_been_seen_is_unknown() {
        let table = TableName::new("things").unwrap();
        let certainty = |effect, before| {
            let request = Request { effect, ..request(&table) };
            request.failed(before, String::new(), None).certainty()
        };
        assert_eq!(certainty(Effect::Write, false), Certainty::Unknown);
        assert_eq!(certainty(Effect::Write, true), Certainty::Definite);
        assert_eq!(certainty(Effect::Read, false), Certainty::Definite);
    }
}
