//! Why the server did not start, or had to end.

use std::io;
use std::net::SocketAddr;

use millpond_sqs::SqsError;
use millpond_store::StoreError;

use crate::http::TlsError;
use crate::telemetry::TracesError;

/// Why the server did not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on: another process has it, or it is not this machine's.
    #[error(
        "{listen} cannot be listened on: {source}; is another server there? --listen names another address, and port \
         0 takes a free one"
    )]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("the store {place} cannot be opened: {source}")]
    Store {
        /// Where it is.
        place: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The protocol cannot be served.
    #[error(transparent)]
    Sqs(#[from] SqsError),
    /// TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Traces cannot be sent.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// A declared queue could not be made.
    #[error("queue {name:?} of the configuration was refused: {answer}")]
    Queue {
        /// Its name.
        name: String,
        /// What the protocol said.
        answer: String,
    },
    /// The system refused something that the server needs.
    #[error("{what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}
