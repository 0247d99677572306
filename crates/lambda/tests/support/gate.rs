//! A way between a client and a server that can be shut: requests then go in, and no answer comes out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Debug)]
pub struct Gate {
    pub address: SocketAddr,
    shut: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Gate {
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shut = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn({
            let shut = Arc::clone(&shut);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let Ok(server) = TcpStream::connect(upstream).await else { continue };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::spawn(pass(from_client, to_server, Arc::clone(&shut)));
                    tokio::spawn(pass(from_server, to_client, Arc::clone(&shut)));
                }
            }
        });
        Self { address, shut, task }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on nothing passes.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shut: Arc<AtomicBool>) {
    let mut bytes = vec![0; 64 * 1_024];
    while let Ok(count) = from.read(&mut bytes).await {
        // What comes through a shut gate is swallowed; the connection stays, so that the other end waits.
        if shut.load(Ordering::SeqCst) && count > 0 {
            continue;
        }
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
