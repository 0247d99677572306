//! A small HTTP client: one address, connections that are kept, requests signed if there is a key.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use millpond_store::Environment;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::Failure;
use super::signature::{Key, sign};

/// Largest answer: what a thousand messages of the largest size in base64 would never reach in practice.
const ANSWER_BYTES_MAX: usize = 1_024 * 1_024 * 1_024;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take: ten times the longest wait of a request, since a purge may take a while.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// A client of one server.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: Uri,
    key: Option<Key>,
    environment: Environment,
}

impl HttpClient {
    /// A client of the server at `url`.
    pub fn new(
        url: &str,
        key: Option<(String, String)>,
        ca_file: Option<&Path>,
    ) -> Result<Self, Failure> {
        let wrong = |problem: &str| {
            Failure::Usage(format!(
                "{url:?} is not a server's address: {problem}; give one such as http://127.0.0.1:9324"
            ))
        };
        let base: Uri = url.parse().map_err(|_| wrong("it is no URL"))?;
        match base.scheme().map(Scheme::as_str) {
            Some("http" | "https") => {}
            _ => return Err(wrong("it begins with neither http:// nor https://")),
        }
        if base.path() != "/" || base.query().is_some() {
            return Err(wrong("there is something behind the host"));
        }
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = base.scheme() == Some(&Scheme::HTTPS);
        let connector = connector(http, tls, ca_file)?;
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let key = key.map(|(id, secret)| Key { id, secret });
        Ok(Self { client, base, key, environment: Environment::system() })
    }

    /// Sends a request, whose address has only a path, and reads the whole answer.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<(StatusCode, Bytes), Failure> {
        let path = request.uri().path_and_query().cloned();
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| self.unreachable(&error))?;
        let host = self.base.authority().map(ToString::to_string).unwrap_or_default();
        if let Ok(host) = HeaderValue::from_str(&host) {
            request.headers_mut().insert(http::header::HOST, host);
        }
        if let Some(key) = &self.key {
            sign(&mut request, key, self.environment.now());
        }
        let answer = async {
            let answer = self.client.request(request.map(Full::new)).await;
            let answer = answer.map_err(|error| self.unreachable(&root(&error)))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| self.unreachable(&error))?;
            Ok((status, body.to_bytes()))
        };
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.environment.clock.sleep(ANSWER_TIMEOUT) => {
                Err(self.unreachable(&format!("no answer within {ANSWER_TIMEOUT:?}")))
            }
        }
    }

    fn unreachable(&self, error: &dyn std::fmt::Display) -> Failure {
        let (base, error) = (&self.base, error.to_string());
        let hint = if error.contains("certificate") {
            "name a file with the certificate that it is signed by with --ca-file"
        } else {
            "is it running? `millpond serve` starts one"
        };
        Failure::Unavailable(format!("the server at {base} cannot be reached: {error}; {hint}"))
    }
}

/// What TLS trusts. Reading what the machine trusts takes a while, so that is done only where TLS is used.
fn connector(
    http: HttpConnector,
    tls: bool,
    ca_file: Option<&Path>,
) -> Result<HttpsConnector<HttpConnector>, Failure> {
    let broken =
        |error: &dyn std::fmt::Display| Failure::Broken(format!("TLS cannot be used: {error}"));
    let ring = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = if tls && ca_file.is_none() {
        builder.with_provider_and_native_roots(ring).map_err(|error| broken(&error))?
    } else {
        let mut roots = RootCertStore::empty();
        if let Some(file) = ca_file {
            let wrong = |error: &dyn std::fmt::Display| {
                Failure::Usage(format!("{} has no certificates: {error}", file.display()))
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"it should be text in PEM form"));
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring))
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(&error))?
            .with_root_certificates(roots)
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
