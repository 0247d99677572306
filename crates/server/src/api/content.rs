//! Bytes in JSON: as text where they are text, else in base64, in a field whose name ends in `_base64`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::error::ApiError;

/// Bytes as an answer says them: text, or base64. Exactly one is there.
pub fn encode(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

/// The same for bytes that may be missing.
pub fn encode_some(bytes: Option<&Bytes>) -> (Option<String>, Option<String>) {
    bytes.map_or((None, None), |bytes| encode(bytes))
}

/// Bytes as a request says them, of which exactly one form is given.
pub fn decode(
    field: &str,
    text: Option<String>,
    base64: Option<String>,
) -> Result<Bytes, ApiError> {
    match decode_some(field, text, base64)? {
        Some(bytes) => Ok(bytes),
        None => {
            Err(ApiError::invalid(field, format!("is missing; give {field} or {field}_base64")))
        }
    }
}

/// The same for bytes that may be missing.
pub fn decode_some(
    field: &str,
    text: Option<String>,
    base64: Option<String>,
) -> Result<Option<Bytes>, ApiError> {
    match (text, base64) {
        (Some(_), Some(_)) => {
            Err(ApiError::invalid(field, format!("and {field}_base64 are both given; give one")))
        }
        (Some(text), None) => Ok(Some(text.into())),
        (None, Some(base64)) => {
            STANDARD.decode(base64).map(|bytes| Some(bytes.into())).map_err(|error| {
                ApiError::invalid(&format!("{field}_base64"), format!("is not base64: {error}"))
            })
        }
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_readable_and_other_bytes_come_back_intact() {
        for bytes in [b"plain".as_slice(), "grün".as_bytes(), b"", b"\xff\x00\x80"] {
            let (text, base64) = encode(bytes);
            assert!(text.is_some() != base64.is_some());
            assert_eq!(decode("body", text, base64).unwrap(), bytes);
        }
    }

    #[test]
    fn both_forms_or_none_are_refused_by_name() {
        let both = decode("body", Some("a".into()), Some("YQ==".into())).unwrap_err();
        assert!(both.to_string().contains("body and body_base64"), "{both}");
        assert!(decode("body", None, None).unwrap_err().to_string().contains("body is missing"));
        let bad = decode("body", None, Some("*".into())).unwrap_err();
        assert_eq!(bad.body.field.as_deref(), Some("body_base64"));
    }
}
