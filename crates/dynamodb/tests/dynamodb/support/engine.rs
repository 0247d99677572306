//! The engine: dynoxide on a loopback port, stopped when dropped.

use std::net::SocketAddr;

use dynoxide::Database;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub struct Engine {
    pub address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Engine {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let database = Database::memory().unwrap();
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, async {
            // Told or dropped: either way it is time to go.
            let _ = stopped.await;
        }));
        Self { address, _stop: stop }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}
