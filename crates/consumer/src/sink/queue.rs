//! Dead letters in a Millpond queue.

use async_trait::async_trait;
use millpond_queue::{Client, Message, QueueConfig, QueueError};
use millpond_store::StoreError;

use super::{Letter, Sink, SinkError, SinkReceipt};

/// Dead letters in a client of a Millpond queue. In a strict queue, a letter that is sent twice within five minutes is
/// there once.
#[derive(Debug, Clone)]
pub struct QueueSink {
    client: Client,
    bytes_max: usize,
}

impl QueueSink {
    /// Letters go to `client`, whose queue takes messages as large as it does by default: 1 MiB.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, bytes_max: QueueConfig::default().message_bytes_max }
    }

    /// Letters go to `client`, as large as its queue takes them.
    ///
    /// # Errors
    /// When the queue cannot be reached, or is not there.
    pub async fn open(client: Client) -> Result<Self, QueueError> {
        let bytes_max = client.config().await?.message_bytes_max;
        Ok(Self { client, bytes_max })
    }

    /// Letters over so many bytes are spilled, though the queue would take them.
    #[must_use]
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    async fn send(
        &self,
        letters: Vec<Letter>,
    ) -> Result<Vec<Result<String, QueueError>>, QueueError> {
        let strict = self.client.config().await?.strict.is_some();
        let message = |letter: Letter| {
            let message = Message::new(letter.body);
            if strict { message.dedup_id(letter.dedupe_id) } else { message }
        };
        let sent = self.client.send_batch(letters.into_iter().map(message).collect()).await?;
        Ok(sent.into_iter().map(|sent| sent.map(|sent| sent.id.to_string())).collect())
    }
}

#[async_trait]
impl Sink for QueueSink {
    fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        let count = letters.len();
        match self.send(letters).await {
            Ok(sent) => {
                let receipt = |sent: Result<String, QueueError>| sent.map(SinkReceipt);
                sent.into_iter().map(|sent| receipt(sent).map_err(|error| judge(&error))).collect()
            }
            Err(error) => vec![Err(judge(&error)); count],
        }
    }
}

fn judge(error: &QueueError) -> SinkError {
    match error {
        QueueError::NotFound { .. } => SinkError::Misconfigured {
            problem: error.to_string(),
            remedy: "create the queue for dead letters".into(),
        },
        QueueError::Store(StoreError::Misconfigured { problem, remedy }) => {
            SinkError::Misconfigured { problem: problem.clone(), remedy: remedy.clone() }
        }
        other => SinkError::Unavailable(other.to_string()),
    }
}
