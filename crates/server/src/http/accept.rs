//! Taking connections, as many as there is room for.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::connection;
use super::front::Inside;
use super::limits::{ACCEPT_PAUSE, BACKLOG, FREE_PORT_TRIES_MAX, REFUSAL_TIMEOUT, REFUSALS_MAX};
use super::tls::Tls;

/// What a connection is told when there is no room for it.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

/// Bound addresses, at least one.
pub struct Listener {
    listeners: Vec<TcpListener>,
    address: SocketAddr,
    /// Which of them is asked first, so that none keeps the others from being heard.
    turn: AtomicUsize,
}

impl Listener {
    /// Binds, so that a taken port is noticed before anything else is done. Port 0 is a free one, the same for all
    /// addresses. Addresses that this machine does not have, as where it knows no IPv6, are left out, but not all of them.
    pub fn bind(addresses: &[SocketAddr]) -> Result<Self, (SocketAddr, io::Error)> {
        let mut tries = 1;
        loop {
            match bind_all(addresses) {
                // The port that is free at one address need not be at another.
                Err((address, error))
                    if address.port() == 0
                        && error.kind() == io::ErrorKind::AddrInUse
                        && tries < FREE_PORT_TRIES_MAX =>
                {
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Where it listens: the first address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everywhere it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let count = self.listeners.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        let next = |context: &mut Context<'_>| {
            let in_turn = self.listeners.iter().cycle().skip(first).take(count);
            for listener in in_turn {
                if let Poll::Ready(accepted) = listener.poll_accept(context) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        };
        poll_fn(next).await
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
                accepted = self.accept() => accepted,
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
        drop(self.listeners);
        finish(&inside, connections).await;
    }
}

fn bind_all(addresses: &[SocketAddr]) -> Result<Listener, (SocketAddr, io::Error)> {
    let mut listeners = Vec::with_capacity(addresses.len());
    let mut first: Option<SocketAddr> = None;
    let mut missing = None;
    for asked in addresses {
        let mut address = *asked;
        if let (0, Some(first)) = (address.port(), first) {
            address.set_port(first.port());
        }
        match bind_one(address) {
            Ok((listener, bound)) => {
                first.get_or_insert(bound);
                listeners.push(listener);
            }
            Err(error) if is_not_here(&error) => missing = Some((*asked, error)),
            Err(error) => return Err((*asked, error)),
        }
    }
    match (first, missing) {
        (Some(address), missing) => {
            if let Some((missing, error)) = missing {
                tracing::warn!(address = %missing, %error, "not listening on this address");
            }
            Ok(Listener { listeners, address, turn: AtomicUsize::new(0) })
        }
        (None, Some(missing)) => Err(missing),
        (None, None) => {
            let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
            Err((nowhere, io::Error::other("no address is given")))
        }
    }
}

fn bind_one(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that was stopped a moment ago does not keep the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Whether this machine does not have the address, or not that kind of address.
fn is_not_here(error: &io::Error) -> bool {
    let no_family = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(no_family)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    // Only there every address that begins with 127 is the machine's own.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn all_addresses_of_the_machine_are_listened_on_at_one_port() {
        // The one in the middle is nobody's.
        let asked = addresses(&["127.0.0.1:0", "192.0.2.1:0", "127.0.0.2:0"]);
        let listener = Listener::bind(&asked).map_err(|(_, error)| error).unwrap();
        let bound = listener.addresses();
        assert_eq!(bound.len(), 2, "{bound:?}");
        assert!(bound.iter().all(|address| address.port() == listener.address().port()));
        for address in &bound {
            let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            assert_eq!(client.unwrap().peer_addr().unwrap(), *address);
            accepted.unwrap();
        }
    }

    #[tokio::test]
    async fn an_address_that_is_taken_or_nobodys_is_named() {
        let listener = Listener::bind(&addresses(&["127.0.0.1:0"])).map_err(|(_, error)| error);
        let listener = listener.unwrap();
        let taken = addresses(&["192.0.2.1:0", &listener.address().to_string()]);
        for (asked, named) in [(&taken[..], taken[1]), (&taken[..1], taken[0])] {
            let (address, _) = Listener::bind(asked).err().unwrap();
            assert_eq!(address, named);
        }
    }
}
