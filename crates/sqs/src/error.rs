//! What is answered when something is wrong: one table of codes for both encodings.

use millpond_queue::QueueError;
use millpond_store::StoreError;

/// The service's own errors, as JSON names them.
macro_rules! own {
    ($name:literal) => {
        concat!("com.amazonaws.sqs#", $name)
    };
}

/// Errors of what stands before every service of AWS.
macro_rules! common {
    ($name:literal) => {
        concat!("com.amazon.coral.service#", $name)
    };
}

/// How a code is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The type, in JSON.
    pub json: &'static str,
    /// The status that goes with it.
    pub json_status: u16,
    /// The code in XML, and in the header that tells clients of the JSON encoding about it.
    pub query: &'static str,
    /// The status that goes with it.
    pub query_status: u16,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident: $json:expr, $json_status:literal, $query:literal, $query_status:literal;)*) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$code,)*];

            /// How it is written.
            pub const fn written(self) -> Written {
                match self {
                    $(Self::$code => Written {
                        json: $json,
                        json_status: $json_status,
                        query: $query,
                        query_status: $query_status,
                    },)*
                }
            }
        }
    };
}

codes! {
    QueueDoesNotExist: own!("QueueDoesNotExist"), 400, "AWS.SimpleQueueService.NonExistentQueue", 400;
    QueueNameExists: own!("QueueNameExists"), 400, "QueueAlreadyExists", 400;
    QueueDeletedRecently: own!("QueueDeletedRecently"), 400, "AWS.SimpleQueueService.QueueDeletedRecently", 400;
    PurgeQueueInProgress: own!("PurgeQueueInProgress"), 400, "AWS.SimpleQueueService.PurgeQueueInProgress", 403;
    InvalidAttributeName: own!("InvalidAttributeName"), 400, "InvalidAttributeName", 400;
    InvalidAttributeValue: own!("InvalidAttributeValue"), 400, "InvalidAttributeValue", 400;
    InvalidParameterValue: own!("InvalidParameterValueException"), 400, "InvalidParameterValue", 400;
    MissingParameter: own!("MissingRequiredParameterException"), 400, "MissingParameter", 400;
    InvalidMessageContents: own!("InvalidMessageContents"), 400, "InvalidMessageContents", 400;
    TooManyEntriesInBatchRequest: own!("TooManyEntriesInBatchRequest"), 400, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400;
    EmptyBatchRequest: own!("EmptyBatchRequest"), 400, "AWS.SimpleQueueService.EmptyBatchRequest", 400;
    BatchEntryIdsNotDistinct: own!("BatchEntryIdsNotDistinct"), 400, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400;
    BatchRequestTooLong: own!("BatchRequestTooLong"), 400, "AWS.SimpleQueueService.BatchRequestTooLong", 400;
    InvalidBatchEntryId: own!("InvalidBatchEntryId"), 400, "AWS.SimpleQueueService.InvalidBatchEntryId", 400;
    ReceiptHandleIsInvalid: own!("ReceiptHandleIsInvalid"), 400, "ReceiptHandleIsInvalid", 404;
    OverLimit: own!("OverLimit"), 400, "OverLimit", 403;
    ResourceNotFound: own!("ResourceNotFoundException"), 400, "ResourceNotFoundException", 404;
    UnsupportedOperation: own!("UnsupportedOperation"), 400, "AWS.SimpleQueueService.UnsupportedOperation", 400;
    InvalidAddress: own!("InvalidAddress"), 400, "InvalidAddress", 404;
    RequestThrottled: own!("RequestThrottled"), 400, "RequestThrottled", 403;
    UnknownOperation: common!("UnknownOperationException"), 400, "InvalidAction", 400;
    Serialization: common!("SerializationException"), 400, "MalformedInput", 400;
    MissingAuthenticationToken: common!("MissingAuthenticationTokenException"), 403, "MissingAuthenticationToken", 403;
    IncompleteSignature: common!("IncompleteSignatureException"), 400, "IncompleteSignature", 400;
    InvalidClientTokenId: common!("UnrecognizedClientException"), 403, "InvalidClientTokenId", 403;
    SignatureDoesNotMatch: common!("InvalidSignatureException"), 403, "SignatureDoesNotMatch", 403;
    AccessDenied: common!("AccessDeniedException"), 403, "AccessDenied", 403;
    ServiceUnavailable: common!("ServiceUnavailableException"), 503, "ServiceUnavailable", 503;
    InternalFailure: common!("InternalFailure"), 500, "InternalFailure", 500;
}

