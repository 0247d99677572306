//! Dead letters in the function's own store. It is opened with the first letter: a store that is set up wrongly is then a
//! matter of the batch, which a breaker can stop, and not a function that does not start.

use async_trait::async_trait;
use millpond_consumer::sink::{Letter, LogSink, QueueSink, Sink, SinkError, SinkReceipt};
use millpond_lanes::Ground;
use millpond_log::{Log, LogError};
use millpond_queue::{QueueConfig, QueueError, Queues};
use millpond_store::StoreError;
use tokio::sync::OnceCell;

use crate::functions::open_queue;

/// Which part of the store.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Queue { queue: String, client: String },
    Log { topic: String },
}

/// A sink in the store, opened when it is needed.
#[derive(Debug)]
pub(crate) struct StoredSink {
    ground: Ground,
    part: Part,
    opened: OnceCell<Box<dyn Sink>>,
}

impl StoredSink {
    pub fn new(ground: &Ground, part: Part) -> Self {
        Self { ground: ground.clone(), part, opened: OnceCell::new() }
    }

    async fn open(&self) -> Result<Box<dyn Sink>, SinkError> {
        match &self.part {
            Part::Queue { queue, client } => {
                let queues = Queues::new(&self.ground);
                let opened = async {
                    open_queue(&queues, queue, QueueConfig::default()).await?.client(client)
                };
                let client = opened.await.map_err(queue_error)?;
                Ok(Box::new(QueueSink::new(client)))
            }
            Part::Log { topic } => {
                let topic = Log::new(&self.ground).topic(topic).await.map_err(log_error)?;
                Ok(Box::new(LogSink::new(topic)))
            }
        }
    }
}

#[async_trait]
impl Sink for StoredSink {
    fn bytes_max(&self) -> usize {
        match &self.part {
            // What a queue takes unless it was made to take more or less; large letters are spilled.
            Part::Queue { .. } => QueueConfig::default().message_bytes_max - 4 * 1_024,
            Part::Log { .. } => millpond_log::limits::PAYLOAD_BYTES_MAX,
        }
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        match self.opened.get_or_try_init(|| self.open()).await {
            Ok(sink) => sink.put(letters).await,
            Err(error) => vec![Err(error); letters.len()],
        }
    }
}

fn queue_error(error: QueueError) -> SinkError {
    match error {
        QueueError::Store(error) => store_error(error),
        QueueError::Invalid { .. } | QueueError::TooLarge { .. } | QueueError::NotFound { .. } => {
            misconfigured(&error)
        }
        other => SinkError::Unavailable(other.to_string()),
    }
}

fn log_error(error: LogError) -> SinkError {
    match error {
        LogError::Store(error) => store_error(error),
        LogError::UnknownTopic { .. } | LogError::Invalid { .. } => misconfigured(&error),
        other => SinkError::Unavailable(other.to_string()),
    }
}

fn misconfigured(error: &dyn std::error::Error) -> SinkError {
    SinkError::Misconfigured {
        problem: error.to_string(),
        remedy: "create it, or correct MILLPOND_DEAD_LETTERS and MILLPOND_DEAD_RECORDS".into(),
    }
}

fn store_error(error: StoreError) -> SinkError {
    match error {
        StoreError::Misconfigured { problem, remedy } => {
            SinkError::Misconfigured { problem, remedy }
        }
        other => SinkError::Unavailable(other.to_string()),
    }
}
