//! The limit: an append-only file with one sync for all who wait, and nothing else.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::error::{BenchError, Result};

/// Requests that may wait: more than there are callers in any measurement.
const WAITING_MAX: usize = 4_096;

/// A bare write-ahead log: a thread that takes all that waits, writes it, syncs once and answers.
#[derive(Debug)]
pub struct Wal {
    requests: mpsc::Sender<(Bytes, oneshot::Sender<()>)>,
    writer: JoinHandle<std::io::Result<()>>,
}

impl Wal {
    pub fn create(path: &Path) -> Result<Arc<Self>> {
        let file = File::create(path).map_err(BenchError::file(path))?;
        let (requests, receiver) = mpsc::channel(WAITING_MAX);
        let writer = std::thread::spawn(move || write(file, receiver));
        Ok(Arc::new(Self { requests, writer }))
    }

    pub async fn append(&self, record: Bytes) -> Result<()> {
        let (reply, done) = oneshot::channel();
        let gone = || BenchError::Wrong("the bare log's writer has ended".to_owned());
        self.requests.send((record, reply)).await.map_err(|_| gone())?;
        done.await.map_err(|_| gone())
    }

    pub fn close(self: Arc<Self>) -> Result<()> {
        let Some(wal) = Arc::into_inner(self) else {
            return Err(BenchError::Wrong("the bare log is still in use".to_owned()));
        };
        drop(wal.requests);
        let outcome = wal.writer.join();
        outcome.map_or_else(
            |_| Err(BenchError::Wrong("the bare log's writer panicked".to_owned())),
            |written| written.map_err(BenchError::file("bare log")),
        )
    }
}

fn write(
    mut file: File,
    mut receiver: mpsc::Receiver<(Bytes, oneshot::Sender<()>)>,
) -> std::io::Result<()> {
    let mut waiting = Vec::new();
    let mut buffer = Vec::new();
    while receiver.blocking_recv_many(&mut waiting, WAITING_MAX) > 0 {
        buffer.clear();
        for (record, _) in &waiting {
            buffer.extend_from_slice(record);
        }
        file.write_all(&buffer)?;
        file.sync_data()?;
        for (_, reply) in waiting.drain(..) {
            // A caller that has gone away does not want to know.
            let _ = reply.send(());
        }
    }
    Ok(())
}
