//! Dead letters in a Millpond log.

use async_trait::async_trait;
use millpond_log::limits::PAYLOAD_BYTES_MAX;
use millpond_log::{LogError, NewRecord, Topic};
use millpond_store::StoreError;

use super::{Letter, Sink, SinkError, SinkReceipt};

/// Dead letters in a topic: keyed by the source's own key, so that letters of one key keep their order, with the
/// deduplication id in the header `dedupe-id`.
#[derive(Debug, Clone)]
pub struct LogSink(Topic);

impl LogSink {
    /// Letters go to `topic`.
    #[must_use]
    pub const fn new(topic: Topic) -> Self {
        Self(topic)
    }
}

#[async_trait]
impl Sink for LogSink {
    fn bytes_max(&self) -> usize {
        PAYLOAD_BYTES_MAX
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        let count = letters.len();
        let record = |letter: Letter| {
            let key = letter.group.unwrap_or_else(|| letter.dedupe_id.clone());
            NewRecord::keyed(key, letter.body).header("dedupe-id", letter.dedupe_id)
        };
        match self.0.append_batch(letters.into_iter().map(record).collect()).await {
            Ok(appended) => appended
                .into_iter()
                .map(|position| match position {
                    Ok(at) => Ok(SinkReceipt(format!("{}/{}", at.partition, at.offset))),
                    Err(error) => Err(judge(&error)),
                })
                .collect(),
            Err(error) => vec![Err(judge(&error)); count],
        }
    }
}

fn judge(error: &LogError) -> SinkError {
    match error {
        LogError::UnknownTopic { .. } => SinkError::Misconfigured {
            problem: error.to_string(),
            remedy: "create the topic for dead letters".into(),
        },
        LogError::Store(StoreError::Misconfigured { problem, remedy }) => {
            SinkError::Misconfigured { problem: problem.clone(), remedy: remedy.clone() }
        }
        other => SinkError::Unavailable(other.to_string()),
    }
}