impl Code {
    /// The name without its name space: for metrics.
    pub fn name(self) -> &'static str {
        let json = self.written().json;
        json.split_once('#').map_or(json, |(_, name)| name)
    }

    /// Whose fault it is.
    pub const fn fault(self) -> &'static str {
        if self.is_sender_fault() { "Sender" } else { "Receiver" }
    }

    /// Whether it is the client's.
    pub const fn is_sender_fault(self) -> bool {
        self.written().query_status < 500
    }
}

/// An answer that says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub code: Code,
    /// The text for people.
    pub text: String,
    /// The same in the Query encoding, where it differs.
    pub query_text: Option<&'static str>,
}

impl Failure {
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), query_text: None }
    }

    pub fn no_queue() -> Self {
        Self {
            code: Code::QueueDoesNotExist,
            text: "The specified queue does not exist.".to_owned(),
            query_text: Some("The specified queue does not exist for this wsdl version."),
        }
    }

    pub fn missing(parameter: &str) -> Self {
        let text = format!("The request must contain the parameter {parameter}.");
        Self::new(Code::MissingParameter, text)
    }

    pub fn parameter(text: impl Into<String>) -> Self {
        Self::new(Code::InvalidParameterValue, text)
    }

    /// A value that a parameter cannot have, and why.
    pub fn value(parameter: &str, value: impl std::fmt::Display, reason: &str) -> Self {
        Self::parameter(format!(
            "Value {value} for parameter {parameter} is invalid. Reason: {reason}"
        ))
    }

    pub fn unknown_attribute(name: &str) -> Self {
        Self::new(Code::InvalidAttributeName, format!("Unknown Attribute {name}."))
    }

    pub fn attribute_value(name: &str) -> Self {
        let text = format!("Invalid value for the parameter {name}.");
        Self::new(Code::InvalidAttributeValue, text)
    }

    pub fn denied(text: impl Into<String>) -> Self {
        Self::new(Code::AccessDenied, text)
    }

    /// Others have changed the same row again and again meanwhile.
    pub fn too_many_changes() -> Self {
        Self::new(Code::ServiceUnavailable, "Too many changes at once. Please try again.")
    }

    /// What is said in the Query encoding.
    pub fn query_text(&self) -> &str {
        self.query_text.unwrap_or(&self.text)
    }
}

/// The outcome of an action.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::NotFound { .. } => Self::no_queue(),
            QueueError::Invalid { .. }
            | QueueError::TooLarge { .. }
            | QueueError::Exists { .. } => Self::parameter(error.to_string()),
            QueueError::ReceiptInvalid { .. } | QueueError::LeaseLost { .. } => {
                Self::new(Code::ReceiptHandleIsInvalid, error.to_string())
            }
            QueueError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Failure {
    /// What is wrong inside is logged and not told to clients.
    fn from(error: StoreError) -> Self {
        if let StoreError::Throttled { .. } = &error {
            tracing::warn!(%error, "the store throttles");
            let text = "The request was denied due to request throttling.";
            return Self::new(Code::RequestThrottled, text);
        }
        if error.is_transient() || error.is_conflict() {
            tracing::warn!(%error, "the store fails for the moment");
            let text = "The service is unavailable for the moment. Please try again.";
            return Self::new(Code::ServiceUnavailable, text);
        }
        tracing::error!(%error, "the store failed");
        let text = "We encountered an internal error. Please try again.";
        Self::new(Code::InternalFailure, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_in_both_encodings_and_are_all_different() {
        let mut json: Vec<_> = Code::ALL.iter().map(|code| code.written().json).collect();
        json.sort_unstable();
        json.dedup();
        assert_eq!(json.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(!code.name().contains('#'), "{code:?}");
            assert_eq!(code.is_sender_fault(), code.written().json_status < 500, "{code:?}");
        }
    }
}
