//! A small HTTP client: one address, connections that are kept, requests signed if there is a key.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use millpond_store::Environment;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service as _;

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
    connector: HttpsConnector<HttpConnector>,
    base: Uri,
    host: HeaderValue,
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
        let host = base.authority().map(ToString::to_string).unwrap_or_default();
        let host = HeaderValue::from_str(&host).map_err(|_| wrong("its host is no host"))?;
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = base.scheme() == Some(&Scheme::HTTPS);
        let connector = connector(http, tls, ca_file)?;
        let client = Client::builder(TokioExecutor::new()).build(connector.clone());
        let key = key.map(|(id, secret)| Key { id, secret });
        Ok(Self { client, connector, base, host, key, environment: Environment::system() })
    }

    /// Sends a request, whose address has only a path, and reads the whole answer.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<(StatusCode, Bytes), Failure> {
        let path = request.uri().path_and_query().cloned();
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| self.unreachable(&error))?;
        let request = self.addressed(request);
        let answer = async {
            let answer = self.client.request(request.map(Full::new)).await;
            self.whole(answer.map_err(|error| self.unreachable(&root(&error)))?).await
        };
        self.in_time(answer).await
    }

    /// A connection of the caller's own.
    pub async fn connect(&self) -> Result<HttpLink, Failure> {
        let stream = self.connector.clone().call(self.base.clone()).await;
        let stream = stream.map_err(|error| self.unreachable(&root(&*error)))?;
        let shaken = handshake(stream).await;
        let (sender, connection) = shaken.map_err(|error| self.unreachable(&root(&error)))?;
        Ok(HttpLink { client: self.clone(), sender, connection: Box::pin(connection) })
    }

    /// The request with its host, signed if there is a key.
    fn addressed(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        request.headers_mut().insert(http::header::HOST, self.host.clone());
        if let Some(key) = &self.key {
            sign(&mut request, key, self.environment.now());
        }
        request
    }

    async fn whole(&self, answer: Response<Incoming>) -> Result<(StatusCode, Bytes), Failure> {
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.unreachable(&error))?;
        Ok((status, body.to_bytes()))
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
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

/// A connection for one request after another. The caller's own task drives it: no other is woken for a request, as a load
/// that is measured must not be.
pub struct HttpLink {
    client: HttpClient,
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
}

impl HttpLink {
    /// Sends a request, whose address has only a path, and reads the whole answer. A connection that the server has
    /// closed since the last answer is made anew.
    pub async fn send(&mut self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), Failure> {
        if self.sender.is_closed() {
            *self = self.client.connect().await?;
        }
        let Self { client, sender, connection } = self;
        let request = client.addressed(request);
        let answer = async {
            let answer = sender.send_request(request.map(Full::new)).await;
            client.whole(answer.map_err(|error| client.unreachable(&root(&error)))?).await
        };
        let mut answer = std::pin::pin!(answer);
        client
            .in_time(async {
                tokio::select! {
                    biased;
                    // First, since it brings the answer. When it has ended, what it brought is still to be had.
                    _ = connection.as_mut() => {}
                    answer = answer.as_mut() => return answer,
                }
                answer.await
            })
            .await
    }
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLink").field("client", &self.client).finish_non_exhaustive()
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
