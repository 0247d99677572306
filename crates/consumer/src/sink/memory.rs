//! Dead letters in memory, for examples and tests.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{DeadLetter, Letter, Sink, SinkError, SinkReceipt};

/// Dead letters in memory. Clones share them. Nothing survives the process: not for production.
#[derive(Debug, Clone)]
pub struct MemorySink {
    letters: Arc<Mutex<Vec<Letter>>>,
    bytes_max: usize,
}

impl Default for MemorySink {
    fn default() -> Self {
        Self { letters: Arc::default(), bytes_max: usize::MAX }
    }
}

impl MemorySink {
    /// No letters yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bodies of at most so many bytes.
    #[must_use]
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// All letters so far, as they were sent.
    #[must_use]
    pub fn raw(&self) -> Vec<Letter> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All letters so far that can be read.
    #[must_use]
    pub fn letters(&self) -> Vec<DeadLetter> {
        self.raw().iter().filter_map(|letter| DeadLetter::decode(&letter.body).ok()).collect()
    }
}

#[async_trait]
impl Sink for MemorySink {
    fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        let mut kept = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        let receipts =
            letters.iter().map(|letter| Ok(SinkReceipt(letter.dedupe_id.clone()))).collect();
        kept.extend(letters);
        receipts
    }
}
