//! The task that sends spans.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use millpond_store::Clock;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::trace::SpanData;
use prost::Message as _;
use tokio::sync::{mpsc, watch};

use super::collector::{Collector, SendError};
use super::limits::{
    ANSWER_TIMEOUT, BATCH_EVERY, BATCH_SPANS_MAX, RETRY_AFTER_MAX, RETRY_PAUSE, TRIES_MAX,
};
use super::outbox::{Dropped, SpanCounts};

/// Sends what is in the outbox, batch by batch, until told to stop and the outbox is empty.
pub struct Export {
    pub spans: mpsc::Receiver<SpanData>,
    pub collector: Collector,
    pub resource: ResourceAttributesWithSchema,
    pub counts: Arc<SpanCounts>,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
    pub stop: watch::Receiver<bool>,
    /// Whether the last batch failed: the log says so once.
    pub failing: bool,
}

impl Export {
    /// The task. Whoever wants it to stop in time ends it.
    pub async fn run(mut self) {
        let mut batch = Vec::new();
        while self.gather(&mut batch).await {
            let count = batch.len();
            // What is cut off here was not sent.
            let unsent = Unsent { counts: Arc::clone(&self.counts), count };
            let outcome = self.send(std::mem::take(&mut batch)).await;
            unsent.settle();
            self.note(count, outcome);
        }
    }

    /// Waits for spans, and then a while for more. False when there will be none.
    async fn gather(&mut self, batch: &mut Vec<SpanData>) -> bool {
        loop {
            let mut stop = self.stop.clone();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop), if !self.spans.is_closed() => self.spans.close(),
                got = self.spans.recv_many(batch, BATCH_SPANS_MAX) => match got {
                    0 => return false,
                    _ => break,
                },
            }
        }
        let mut pause = pin!(self.clock.sleep(BATCH_EVERY));
        while batch.len() < BATCH_SPANS_MAX {
            let mut stop = self.stop.clone();
            let room = BATCH_SPANS_MAX - batch.len();
            tokio::select! {
                biased;
                got = self.spans.recv_many(batch, room) => if got == 0 { break },
                _ = stop.wait_for(|stop| *stop), if !self.spans.is_closed() => self.spans.close(),
                () = pause.as_mut() => break,
            }
        }
        true
    }

    /// Sends a batch, again where that may help. Returns how many of its spans the collector left out, and why.
    async fn send(&self, batch: Vec<SpanData>) -> Result<(usize, String), SendError> {
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let request = ExportTraceServiceRequest { resource_spans };
        let bytes = Bytes::from(request.encode_to_vec());
        let mut tries = 1;
        let mut pause = RETRY_PAUSE;
        loop {
            let outcome = tokio::select! {
                biased;
                outcome = self.collector.send(bytes.clone()) => outcome,
                () = self.clock.sleep(ANSWER_TIMEOUT) => {
                    let problem = format!("no answer within {ANSWER_TIMEOUT:?}");
                    Err(SendError::Later { problem, after: None })
                }
            };
            let after = match &outcome {
                Err(SendError::Later { after, .. }) if tries < TRIES_MAX => after.unwrap_or(pause),
                _ => return outcome,
            };
            let mut stop = self.stop.clone();
            tokio::select! {
                biased;
                // There is no time left to try again.
                _ = stop.wait_for(|stop| *stop) => return outcome,
                () = self.clock.sleep(after.min(RETRY_AFTER_MAX)) => {}
            }
            tries += 1;
            pause *= 2;
        }
    }

    /// Counts what became of a batch, and logs when that is news.
    fn note(&mut self, count: usize, outcome: Result<(usize, String), SendError>) {
        let endpoint = self.collector.endpoint();
        match outcome {
            Ok((rejected, why)) => {
                let rejected = rejected.min(count);
                self.counts.count_sent(count - rejected);
                self.counts.count_dropped(Dropped::Rejected, rejected);
                if rejected > 0 {
                    tracing::warn!(%endpoint, rejected, why, "the collector left spans out");
                }
                if std::mem::take(&mut self.failing) {
                    tracing::info!(%endpoint, "traces reach the collector again");
                }
            }
            Err(error) => {
                self.counts.count_dropped(Dropped::Failed, count);
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(%endpoint, %error, "traces do not reach the collector");
                }
            }
        }
    }
}

/// Spans of a batch that is being sent. Dropped before that is over, it counts them.
struct Unsent {
    counts: Arc<SpanCounts>,
    count: usize,
}

impl Unsent {
    fn settle(mut self) {
        self.count = 0;
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.counts.count_dropped(Dropped::Failed, self.count);
    }
}
