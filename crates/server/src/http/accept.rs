//! Taking connections, as many as there is room for.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::connection;
use super::front::Inside;
use super::limits::{ACCEPT_PAUSE, BACKLOG, REFUSAL_TIMEOUT, REFUSALS_MAX};
use super::tls::Tls;

/// What a connection is told when there is no room for it.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

/// A bound address.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds, so that a taken port is noticed before anything else is done.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A server that was stopped a moment ago does not keep the port.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections until told to stop, then lets those that are there finish, for as long as the limits say.
    pub async fn run(self, inside: Arc<Inside>, tls: Option<Tls>, mut stop: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(inside.limits.connections_max));
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(ended) = connections.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a connection ended by a bug");
                    }
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    inside.metrics.dropped("accept");
                    inside.clock.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
                inside.metrics.dropped("full");
                if let (Ok(permit), None) = (Arc::clone(&refusals).try_acquire_owned(), &tls) {
                    connections.spawn(refuse(Arc::clone(&inside), stream, permit));
                }
                continue;
            };
            let (inner, tls, stop) = (Arc::clone(&inside), tls.clone(), stop.clone());
            connections.spawn(async move {
                let _counted = inner.metrics.connection();
                connection::serve(inner, stream, peer, tls, stop).await;
                drop(place);
            });
        }
        drop(self.listener);
        finish(&inside, connections).await;
    }
}

async fn finish(inside: &Inside, mut connections: JoinSet<()>) {
    let timeout: Duration = inside.limits.shutdown_timeout;
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        biased;
        () = all => return,
        () = inside.clock.sleep(timeout) => {}
    }
    tracing::warn!(connections = connections.len(), "did not finish in time and are cut off");
    connections.shutdown().await;
}

/// Tells a client that there is no room. It is heard first, since a connection that is closed with bytes unread may
/// lose what was written to it.
async fn refuse(inside: Arc<Inside>, mut stream: TcpStream, _permit: OwnedSemaphorePermit) {
    let mut heard = [0_u8; 1_024];
    tokio::select! {
        biased;
        _ = stream.read(&mut heard) => {}
        () = inside.clock.sleep(REFUSAL_TIMEOUT) => {}
    }
    // Whoever has gone meanwhile need not be told.
    let _ = stream.write_all(FULL).await;
    let _ = stream.shutdown().await;
}
