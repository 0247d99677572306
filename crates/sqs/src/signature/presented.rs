//! What a request says about its signature: in its `Authorization` header, or in its query when it is presigned.

use std::collections::BTreeMap;

use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::error::{Code, Failure, Result};

/// What a request says about its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presented {
    pub key_id: String,
    /// The day of the scope.
    pub day: String,
    pub region: String,
    pub service: String,
    /// The names of the headers that are signed, as they are listed.
    pub signed_headers: Vec<String>,
    /// In hexadecimal.
    pub signature: String,
    /// When it was signed.
    pub time: String,
    /// For how many seconds, when it is presigned.
    pub expires: Option<u64>,
}

pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";

impl Presented {
    /// Reads what a request says; nothing when it says nothing.
    pub fn read(request: &Parts) -> Result<Option<Self>> {
        if let Some(header) = request.headers.get(http::header::AUTHORIZATION) {
            let text = header.to_str().map_err(|_| incomplete("it is not text"))?;
            return Self::of_header(request, text).map(Some);
        }
        let query = request.uri.query().unwrap_or_default();
        if query.contains("X-Amz-Signature=") || query.contains("X-Amz-Credential=") {
            return Self::of_query(query).map(Some);
        }
        Ok(None)
    }

    fn of_header(request: &Parts, text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix(ALGORITHM).and_then(|rest| rest.strip_prefix(' '))
        else {
            return Err(incomplete("its algorithm is not AWS4-HMAC-SHA256"));
        };
        let mut named = BTreeMap::new();
        for part in rest.split(',') {
            let (name, value) = part.trim_matches(' ').split_once('=').unwrap_or_default();
            if !matches!(name, "Credential" | "SignedHeaders" | "Signature")
                || named.insert(name, value).is_some()
            {
                return Err(incomplete("it has parts that it should not have, or has one twice"));
            }
        }
        let field = |name: &str| match named.get(name) {
            Some(value) if !value.is_empty() => Ok(*value),
            _ => Err(Failure::new(
                Code::IncompleteSignature,
                format!("Authorization header requires '{name}' parameter."),
            )),
        };
        let (credential, signed) = (field("Credential")?, field("SignedHeaders")?);
        let signature = field("Signature")?;
        let mut dates = request.headers.get_all("x-amz-date").iter();
        let (Some(date), None) = (dates.next(), dates.next()) else {
            return Err(Failure::new(
                Code::IncompleteSignature,
                "Authorization header requires existence of exactly one 'X-Amz-Date' header.",
            ));
        };
        let time = date.to_str().map_err(|_| incomplete("its date is not text"))?;
        Self::of_parts(credential, signed, signature, time, None)
    }

    fn of_query(query: &str) -> Result<Self> {
        let mut named: BTreeMap<&str, String> = BTreeMap::new();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.starts_with("X-Amz-") {
                let value = percent_decode_str(value).decode_utf8();
                let value = value.map_err(|_| incomplete("a parameter is not text"))?;
                if named.insert(name, value.into_owned()).is_some() {
                    return Err(incomplete("a parameter comes twice"));
                }
            }
        }
        let field = |name: &str| {
            named.get(name).filter(|value| !value.is_empty()).map(String::as_str).ok_or_else(|| {
                let text = format!("AWS query-string parameters must include '{name}'.");
                Failure::new(Code::IncompleteSignature, text)
            })
        };
        if field("X-Amz-Algorithm")? != ALGORITHM {
            return Err(incomplete("its algorithm is not AWS4-HMAC-SHA256"));
        }
        let expires = field("X-Amz-Expires")?.parse();
        let expires = expires.map_err(|_| incomplete("X-Amz-Expires is not a number"))?;
        Self::of_parts(
            field("X-Amz-Credential")?,
            field("X-Amz-SignedHeaders")?,
            field("X-Amz-Signature")?,
            field("X-Amz-Date")?,
            Some(expires),
        )
    }

    fn of_parts(
        credential: &str,
        signed: &str,
        signature: &str,
        time: &str,
        expires: Option<u64>,
    ) -> Result<Self> {
        let scope = || {
            Failure::new(
                Code::IncompleteSignature,
                "Credential must have exactly 5 slash-delimited elements, e.g. \
                 keyid/date/region/service/term.",
            )
        };
        let mut parts = credential.split('/');
        let mut part = || parts.next().filter(|part| !part.is_empty()).ok_or_else(scope);
        let (key_id, day, region, service, last) = (part()?, part()?, part()?, part()?, part()?);
        if last != "aws4_request" || parts.next().is_some() {
            return Err(scope());
        }
        Ok(Self {
            key_id: key_id.to_owned(),
            day: day.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
            signed_headers: signed.split(';').map(str::to_owned).collect(),
            signature: signature.to_owned(),
            time: time.to_owned(),
            expires,
        })
    }
}

fn incomplete(what: &str) -> Failure {
    let text = format!("The request's signature cannot be read: {what}.");
    Failure::new(Code::IncompleteSignature, text)
}
