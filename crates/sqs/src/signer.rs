//! Who signed a request: for SQS, and for other doors of the same server.

use http::request::Parts;
use millpond_store::Timestamp;

use crate::error::{Code, Failure, Result};
use crate::keys::{AccessKey, AccessKeys};
use crate::signature::{Presented, verify};

/// Why a request is not taken for one of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NotSigned {
    /// For programs, as in answers of SQS: `SignatureDoesNotMatch` and its like.
    pub code: &'static str,
    /// For people.
    pub text: String,
}

impl AccessKeys {
    /// The key that a request was signed with, by Signature Version 4 for the service `sqs`. What the key may do is for
    /// the caller to see to.
    ///
    /// # Errors
    /// [`NotSigned`], which says what is wrong with the signature.
    pub fn verify(
        &self,
        request: &Parts,
        body: &[u8],
        now: Timestamp,
    ) -> Result<&AccessKey, NotSigned> {
        let refused =
            |failure: Failure| NotSigned { code: failure.code.name(), text: failure.text };
        self.signer(request, body, now).map(|(key, _)| key).map_err(refused)
    }

    /// The same with what the request says about its signature.
    pub(crate) fn signer(
        &self,
        request: &Parts,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(&AccessKey, Presented)> {
        let presented = Presented::read(request)?.ok_or_else(|| {
            let text = "Request is missing Authentication Token";
            Failure::new(Code::MissingAuthenticationToken, text)
        })?;
        let key = self.find(&presented.key_id).ok_or_else(|| {
            let text = "The security token included in the request is invalid.";
            Failure::new(Code::InvalidClientTokenId, text)
        })?;
        verify(request, body, &presented, &key.secret, now)?;
        Ok((key, presented))
    }
}
