//! Answers in either encoding.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::incoming::Encoding;
use super::xml;
use crate::actions::Action;
use crate::error::{Code, Failure, Result};

/// What an answer has room for from the beginning: most need no more, and large ones grow less often.
const ANSWER_BYTES: usize = 1_024;

/// An action's answer.
pub fn answer<T: Serialize>(
    encoding: Encoding,
    action: Action,
    answer: &T,
    request_id: &str,
) -> Result<Response<Bytes>> {
    let broken = |error: serde_json::Error| {
        tracing::error!(%error, "an answer cannot be written");
        Failure::new(Code::InternalFailure, "The answer cannot be written.")
    };
    let body = match encoding {
        Encoding::Json => {
            let mut body = Vec::with_capacity(ANSWER_BYTES);
            serde_json::to_writer(&mut body, answer).map_err(broken)?;
            body
        }
        Encoding::Query => {
            let value = serde_json::to_value(answer).map_err(broken)?;
            xml::answer(action.name(), action.has_result(), &value, request_id).into_bytes()
        }
    };
    Ok(whole(encoding, 200, body, request_id))
}

/// What is wrong.
pub fn refusal(encoding: Encoding, failure: &Failure, request_id: &str) -> Response<Bytes> {
    let written = failure.code.written();
    match encoding {
        Encoding::Json => {
            let body = json!({"__type": written.json, "message": failure.text});
            let body = body.to_string().into_bytes();
            let mut response = whole(encoding, written.json_status, body, request_id);
            // Clients that were written for the Query encoding go by its codes.
            let legacy = format!("{};{}", written.query, failure.code.fault());
            if let Ok(legacy) = HeaderValue::from_str(&legacy) {
                response.headers_mut().insert("x-amzn-query-error", legacy);
            }
            response
        }
        Encoding::Query => {
            let body = xml::refusal(failure, request_id).into_bytes();
            whole(encoding, written.query_status, body, request_id)
        }
    }
}

fn whole(encoding: Encoding, status: u16, body: Vec<u8>, request_id: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let kind = match encoding {
        Encoding::Json => "application/x-amz-json-1.0",
        Encoding::Query => "text/xml",
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert("x-amzn-requestid", id);
    }
    response
}
