//! A sink that fails now and then, before or after it has a letter.

use std::sync::Arc;

use async_trait::async_trait;
use millpond_consumer::sink::{Letter, SinkError, SinkReceipt};
use millpond_consumer::{MemorySink, Sink};
use millpond_store::Rng;

/// A sink that fails by chance.
#[derive(Debug, Clone)]
pub struct FlakySink {
    pub inner: MemorySink,
    pub rng: Arc<dyn Rng>,
    /// How often it fails.
    pub chance: f64,
}

#[async_trait]
impl Sink for FlakySink {
    fn bytes_max(&self) -> usize {
        Sink::bytes_max(&self.inner)
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        let failed = vec![Err(SinkError::Unavailable("planned".into())); letters.len()];
        if self.rng.chance(self.chance) {
            return failed;
        }
        let receipts = self.inner.put(letters).await;
        if self.rng.chance(self.chance) { failed } else { receipts }
    }
}
