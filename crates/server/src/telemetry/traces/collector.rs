//! The collector, over HTTP.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

use super::limits::{ANSWER_BYTES_MAX, CONNECT_TIMEOUT};
use crate::config::TraceConfig;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const OURSELVES: HeaderValue =
    HeaderValue::from_static(concat!("millpond/", env!("CARGO_PKG_VERSION")));

/// The collector's address, and connections to it that are kept.
#[derive(Debug)]
pub struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// It may be taken later.
    #[error("{problem}")]
    Later {
        /// What happened.
        problem: String,
        /// When to come back, where the collector says so.
        after: Option<Duration>,
    },
    /// It would be refused again.
    #[error("{0}")]
    Never(String),
}

impl Collector {
    /// The collector of a configuration. Nothing is connected yet.
    pub fn new(config: &TraceConfig) -> Result<Self, std::io::Error> {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = config.endpoint.scheme() == Some(&Scheme::HTTPS);
        let client = Client::builder(TokioExecutor::new()).build(connector(http, tls)?);
        Ok(Self { client, endpoint: config.endpoint.clone(), headers: config.headers.clone() })
    }

    /// Where it is, for people.
    pub fn endpoint(&self) -> &Uri {
        &self.endpoint
    }

    /// Sends a batch. Returns how many of its spans were not taken, and why.
    pub async fn send(&self, batch: Bytes) -> Result<(usize, String), SendError> {
        let mut request = Request::new(Full::new(batch));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, OURSELVES);
        headers.extend(self.headers.iter().cloned());
        headers.insert(CONTENT_TYPE, PROTOBUF);
        let later = |problem: String| SendError::Later { problem, after: None };
        let answer = self.client.request(request).await.map_err(|error| later(root(&error)))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        if !head.status.is_success() {
            return Err(refused(head.status, &head.headers));
        }
        // A collector that answers something else has taken the batch all the same.
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
        let partial = answer.partial_success.unwrap_or_default();
        let rejected = usize::try_from(partial.rejected_spans).unwrap_or_default();
        Ok((rejected, partial.error_message))
    }
}

/// What a status means: OTLP names those that may be tried again.
fn refused(status: StatusCode, headers: &HeaderMap) -> SendError {
    let problem = format!("it answered {status}");
    if !matches!(status.as_u16(), 429 | 502..=504) {
        return SendError::Never(problem);
    }
    let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let after = after.and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
    SendError::Later { problem, after }
}

/// Reading what the machine trusts takes a while, so that is done only where TLS is used.
fn connector(
    http: HttpConnector,
    tls: bool,
) -> Result<HttpsConnector<HttpConnector>, std::io::Error> {
    let ring = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = if tls {
        builder.with_provider_and_native_roots(ring)?
    } else {
        let config = ClientConfig::builder_with_provider(Arc::new(ring))
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        builder.with_tls_config(config)
    };
    Ok(builder.https_or_http().enable_http1().wrap_connector(http))
}

/// What is at the bottom of an error, which says more than its top.
fn root(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_go_well_later_is_tried_again() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        for status in [429, 502, 503, 504] {
            let error = refused(StatusCode::from_u16(status).unwrap(), &headers);
            let seven = Some(Duration::from_secs(7));
            assert!(matches!(error, SendError::Later { after, .. } if after == seven), "{error}");
        }
        for status in [301, 400, 401, 404, 413, 500] {
            let error = refused(StatusCode::from_u16(status).unwrap(), &headers);
            assert!(matches!(error, SendError::Never(_)), "{error}");
        }
    }
}
