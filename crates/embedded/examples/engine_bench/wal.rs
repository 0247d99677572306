//! The limit: an append-only file with one sync for all who wait, and nothing else. No conditions, no reads.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use tokio::sync::{mpsc, oneshot};

/// A bare write-ahead log with the engine's own structure: one thread that drains a channel.
#[derive(Clone)]
pub struct Wal {
    requests: mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>,
}

impl Wal {
    /// A new log.
    pub fn create(path: &Path) -> Self {
        let mut file = File::create(path).unwrap();
        let (requests, mut waiting) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>(4_096);
        std::thread::spawn(move || {
            let mut buffer = Vec::new();
            while let Some(first) = waiting.blocking_recv() {
                let mut replies = Vec::new();
                let mut next = Some(first);
                buffer.clear();
                while let Some((bytes, reply)) = next {
                    buffer.extend_from_slice(&bytes);
                    replies.push(reply);
                    let full = buffer.len() >= 16 * 1_024 * 1_024;
                    next = if full { None } else { waiting.try_recv().ok() };
                }
                file.write_all(&buffer).unwrap();
                file.sync_data().unwrap();
                for reply in replies {
                    let _ = reply.send(());
                }
            }
        });
        Self { requests }
    }

    /// Appends, and waits for the sync.
    pub async fn append(&self, bytes: Vec<u8>) {
        let (reply, answer) = oneshot::channel();
        self.requests.send((bytes, reply)).await.unwrap();
        answer.await.unwrap();
    }
}
