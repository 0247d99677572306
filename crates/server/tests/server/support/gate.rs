//! A gate before another server: while it is closed, nothing that is asked comes through.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A gate; it ends with this.
pub struct Gate {
    pub endpoint: String,
    is_open: Arc<watch::Sender<bool>>,
    _runtime: tokio::runtime::Runtime,
}

impl Gate {
    /// An open one, before the server at this endpoint.
    pub fn before(endpoint: &str) -> Self {
        let to = endpoint.strip_prefix("http://").unwrap().to_owned();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let is_open = Arc::new(watch::channel(true).0);
        let gate = is_open.subscribe();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, to.clone(), gate.clone()));
            }
        });
        Self { endpoint, is_open, _runtime: runtime }
    }

    pub fn close(&self) {
        self.is_open.send_replace(false);
    }

    pub fn open(&self) {
        self.is_open.send_replace(true);
    }
}

/// One connection. What was asked before the gate closed is still answered.
async fn pass(stream: TcpStream, to: String, mut gate: watch::Receiver<bool>) {
    let Ok(other) = TcpStream::connect(to).await else { return };
    let (mut asked, mut answers) = stream.into_split();
    let (mut from, mut into) = other.into_split();
    let there = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = asked.read(&mut bytes).await {
            if gate.wait_for(|is_open| *is_open).await.is_err()
                || into.write_all(&bytes[..count]).await.is_err()
            {
                break;
            }
        }
    };
    tokio::select! {
        () = there => {}
        _ = tokio::io::copy(&mut from, &mut answers) => {}
    }
}
