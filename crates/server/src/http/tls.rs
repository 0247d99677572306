//! TLS, with files that may change while the server runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use millpond_store::Clock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::limits::TLS_LOOK_EVERY;
use crate::config::TlsFiles;
use crate::telemetry::Metrics;

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or holds something else.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificate and key do not fit, or are of a kind that is not supported.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

/// What makes encrypted streams of plain ones, with the files as they were last read.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

/// When the files were written, and how long they are: what tells one version from the next.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    /// Reads the files.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let config = Arc::new(RwLock::new(read(&files)?));
        Ok(Self { files, config })
    }

    /// Shakes hands.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Reads the files again whenever they change. While they cannot be used, the last ones stay in use.
    pub async fn follow(self, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) {
        let mut seen = stamp(&self.files);
        loop {
            clock.sleep(TLS_LOOK_EVERY).await;
            let now = stamp(&self.files);
            if now == seen {
                continue;
            }
            match read(&self.files) {
                Ok(config) => {
                    seen = now;
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                    metrics.tls_reloaded("ok");
                    tracing::info!(cert = %self.files.cert.display(), "TLS files read again");
                }
                // They may be halfway written: look again.
                Err(error) => {
                    metrics.tls_reloaded("failed");
                    tracing::warn!(%error, "changed TLS files cannot be used; the former ones stay");
                }
            }
        }
    }
}

fn stamp(files: &TlsFiles) -> Stamp {
    let of = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    [of(&files.cert), of(&files.key)]
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let failed = |path: &Path, problem: String| TlsError::File { path: path.to_owned(), problem };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| failed(&files.cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(failed(&files.cert, "it holds no certificate in PEM form".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| failed(&files.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
