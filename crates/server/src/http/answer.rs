//! The server's own answers, in the form that the client expects.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};

use super::limits::{HEAD_FIELDS_MAX, RETRY_AFTER_SECONDS};

/// Why the server itself refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "The request's head has more than {HEAD_FIELDS_MAX} fields, which is the most that is accepted."
    )]
    TooManyFields,
    #[error("The request's body has more than {0} bytes, which is the most that is accepted.")]
    TooLarge(usize),
    #[error("The request's body did not come in time.")]
    TooSlow,
    #[error("The request's body ended early or was malformed.")]
    Broken,
    #[error("The server has no room for the request's body now. Try again later.")]
    NoRoom,
    #[error("The server has too many requests to answer now. Try again later.")]
    Busy,
    #[error("Too many receives wait for messages now. Try again later, or do not wait.")]
    TooManyWaits,
    #[error(
        "The request comes from a web page of another origin, or by a name that the server does not know as its own \
         (see public_url), and the server is open to all."
    )]
    ForeignOrigin,
}

/// What a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Xml,
}

impl Encoding {
    /// The encoding of a request, which its answer must have too.
    pub fn of(request: &HeaderMap) -> Self {
        let content_type = request.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let names_json = |value: &[u8]| value.windows(4).any(|part| part == b"json");
        if request.contains_key("x-amz-target") || content_type.is_some_and(names_json) {
            Self::Json
        } else {
            Self::Xml
        }
    }
}

impl Refusal {
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::NoRoom | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyWaits => StatusCode::TOO_MANY_REQUESTS,
            Self::ForeignOrigin => StatusCode::FORBIDDEN,
        }
    }

    /// What metrics and logs call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooManyFields => "too_many_fields",
            Self::TooLarge(_) => "too_large",
            Self::TooSlow => "too_slow",
            Self::Broken => "broken",
            Self::NoRoom => "no_room",
            Self::Busy => "busy",
            Self::TooManyWaits => "too_many_waits",
            Self::ForeignOrigin => "foreign_origin",
        }
    }

    /// The code that SDKs know: with it they wait and try again by themselves where that helps.
    fn code(self) -> &'static str {
        match self {
            Self::NoRoom | Self::Busy => "ServiceUnavailable",
            Self::TooManyWaits => "RequestThrottled",
            Self::TooManyFields | Self::TooLarge(_) | Self::TooSlow | Self::Broken => {
                "InvalidParameterValue"
            }
            Self::ForeignOrigin => "AccessDenied",
        }
    }

    /// The answer, in the encoding of the request.
    pub fn answer(self, encoding: Encoding) -> Response<Bytes> {
        let code = self.code();
        let side = if self.status().is_server_error() { "Receiver" } else { "Sender" };
        let (content_type, body) = if encoding == Encoding::Json {
            let body = serde_json::json!({
                "__type": format!("com.amazonaws.sqs#{code}"),
                "message": self.to_string(),
            });
            ("application/x-amz-json-1.0", body.to_string())
        } else {
            let body = format!(
                "<?xml version=\"1.0\"?><ErrorResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">\
                 <Error><Type>{side}</Type><Code>{code}</Code><Message>{self}</Message><Detail/></Error>\
                 </ErrorResponse>"
            );
            ("text/xml", body)
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Ok(value) = HeaderValue::try_from(format!("{code};{side}")) {
            headers.insert("x-amzn-query-error", value);
        }
        come_back(&mut response);
        response
    }
}

/// Says when to come back, where it is worth it and not said yet.
pub fn come_back(response: &mut Response<Bytes>) {
    let status = response.status();
    if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
        let after = HeaderValue::from_static(RETRY_AFTER_SECONDS);
        response.headers_mut().entry(RETRY_AFTER).or_insert(after);
    }
}

/// An answer of the server's own pages.
pub fn plain(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    come_back(&mut response);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_speaks_the_clients_encoding_and_says_when_to_come_back() {
        let mut json = HeaderMap::new();
        json.insert("x-amz-target", HeaderValue::from_static("AmazonSQS.ReceiveMessage"));
        let answer = Refusal::TooManyWaits.answer(Encoding::of(&json));
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers()["retry-after"], "1");
        assert_eq!(answer.headers()["x-amzn-query-error"], "RequestThrottled;Sender");
        let body: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(body["__type"], "com.amazonaws.sqs#RequestThrottled");

        let answer = Refusal::Busy.answer(Encoding::of(&HeaderMap::new()));
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let body = String::from_utf8(answer.body().to_vec()).unwrap();
        assert!(body.contains("<Code>ServiceUnavailable</Code>"), "{body}");

        let answer = Refusal::TooLarge(10).answer(Encoding::Json);
        assert_eq!(answer.status(), 413);
        assert!(!answer.headers().contains_key("retry-after"));
    }
}
